// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package endtoend

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"vitess.io/vitess/go/vt/vttablet/tabletmanager/vdiff"

	"github.com/vttablet-ext/vttablet-ext/test/endtoend/cluster"
)

// TestNeverStopped compares workflows in which nothing changes and nothing differs: no stream is stopped or even
// touched meanwhile, and no table is locked on any MySQL.
func TestNeverStopped(t *testing.T) {
	b := testBed(t)
	ctx := testContext(t)
	locks := func() (n int64) {
		for _, tablet := range []*cluster.Tablet{b.source(), b.target(), b.c.Primary(targetName, "80-")} {
			n += status(t, ctx, tablet, "Com_lock_tables")
		}
		return n
	}
	before := locks()
	for _, w := range []*cluster.Workflow{b.small, b.big} {
		watch := watchStreams(ctx, w)
		s, err := w.Diff(ctx, "--tablet-types", "primary")
		require.NoError(t, err)
		b.matches(t, s, b.tables(w)...)
		samples, touched := watch()
		assert.Greater(t, samples, 5)
		assert.Zero(t, len(touched), "samples in which a stream was touched: %v", touched[:min(len(touched), 3)])
		b.cleanUp(t, w)
	}
	assert.Equal(t, before, locks(), "LOCK TABLES statements")
}

// status reads a counter of a tablet's MySQL.
func status(t *testing.T, ctx context.Context, tablet *cluster.Tablet, name string) int64 {
	t.Helper()
	result, err := tablet.Query(ctx, "show global status like '"+name+"'")
	require.NoError(t, err)
	require.Len(t, result.Rows, 1)
	n, err := result.Rows[0][1].ToCastInt64()
	require.NoError(t, err)
	return n
}

// watchStreams looks at the streams of a workflow until the function that it returns is called: how often it
// looked, and what it saw of streams that were not simply running.
func watchStreams(ctx context.Context, w *cluster.Workflow) func() (samples int, touched []string) {
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	samples, touched := 0, []string(nil)
	wg.Go(func() {
		_ = cluster.WaitFor(ctx, "the end of the watch", 5*time.Millisecond, func(ctx context.Context) (bool, error) {
			streams, err := w.Streams(ctx)
			if err != nil {
				return false, nil
			}
			samples++
			for _, s := range streams {
				if s.State != "Running" || strings.HasPrefix(s.Message, "vdiff") || s.StopPos != "" {
					touched = append(touched, fmt.Sprintf("%+v", s))
				}
			}
			return false, nil
		})
	})
	return func() (int, []string) {
		cancel()
		wg.Wait()
		return samples, touched
	}
}

// TestDigestDifferences changes, deletes and inserts rows of the big table's target behind the back of replication. Each is
// found exactly, with its row, and only the ranges that have them are compared row by row.
func TestDigestDifferences(t *testing.T) {
	b := testBed(t)
	ctx := testContext(t)
	target := b.target()
	ids, err := target.Query(ctx, "(select id from b1 where id > 200000 order by id limit 1) union all (select id from b1 where id > 500000 order by id limit 1) union all (select id from b1 order by id desc limit 1)")
	require.NoError(t, err)
	require.Len(t, ids.Rows, 3)
	changed, deleted, last := ids.Rows[0][0].ToString(), ids.Rows[1][0].ToString(), ids.Rows[2][0].ToString()
	require.NoError(t, target.Exec(ctx,
		"update b1 set v = concat(v, '!') where id = "+changed,
		"delete from b1 where id = "+deleted,
		"insert into b1 values (77777777, 'extra', 1), (-5, 'extra', 1)",
		"update b1 set n = n + 1 where id = "+last))
	s, err := b.big.Diff(ctx, "--max-extra-rows-to-compare", "0")
	require.NoError(t, err)
	table := s.TableSummaryMap["b1"]
	assert.True(t, s.HasMismatch)
	assert.Equal(t, int64(bigRows+2), table.RowsCompared)
	assert.Equal(t, int64(bigRows-3), table.MatchingRows)
	assert.Equal(t, int64(2), table.MismatchedRows)
	assert.Equal(t, int64(1), table.ExtraRowsSource)
	assert.Equal(t, int64(2), table.ExtraRowsTarget)
	fenced, ok := metric(t, ctx, target, "VDiffPluginRanges")["big."+s.UUID+".b1.fenced"]
	assert.True(t, ok)
	assert.InDelta(t, 5, fenced, 5, "ranges left for the fence")

	require.NoError(t, target.Exec(ctx,
		"delete from b1 where id in (77777777, -5)",
		"update b1 set v = left(v, length(v) - 1) where id = "+changed,
		"update b1 set n = n - 1 where id = "+last,
		"insert into b1 select "+deleted+", concat(repeat('abc ', 20), n - 1000), 0 from (select 0 as n) x"))
	source, err := b.source().Query(ctx, "select v, n from b1 where id = "+deleted)
	require.NoError(t, err)
	require.NoError(t, target.Exec(ctx, fmt.Sprintf("update b1 set v = '%s', n = %s where id = %s", source.Rows[0][0].ToString(), source.Rows[0][1].ToString(), deleted)))
	s, err = b.big.Diff(ctx)
	require.NoError(t, err)
	b.matches(t, s, "b1")
	b.cleanUp(t, b.big)
}

