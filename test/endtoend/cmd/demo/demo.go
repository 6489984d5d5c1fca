// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"strings"
	"time"

	"vitess.io/vitess/go/vt/vtctl/workflow"
	"vitess.io/vitess/go/vt/vttablet/tabletmanager/vdiff"

	"github.com/vttablet-ext/vttablet-ext/test/endtoend/cluster"
	"github.com/vttablet-ext/vttablet-ext/test/endtoend/load"
)

// The keyspaces.
const (
	src = "src"
	dst = "dst"
)

// demo is the state that the steps hand on.
type demo struct {
	out      *printer
	c        *cluster.Cluster
	tables   []table
	workflow string

	edits    edits
	findings []string // for the summary
}

func (d *demo) flow() *cluster.Workflow { return d.c.Workflow(dst, d.workflow) }

func (d *demo) startCluster(ctx context.Context) (err error) {
	d.c, err = cluster.New(ctx, cluster.Options{
		VTTabletFlags: strings.Fields(os.Getenv("VTTABLET_FLAGS")),
		Logf:          func(format string, args ...any) { d.out.say(format, args...) },
	})
	if err != nil {
		return err
	}
	err = d.c.AddKeyspaces(ctx,
		cluster.Keyspace{Name: src, Shards: []cluster.Shard{{Name: "0"}}, VSchema: `{"tables": {}}`},
		cluster.Keyspace{Name: dst, Shards: []cluster.Shard{{Name: "-80"}, {Name: "80-"}}, VSchema: vschema},
	)
	if err != nil {
		return err
	}
	for _, t := range d.c.Tablets() {
		d.out.say("%s is the primary of %s/%s, with a mysqld and a vttablet-ext of its own", t.Alias, t.Keyspace, t.Shard)
	}
	return nil
}

func (d *demo) loadTables(ctx context.Context) error {
	all, before := total(d.tables), int64(0)
	for _, t := range d.tables {
		err := load.Fill(ctx, d.c.Primary(src, "0"), t.Table, load.Sequence{First: 1, Last: t.rows}, func(rows int64) {
			d.out.progress(before+rows, all, "rows are loaded")
		})
		if err != nil {
			return err
		}
		d.out.say("%-6s %9s rows: %s", t.Name, count(t.rows), t.what)
		before += t.rows
	}
	_, err := d.c.Vtctl(ctx, "ReloadSchemaKeyspace", src)
	return err
}

func (d *demo) moveTables(ctx context.Context) error {
	names := make([]string, len(d.tables))
	for i, t := range d.tables {
		names[i] = t.Name
	}
	args := []string{"MoveTables", "--workflow", d.workflow, "--target-keyspace", dst, "create", "--source-keyspace", src, "--tables", strings.Join(names, ",")}
	d.out.command(append([]string{"vtctldclient"}, args...)...)
	if _, err := d.c.Vtctl(ctx, args...); err != nil {
		return err
	}
	if err := load.WaitCopied(ctx, d.flow(), d.copyProgress()); err != nil {
		return err
	}
	for _, t := range d.flow().Primaries() {
		rows, err := rowsOn(ctx, t, d.tables)
		if err != nil {
			return err
		}
		d.out.say("shard %s has %s rows; its stream runs", t.Shard, count(rows))
	}
	return nil
}

// copyProgress returns a function that shows how many rows have been copied. Vitess writes that down only every half minute:
// so they are counted, not too often.
func (d *demo) copyProgress() func(context.Context) error {
	next := time.Now().Add(time.Second)
	return func(ctx context.Context) error {
		if time.Now().Before(next) {
			return nil
		}
		var copied int64
		for _, t := range d.flow().Primaries() {
			rows, err := rowsOn(ctx, t, d.tables)
			if err != nil {
				return err
			}
			copied += rows
		}
		d.out.progress(copied, total(d.tables), "rows are copied")
		next = time.Now().Add(time.Second)
		return nil
	}
}

// rowsOn counts the rows of tables on a tablet.
func rowsOn(ctx context.Context, t *cluster.Tablet, tables []table) (int64, error) {
	var sum int64
	for _, table := range tables {
		result, err := t.Query(ctx, "select count(*) from "+table.Name)
		if err != nil {
			return 0, err
		}
		rows, err := result.Rows[0][0].ToInt64()
		if err != nil {
			return 0, err
		}
		sum += rows
	}
	return sum, nil
}

// createVDiff creates a vdiff and shows the command.
func (d *demo) createVDiff(ctx context.Context) (uuid string, err error) {
	d.out.command("vtctldclient VDiff --workflow", d.workflow, "--target-keyspace", dst, "create")
	if uuid, err = d.flow().VDiffCreate(ctx); err != nil {
		return "", err
	}
	d.out.say("vdiff %s", uuid)
	return uuid, nil
}

// waitVDiff shows the progress of a vdiff until it is completed.
func (d *demo) waitVDiff(ctx context.Context, uuid string) (*workflow.Summary, error) {
	var summary *workflow.Summary
	all, seen := total(d.tables), int64(0)
	err := cluster.WaitFor(ctx, "vdiff "+uuid, 200*time.Millisecond, func(ctx context.Context) (bool, error) {
		s, err := d.flow().VDiffShow(ctx, uuid)
		if err != nil {
			d.out.progress(seen, all, "rows are compared (a tablet does not answer yet)")
			return false, ctx.Err()
		}
		summary, seen = s, s.RowsCompared
		d.out.progress(seen, all, fmt.Sprintf("rows are compared, the vdiff is %s", s.State))
		if s.State == vdiff.ErrorState || s.State == vdiff.StoppedState {
			return false, fmt.Errorf("it is in state %s: %v", s.State, s.Errors)
		}
		return s.State == vdiff.CompletedState, nil
	})
	return summary, err
}

// noPanics returns an error when any daemon has panicked.
func (d *demo) noPanics() error {
	lines, err := d.c.GrepLogs(regexp.MustCompile(`^panic:|^fatal error:|[Pp]anic while`))
	if err == nil && len(lines) > 0 {
		err = fmt.Errorf("a panic in the logs: %s", lines[0])
	}
	return err
}
