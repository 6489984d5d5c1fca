// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package endtoend

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"vitess.io/vitess/go/mysql/replication"

	"github.com/vttablet-ext/vttablet-ext/test/endtoend/cluster"
)

// VReplication brings a row to the target in one of two ways: it selects rows to copy them, and takes from the binary log what is written
// later. A value need not come out the same. So a part of the rows is inserted only when all is copied, and some are changed then.

// lateRow is a statement that inserts rows of the source late.
type lateRow struct {
	tablet *cluster.Tablet
	sql    string
}

// replicates says whether a part of the rows comes late: not where the source has copies, which replication would add up, and not where FLOAT is in
// a key, of which replication makes another key than copying does.
func (t *randomTable) replicates() bool {
	isFloat := func(c *randomColumn) bool { return c.kind.name == "float" }
	return !t.copies() && !slices.ContainsFunc(t.sourceKey.columns, isFloat) && !slices.ContainsFunc(t.targetKey.columns, isFloat)
}

// replicate writes to the sources and waits until the targets have it. It returns false when VReplication cannot apply it.
func (b *batch) replicate(t *testing.T, ctx context.Context) bool {
	t.Helper()
	for _, table := range b.tables {
		if !table.replicates() {
			continue
		}
		for _, late := range table.late {
			require.NoError(t, b.sessions.execAll(ctx, late.tablet, late.sql))
		}
		for _, tablet := range b.sources {
			rows, err := table.read(ctx, b.sessions, tablet, false, b.o.padding)
			require.NoError(t, err)
			done, err := b.execAny(ctx, tablet, table.write(rows))
			require.NoError(t, err)
			b.planted[table] = append(b.planted[table], done...)
		}
	}
	err := b.waitReplicated(ctx)
	require.NoError(t, ctx.Err())
	if err == nil {
		return true
	}
	at := max(0, slices.IndexFunc(b.tables, func(table *randomTable) bool { return namesTable(err.Error(), table.name) }))
	b.o.outcome("not replicated", b.tables[at], shortError(err))
	t.Logf("seed %d: not replicated: %v; if it is %s, that was written to as %q", b.seed, err, b.tables[at].create("t", true), b.planted[b.tables[at]])
	return false
}

// copyAgain makes the workflow anew, for all that the sources have by now.
func (b *batch) copyAgain(t *testing.T, ctx context.Context) {
	t.Helper()
	b.cancel(t, ctx)
	b.drop(t, ctx, b.all()...)
	for _, table := range b.tables {
		if table.copies() {
			for _, tablet := range b.sources[1:] {
				require.NoError(t, b.sessions.execAll(ctx, tablet, "set sql_log_bin = 0", "delete from "+quote(table.source), "set sql_log_bin = 1"))
			}
		}
	}
	b.o.applyVSchema(t, ctx) // cancel took the tables out
	b.copyTables(t, ctx)
	b.addCopies(t, ctx)
}

// write makes statements that change some rows of the source so that they fit the target's key as before.
func (t *randomTable) write(rows []*truthRow) []string {
	r, table := t.r, quote(t.source)
	columns, _ := t.written(false)
	columns = slices.DeleteFunc(slices.Clone(columns), func(c *randomColumn) bool {
		// VReplication makes a statement of no column of an update of a dropped one alone.
		return slices.Contains(t.sourceKey.columns, c) || slices.Contains(t.targetKey.columns, c) || t.inVindex(c) || c.dropped
	})
	hasNoLiteral := func(c *randomColumn) bool { return c.kind.name == "vector" || c.kind.form == formJSON }
	if t.pairedBy() == nil && !t.rollup && (t.sourceKey.how != noKey || t.targetKey.how != noKey || slices.ContainsFunc(columns, hasNoLiteral)) {
		return nil // VReplication finds the row by all columns, of which not all have a literal that is equal
	}
	var statements []string
	for range pick(r, []int{0, 1, 2, 4, 8}) {
		if len(rows) == 0 {
			break
		}
		where := " where " + t.where1(pick(r, rows), false) + " limit 1"
		if len(columns) == 0 || r.IntN(4) == 0 {
			statements = append(statements, "delete from "+table+where)
			continue
		}
		c := pick(r, columns)
		value := c.kind.value(r, c.sourceType)
		switch {
		case c.sourceNullable && r.IntN(4) == 0:
			value = "null"
		case r.IntN(3) == 0:
			value = strings.ReplaceAll(pick(r, c.kind.tweaks), "%[1]s", quote(c.source))
		}
		statements = append(statements, "update "+table+" set "+quote(c.source)+" = "+value+where)
	}
	return statements
}

// replicationTime is how long the targets may take to apply what was written.
const replicationTime = 30 * time.Second

// waitReplicated waits until all streams have what their sources have, or one of them has failed.
func (b *batch) waitReplicated(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, replicationTime)
	defer cancel()
	var written []replication.Position
	for _, tablet := range b.sources {
		result, err := b.sessions.exec(ctx, tablet, "select @@global.gtid_executed")
		if err != nil {
			return err
		}
		pos, err := replication.ParsePosition(replication.Mysql56FlavorID, strings.ReplaceAll(result.Rows[0][0].ToString(), "\n", ""))
		if err != nil {
			return err
		}
		written = append(written, pos)
	}
	var last []cluster.Stream
	var failure error
	err := cluster.WaitFor(ctx, "the streams of "+b.w.Name, 100*time.Millisecond, func(ctx context.Context) (bool, error) {
		streams, err := b.w.Streams(ctx)
		if err != nil {
			return false, nil
		}
		last = streams
		for _, s := range streams {
			if s.State == "Error" || copyFailed.MatchString(s.Message) {
				failure = errors.New(strings.ReplaceAll(s.Message, "\n", " "))
				return true, failure
			}
			pos, err := replication.DecodePosition(s.Pos)
			if err != nil {
				return false, err
			}
			if !slices.ContainsFunc(written, pos.AtLeast) { // it has that of its own source, and of no other
				return false, nil
			}
		}
		return true, nil
	})
	if err != nil && failure == nil {
		return fmt.Errorf("%w: streams are %+v", err, last)
	}
	return failure
}

// asRead is a FLOAT that the target has as a DOUBLE as the source would print it: VReplication copies six digits, and of the binary log it takes
// the fewest that mean the FLOAT.
func (c *randomColumn) asRead(form string, target bool) string {
	if c.kind.name != "float" || c.targetType == c.sourceType || !target {
		return form
	}
	n, err := strconv.ParseFloat(form, 64)
	if err != nil {
		return form
	}
	single := float32(n)
	if strconv.FormatFloat(float64(single), 'g', -1, 32) != strconv.FormatFloat(n, 'g', -1, 64) {
		return form
	}
	if n, err = strconv.ParseFloat(strconv.FormatFloat(float64(single), 'g', 6, 64), 64); err != nil {
		return form
	}
	return strconv.FormatFloat(n, 'g', -1, 64)
}
