// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package endtoend

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/vttablet-ext/vttablet-ext/test/endtoend/cluster"
)

// copyTables makes the workflow. A table that VReplication cannot copy is left out.
func (b *batch) copyTables(t *testing.T, ctx context.Context) {
	t.Helper()
	for len(b.tables) > 0 {
		for _, table := range b.all() {
			if table.unlike || b.layout.filters || b.layout.reshards() || len(table.columns)%3 == 0 {
				for _, tablet := range b.targets {
					require.NoError(t, b.sessions.execAll(ctx, tablet, table.create(quote(table.name), true)))
				}
			}
		}
		err := b.create(ctx)
		if err == nil {
			err = b.waitCopied(ctx)
		}
		if err == nil {
			return
		}
		require.NoError(t, ctx.Err())
		failed := slices.IndexFunc(b.tables, func(table *randomTable) bool {
			return namesTable(err.Error(), table.name) || namesTable(err.Error(), table.source)
		})
		if failed < 0 {
			require.NoError(t, err, "seed %d", b.seed)
		}
		b.o.outcome("not copied", b.tables[failed], shortError(err))
		b.cancel(t, ctx)
		b.drop(t, ctx, b.all()...)
		b.dropSource(t, ctx, b.tables[failed])
		b.o.applyVSchema(t, ctx) // cancel took the tables out
		b.tables = slices.Delete(b.tables, failed, failed+1)
	}
}

func namesTable(text, name string) bool {
	return regexp.MustCompile(`\b` + regexp.QuoteMeta(name) + `\b`).MatchString(text)
}

// shortError is an error without the data that it is of.
func shortError(err error) string {
	text := err.Error()
	for _, end := range []string{" during query", "\n", ": insert into", ": insert ignore into", "(sqlstate"} {
		if n := strings.LastIndex(text, end); n > 0 && end == "(sqlstate" {
			text = text[:n]
		} else if n := strings.Index(text, end); n > 0 {
			text = text[:n]
		}
	}
	return text[max(0, len(text)-200):]
}

// create makes the workflow.
func (b *batch) create(ctx context.Context) error {
	b.o.vtctl.Lock()
	defer b.o.vtctl.Unlock()
	if b.layout.reshards() {
		return b.reshard(ctx)
	}
	if b.layout.filters {
		var settings []any
		for _, table := range b.tables {
			settings = append(settings, map[string]string{"target_table": table.name, "source_expression": table.expression(), "create_ddl": table.create(quote(table.name), true)})
		}
		text, err := json.Marshal(settings)
		if err != nil {
			return err
		}
		_, err = b.o.c.Vtctl(ctx, "Materialize", "--workflow", b.w.Name, "--target-keyspace", b.layout.to, "create", "--source-keyspace", b.layout.from, "--table-settings", string(text))
		return err
	}
	var names []string
	for _, table := range b.tables {
		names = append(names, table.name)
	}
	_, err := b.o.c.Vtctl(ctx, "MoveTables", "--workflow", b.w.Name, "--target-keyspace", b.layout.to, "create", "--source-keyspace", b.layout.from, "--no-routing-rules", "--tables", strings.Join(names, ","))
	return err
}

// copyFailed tells the message of a stream that tries again from one that says which tablet it reads.
var copyFailed = regexp.MustCompile(`(?i)err|fail|invalid|unknown`)

// waitCopied waits until the streams run, or one of them has failed. What is left to be copied is named in the error.
func (b *batch) waitCopied(ctx context.Context) error {
	var failure error
	err := cluster.WaitFor(ctx, "the copy of "+b.w.Name, 100*time.Millisecond, func(ctx context.Context) (bool, error) {
		streams, err := b.w.Streams(ctx)
		if err != nil {
			return false, nil
		}
		done := len(streams) > 0
		for _, s := range streams {
			done = done && s.State == "Running" && !s.Copying && s.Pos != ""
			if s.State != "Error" && !copyFailed.MatchString(s.Message) {
				continue
			}
			tablet := b.o.c.Tablet(s.Tablet)
			left, err := tablet.Query(ctx, "select min(table_name) from _vt.copy_state where vrepl_id = "+s.ID+" and lastpk is null")
			if err == nil {
				failure = fmt.Errorf("%s: %s", left.Rows[0][0].ToString(), s.Message)
			}
			return true, failure
		}
		return done, nil
	})
	return err
}

// cancel ends the workflow, if it is there.
func (b *batch) cancel(t *testing.T, ctx context.Context) {
	t.Helper()
	b.o.vtctl.Lock()
	defer b.o.vtctl.Unlock()
	if streams, err := b.w.Streams(ctx); err == nil && len(streams) == 0 {
		return
	}
	if b.layout.reshards() { // its own cancel would delete the shards
		_, err := b.o.c.Vtctl(ctx, "Workflow", "--keyspace", b.w.Keyspace, "delete", "--workflow", b.w.Name, "--keep-data")
		require.NoError(t, err)
		return
	}
	command := "MoveTables"
	if b.layout.filters {
		command = "Materialize"
	}
	require.NoError(t, b.w.Cancel(ctx, command))
}

// drop drops what is left of the targets of some tables.
func (b *batch) drop(t *testing.T, ctx context.Context, tables ...*randomTable) {
	t.Helper()
	for _, table := range tables {
		for _, tablet := range b.targets {
			require.NoError(t, b.sessions.execAll(ctx, tablet, "drop table if exists "+quote(table.name)))
		}
	}
}

// clear removes the workflow, if it is there, and the tables.
func (b *batch) clear(t *testing.T, ctx context.Context) {
	b.cancel(t, ctx)
	b.drop(t, ctx, b.all()...)
	b.dropSource(t, ctx, b.all()...)
}

// all are the tables that are there.
func (b *batch) all() []*randomTable { return slices.Concat(b.tables, b.leftOut) }

// dropSource drops tables of the source.
func (b *batch) dropSource(t *testing.T, ctx context.Context, tables ...*randomTable) {
	t.Helper()
	for _, table := range tables {
		for _, tablet := range b.sources {
			require.NoError(t, b.sessions.execAll(ctx, tablet, "drop table if exists "+quote(table.source)))
		}
	}
}
