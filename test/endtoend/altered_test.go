// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package endtoend

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"vitess.io/vitess/go/vt/vttablet/tabletmanager/vdiff"

	"github.com/vttablet-ext/vttablet-ext/test/endtoend/cluster"
)

// TestAlteredRows stops a vdiff at its limit and gives the table a column whose values differ in rows that were compared already: a
// checkpoint of the table as it was does not hold for it any more, and the rows are compared again.
func TestAlteredRows(t *testing.T) {
	b := testBed(t)
	ctx := longContext(t)
	w, one := b.moveToOne(t, ctx, "altered", "altered", "create table altered (id int primary key, v varchar(20))", "insert into altered select n, 'v' from numbers")
	uuid, err := w.VDiffCreate(ctx, "--limit", "400")
	require.NoError(t, err)
	s, err := w.WaitVDiff(ctx, uuid, vdiff.CompletedState)
	require.NoError(t, err)
	require.Equal(t, counts("altered", 400, 0, 0, 0), s.TableSummaryMap["altered"])
	resume := func(limited int64, mismatched int64) {
		t.Helper()
		_, err = w.VDiff(ctx, "resume", uuid)
		require.NoError(t, err)
		s, err = w.WaitVDiff(ctx, uuid, vdiff.CompletedState)
		require.NoError(t, err)
		assert.Equal(t, counts("altered", limited-mismatched, mismatched, 0, 0), s.TableSummaryMap["altered"])
	}
	resume(800, 0)
	// What an event of the source names must be on the target before.
	for _, tablet := range []*cluster.Tablet{one, b.source()} {
		require.NoError(t, tablet.Exec(ctx, "alter table altered add column extra int default 5"))
	}
	require.NoError(t, one.Exec(ctx, "update altered set extra = 6 where id in (7, 8, 9, 900)"))
	resume(400, 3)
	resume(800, 3)
	resume(1000, 4)
}

// TestAlteredRanges does the same to a vdiff that was stopped in the middle of several lanes of ranges, one of which has verified the
// rows that differ.
func TestAlteredRanges(t *testing.T) {
	b := testBed(t)
	ctx := longContext(t)
	r := stopMidTable(t, ctx, b, 1)
	verified, err := b.target().Query(ctx, "select t.rows_compared from _vt.vdiff_table t join _vt.vdiff v on v.id = t.vdiff_id where v.vdiff_uuid = '"+r.uuid+"' and json_extract(t.report, '$.Checkpoint') is not null")
	require.NoError(t, err)
	require.Len(t, verified.Rows, 1, "there is a checkpoint")
	require.NotEqual(t, "0", verified.Rows[0][0].ToString())

	source, shards := b.source(), r.w.Primaries()
	alter := func(ctx context.Context, tablets []*cluster.Tablet, change string) {
		for _, tablet := range tablets {
			require.NoError(t, tablet.Exec(ctx, "alter table b1 "+change))
		}
	}
	alter(ctx, append(shards[:len(shards):len(shards)], source), "add column extra int default 5")
	defer func() {
		ctx := context.WithoutCancel(ctx)
		b.cleanUp(t, b.big)
		alter(ctx, append([]*cluster.Tablet{source}, shards...), "drop column extra")
	}()
	require.NoError(t, b.target().Exec(ctx, "update b1 set extra = 6 where id % 1000 = 7"))
	result, err := b.target().Query(ctx, "select count(*) from b1 where extra = 6")
	require.NoError(t, err)
	changed, err := result.Rows[0][0].ToInt64()
	require.NoError(t, err)
	require.Greater(t, changed, int64(100), "more than one lane has some")
	_, err = r.w.VDiff(ctx, "resume", r.uuid)
	require.NoError(t, err)
	s, err := r.w.WaitVDiff(ctx, r.uuid, vdiff.CompletedState)
	require.NoError(t, err)
	assert.Equal(t, counts("b1", bigRows-changed, changed, 0, 0), s.TableSummaryMap["b1"])
}