// metric reads a metric with labels.
func metric(t *testing.T, ctx context.Context, tablet *cluster.Tablet, name string) map[string]float64 {
	t.Helper()
	vars, err := tablet.Metrics(ctx)
	require.NoError(t, err)
	values, ok := vars[name].(map[string]any)
	require.True(t, ok, "%s is %T", name, vars[name])
	result := make(map[string]float64)
	for key, v := range values {
		result[key], ok = v.(float64)
		require.True(t, ok)
	}
	return result
}

// TestLaneCheckpoint kills the tablet in the middle of the big table. Its record then says which ranges are verified, and
// the next process reads only the others.
func TestLaneCheckpoint(t *testing.T) {
	b := testBed(t)
	ctx := testContext(t)
	r := reachMidTable(t, ctx, b)
	b.target().Kill()
	result, err := b.target().Query(ctx, "select t.rows_compared, json_extract(t.report, '$.Checkpoint') from _vt.vdiff_table t join _vt.vdiff v on v.id = t.vdiff_id where v.vdiff_uuid = '"+r.uuid+"'")
	require.NoError(t, err)
	verified, err := result.Rows[0][0].ToInt64()
	require.NoError(t, err)
	var c struct {
		Segments []struct {
			Done bool
			Rows int64
		}
	}
	require.NoError(t, json.Unmarshal(result.Rows[0][1].Raw(), &c))
	var sum, open int64
	for _, s := range c.Segments {
		sum += s.Rows
		if !s.Done {
			open++
		}
	}
	assert.Equal(t, verified, sum)
	assert.Positive(t, open)
	require.NoError(t, b.target().Start(ctx))
	s, err := r.w.WaitVDiff(ctx, r.uuid, vdiff.CompletedState)
	require.NoError(t, err)
	b.matches(t, s, "b1")
	vars, err := b.target().Metrics(ctx)
	require.NoError(t, err)
	read, ok := vars["VDiffPluginRowsRead"].(float64)
	require.True(t, ok)
	// Each side sends a row once; the source also those that the vindex does not pass: three times half of the table.
	assert.Less(t, read, 3*(bigRows/2-float64(verified))+float64(bigRows)/5)
	b.cleanUp(t, b.big)
}

// TestMixedCluster compares with a stock vttablet on the source, and then with one among the target's replicas: both
// have no scan service, and the verdict is as exact as ever.
func TestMixedCluster(t *testing.T) {
	b := testBed(t)
	ctx := testContext(t)
	restart := func(tablet *cluster.Tablet, stock bool) {
		require.NoError(t, tablet.Term(ctx))
		tablet.Stock = stock
		require.NoError(t, tablet.Start(ctx))
		require.NoError(t, tablet.WaitServing(ctx))
		require.NoError(t, b.small.WaitRunning(ctx))
	}
	replica := b.c.Shard(targetName, "-80")[0]
	if replica.Alias == b.target().Alias {
		replica = b.c.Shard(targetName, "-80")[1]
	}
	for _, mixed := range []struct {
		tablet *cluster.Tablet
		types  string
	}{{b.source(), "primary"}, {replica, "replica"}} {
		restart(mixed.tablet, true)
		s, err := b.small.Diff(ctx, "--tablet-types", mixed.types+",primary")
		require.NoError(t, err)
		b.matches(t, s, "s1", "s2", "s3")
		if mixed.tablet == b.source() {
			b.cleanUp(t, b.small)
			b.testStockSource(t)
		}
		restart(mixed.tablet, false)
	}
	b.cleanUp(t, b.small)
}

// testStockSource: rows that come by VStreamRows are compared while the workflow runs, too, and differences are found exactly.
func (b *bed) testStockSource(t *testing.T) {
	ctx := testContext(t)
	require.NoError(t, b.big.WaitRunning(ctx))
	watch := watchStreams(ctx, b.big)
	s, err := b.big.Diff(ctx, "--tablet-types", "primary")
	require.NoError(t, err)
	b.matches(t, s, "b1")
	samples, touched := watch()
	assert.Greater(t, samples, 5)
	assert.Zero(t, len(touched), "samples in which a stream was touched: %v", touched[:min(len(touched), 3)])

	result, err := b.target().Query(ctx, "select id from b1 where id > 300000 order by id limit 1")
	require.NoError(t, err)
	changed := result.Rows[0][0].ToString()
	require.NoError(t, b.target().Exec(ctx, "update b1 set n = n + 1 where id = "+changed, "insert into b1 values (-5, 'extra', 1)"))
	s, err = b.big.Diff(ctx, "--tablet-types", "primary")
	require.NoError(t, err)
	table := s.TableSummaryMap["b1"]
	assert.Equal(t, []int64{bigRows - 1, 1, 0, 1}, []int64{table.MatchingRows, table.MismatchedRows, table.ExtraRowsSource, table.ExtraRowsTarget})
	require.NoError(t, b.target().Exec(ctx, "update b1 set n = n - 1 where id = "+changed, "delete from b1 where id = -5"))
	b.cleanUp(t, b.big)
}