// TestAlteredMeanwhile changes a table that a running vdiff has completed while another one, which is compared row by row, waits for a lock: the
// verdict of the first would be one about the table as it was, so that it is compared again before the vdiff ends.
func TestAlteredMeanwhile(t *testing.T) {
	b := testBed(t)
	ctx := longContext(t)
	w, one := b.moveToOne(t, ctx, "meanwhile", "early,late", "create table early (name varchar(20) collate utf8mb4_bin primary key)", "insert into early select concat('Name ', n) from numbers",
		"create table late (id int primary key, n int)", "insert into late select n, n from numbers")
	require.NoError(t, one.Exec(ctx, "alter table late modify n varchar(20)"))
	unlock := hold(t, ctx, b.source(), "begin", "update late set n = 0 where id = 1")
	uuid, err := w.VDiffCreate(ctx, "--tablet-types", "primary")
	require.NoError(t, err)
	require.NoError(t, cluster.WaitFor(ctx, "the first table to be completed", 50*time.Millisecond, func(ctx context.Context) (bool, error) {
		result, err := one.Query(ctx, "select t.state from _vt.vdiff_table t join _vt.vdiff v on v.id = t.vdiff_id where v.vdiff_uuid = '"+uuid+"' and t.table_name = 'early'")
		return err == nil && len(result.Rows) == 1 && result.Rows[0][0].ToString() == string(vdiff.CompletedState), err
	}))
	for _, tablet := range []*cluster.Tablet{one, b.source()} {
		require.NoError(t, tablet.Exec(ctx, "alter table early modify name varchar(20) collate utf8mb4_0900_ai_ci, add column extra int default 5"))
	}
	require.NoError(t, one.Exec(ctx, "update early set extra = 6 where name in ('name 7', 'name 8')", "delete from early where name = 'Name 9'"))
	unlock()
	s, err := w.WaitVDiff(ctx, uuid, vdiff.CompletedState)
	require.NoError(t, err)
	assert.Equal(t, counts("early", 997, 2, 1, 0), s.TableSummaryMap["early"])
	assert.Equal(t, counts("late", 1000, 0, 0, 0), s.TableSummaryMap["late"])
}

// TestDroppedMeanwhile drops a column of a table whose comparison waits for a lock: the statements that it has planned fail, and what is there
// by then is compared at the next try, without a person.
func TestDroppedMeanwhile(t *testing.T) {
	b := testBed(t)
	ctx := longContext(t)
	w, one := b.moveToOne(t, ctx, "shrunk", "shrunk", "create table shrunk (id int primary key, n int, was int)", "insert into shrunk select n, n, n from numbers")
	require.NoError(t, one.Exec(ctx, "alter table shrunk modify n varchar(20)"))
	unlock := hold(t, ctx, b.source(), "begin", "update shrunk set n = 0 where id = 1")
	uuid, err := w.VDiffCreate(ctx, "--tablet-types", "primary")
	require.NoError(t, err)
	require.NoError(t, cluster.WaitFor(ctx, "the vdiff to wait for the table", 20*time.Millisecond, func(ctx context.Context) (bool, error) {
		result, err := b.source().Query(ctx, "select count(*) from information_schema.processlist where info like 'lock tables%shrunk%'")
		return err == nil && result.Rows[0][0].ToString() != "0", err
	}))
	dropped := make(chan error, 1)
	go func() { dropped <- b.source().Exec(ctx, "alter table shrunk drop column was") }()
	require.NoError(t, one.Exec(ctx, "alter table shrunk drop column was", "update shrunk set n = '0' where id in (7, 8)"))
	unlock()
	require.NoError(t, <-dropped)
	s, err := w.WaitVDiff(ctx, uuid, vdiff.CompletedState)
	require.NoError(t, err)
	assert.Equal(t, counts("shrunk", 998, 2, 0, 0), s.TableSummaryMap["shrunk"])
}

// TestAlteredOnItsWay begins a vdiff while the workflow has a new column of the source still to bring to the target: the two sides do not fit
// together, which passes by itself, so that the vdiff is tried again and completes without a person.
func TestAlteredOnItsWay(t *testing.T) {
	b := testBed(t)
	ctx := longContext(t)
	require.NoError(t, addOne(ctx, b))
	require.NoError(t, b.source().Exec(ctx, "create table widened (id int primary key, n int)", "insert into widened select n, n from numbers"))
	w := b.c.Workflow("one", "widened")
	require.NoError(t, w.MoveTables(ctx, "--source-keyspace", sourceName, "--tables", "widened", "--on-ddl", "EXEC"))
	t.Cleanup(func() { assert.NoError(t, w.Cancel(context.WithoutCancel(ctx), "MoveTables")) })
	uuid, err := w.VDiffCreate(ctx, "--auto-start=false") // vtctld creates none for streams that are stopped
	require.NoError(t, err)
	_, err = b.c.Vtctl(ctx, "Workflow", "--keyspace", "one", "stop", "--workflow", "widened")
	require.NoError(t, err)
	require.NoError(t, b.source().Exec(ctx, "alter table widened add column extra int default 5", "update widened set extra = 6 where id = 7"))
	_, err = w.VDiff(ctx, "resume", uuid)
	require.NoError(t, err)
	s, err := w.WaitVDiff(ctx, uuid, vdiff.ErrorState)
	require.NoError(t, err)
	require.Contains(t, s.Errors["0"], "widened has columns that the target table does not have")
	_, err = b.c.Vtctl(ctx, "Workflow", "--keyspace", "one", "start", "--workflow", "widened")
	require.NoError(t, err)
	s, err = w.WaitVDiff(ctx, uuid, vdiff.CompletedState)
	require.NoError(t, err)
	assert.Empty(t, s.Errors)
	assert.Equal(t, counts("widened", 1000, 0, 0, 0), s.TableSummaryMap["widened"])
}
