// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package endtoend

import (
	"context"
	"errors"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"vitess.io/vitess/go/vt/vttablet/tabletmanager/vdiff"

	"github.com/vttablet-ext/vttablet-ext/test/endtoend/cluster"
)

// TestCommands runs every VDiff command in text and JSON, as an operator would, and looks at what they
// print.
func TestCommands(t *testing.T) {
	b := testBed(t)
	ctx := testContext(t)
	out, err := b.small.VDiff(ctx, "create", "--wait", "--wait-update-interval", "1s")
	require.NoError(t, err)
	assert.Contains(t, out, "VDiff Summary for dst.small")
	assert.Regexp(t, `State:\s+completed`, out)
	assert.Regexp(t, `RowsCompared: 35000`, out)
	assert.Regexp(t, `HasMismatch:\s+false`, out)
	assert.Regexp(t, `CompletedAt:\s+20\d\d-`, out)

	out, err = b.small.VDiff(ctx, "create", "0ba0c3c4-1111-4111-8111-000000000001", "--auto-start=false")
	require.NoError(t, err)
	assert.Contains(t, out, "VDiff 0ba0c3c4-1111-4111-8111-000000000001 scheduled on target shards")
	_, err = b.small.VDiff(ctx, "create", "0ba0c3c4-1111-4111-8111-000000000001")
	require.ErrorContains(t, err, "already exists")
	out, err = b.small.VDiff(ctx, "show", "all")
	require.NoError(t, err)
	assert.Equal(t, 2, strings.Count(out, "stopped"), out)
	assert.Equal(t, 2, strings.Count(out, "completed"), out)
	out, err = b.small.VDiff(ctx, "show", "last", "--format", "json")
	require.NoError(t, err)
	assert.Contains(t, out, "0ba0c3c4-1111-4111-8111-000000000001")
	out, err = b.small.VDiff(ctx, "resume", "0ba0c3c4-1111-4111-8111-000000000001", "--format", "json")
	require.NoError(t, err)
	assert.Contains(t, out, `"scheduled"`)
	s, err := b.small.WaitVDiff(ctx, "0ba0c3c4-1111-4111-8111-000000000001", vdiff.CompletedState)
	require.NoError(t, err)
	b.matches(t, s, "s1", "s2", "s3")
	out, err = b.small.VDiff(ctx, "show", "0ba0c3c4-1111-4111-8111-000000000001", "--verbose")
	require.NoError(t, err)
	assert.Regexp(t, `Table s1:\s+State:\s+completed\s+ProcessedRows:\s+20000\s+MatchingRows:\s+20000`, out)
	for _, args := range [][]string{{"stop"}, {"resume"}, {"show"}, {"delete"}} {
		_, err = b.small.VDiff(ctx, append(args, "0ba0c3c4-1111-4111-8111-00000000dead")...)
		if args[0] == "stop" {
			require.NoError(t, err, "a shard without the vdiff has nothing to stop")
		} else {
			require.Error(t, err, "%v", args)
		}
	}
	out, err = b.small.VDiff(ctx, "delete", "0ba0c3c4-1111-4111-8111-000000000001")
	require.NoError(t, err)
	assert.Contains(t, out, "VDiff delete completed")
	b.cleanUp(t, b.small)
	out, err = b.small.VDiff(ctx, "show", "last")
	require.NoError(t, err)
	assert.Contains(t, out, "No previous vdiff found")
}

// TestTargetShards stops and resumes a vdiff on one of its target shards only.
func TestTargetShards(t *testing.T) {
	b := testBed(t)
	ctx := testContext(t)
	r := create(t, ctx, b.small, "--auto-start=false")
	_, err := r.w.VDiff(ctx, "resume", r.uuid, "--target-shards", "-80")
	require.NoError(t, err)
	waitForState(t, ctx, b, r, vdiff.CompletedState)
	s, err := r.w.VDiffShow(ctx, r.uuid)
	require.NoError(t, err)
	assert.Equal(t, vdiff.CompletedState, s.ShardSummaries["-80"].State)
	assert.Equal(t, vdiff.StoppedState, s.ShardSummaries["80-"].State)
	_, err = r.w.VDiff(ctx, "resume", r.uuid, "--target-shards", "80-")
	require.NoError(t, err)
	s, err = r.w.WaitVDiff(ctx, r.uuid, vdiff.CompletedState)
	require.NoError(t, err)
	b.matches(t, s, "s1", "s2", "s3")
	b.cleanUp(t, b.small)
}

// TestCreateOptions runs vdiffs with the options that change what is compared, how and where.
func TestCreateOptions(t *testing.T) {
	b := testBed(t)
	f := func(tables []string, flags ...string) {
		t.Helper()
		s, err := b.small.Diff(testContext(t), flags...)
		require.NoError(t, err, "%v", flags)
		b.matches(t, s, tables...)
	}
	all := b.tables(b.small)
	f([]string{"s1"}, "--tables", "s1")
	f([]string{"s2", "s3"}, "--tables", "s3,s2", "--update-table-stats")
	f(all, "--tablet-types", "replica,primary", "--source-cells", "zone1", "--target-cells", "zone1")
	f(all, "--tablet-types", "primary", "--filtered-replication-wait-time", "5s", "--auto-retry=false")

	ctx := testContext(t)
	s, err := b.small.Diff(ctx, "--limit", "100", "--tables", "s1")
	require.NoError(t, err)
	assert.EqualValues(t, 200, s.TableSummaryMap["s1"].RowsCompared, "100 rows on each of 2 shards")
	assert.EqualValues(t, 200, s.TableSummaryMap["s1"].MatchingRows)

	uuid, err := b.small.VDiffCreate(ctx, "--tables", "s1,nosuch,s2")
	require.NoError(t, err)
	s = waitErrors(t, ctx, b.small, uuid, "-80", "80-")
	assert.Contains(t, s.Errors["-80"], "nosuch")

	uuid, err = b.small.VDiffCreate(ctx, "--source-cells", "nowhere")
	require.NoError(t, err)
	s = waitErrors(t, ctx, b.small, uuid, "-80", "80-")
	assert.Contains(t, s.Errors["-80"], "no such cells in the topo: nowhere; it has zone1")

	uuid, err = b.small.VDiffCreate(ctx, "--tablet-types", "rdonly", "--auto-retry=false")
	require.NoError(t, err)
	_, err = b.small.VDiff(ctx, "stop", uuid)
	require.NoError(t, err)
	b.cleanUp(t, b.small)
}

// TestMaxDiffDuration limits the age of the snapshots to a second, and holds the source up for longer in the middle of the big table: it is then
// compared in several, and every row is counted once.
func TestMaxDiffDuration(t *testing.T) {
	b := testBed(t)
	ctx := testContext(t)
	r := create(t, ctx, b.big, append([]string{"--max-diff-duration", "1s"}, inFence...)...) // digests have no such snapshot
	_, completed := waitForRows(t, ctx, b, r, 0)
	require.False(t, completed, "the table was completed before its first checkpoint: it has too few rows for this machine")
	require.NoError(t, b.source().SignalMySQL(syscall.SIGSTOP))
	held := time.Now()
	err := cluster.WaitFor(ctx, "the snapshots to be too old", 20*time.Millisecond, func(context.Context) (bool, error) {
		return time.Since(held) > 1500*time.Millisecond, nil
	})
	require.NoError(t, errors.Join(err, b.source().SignalMySQL(syscall.SIGCONT)))
	s, err := b.big.WaitVDiff(ctx, r.uuid, vdiff.CompletedState)
	require.NoError(t, err)
	b.matches(t, s, "b1")
	metrics, err := b.target().Metrics(ctx)
	require.NoError(t, err)
	restarts, _ := metrics["VDiffPluginRestartedTableDiffsCount"].(map[string]any)
	assert.NotZero(t, restarts["b1"], "%v", restarts)
	b.cleanUp(t, b.big)
}

// TestReportOptions plants one difference of each kind and looks at what the options of the report
// make of them.
func TestReportOptions(t *testing.T) {
	b := testBed(t)
	ctx := testContext(t)
	undo := plant(t, ctx, b)
	defer undo()

	s, err := b.small.Diff(ctx, "--tables", "s1", "--debug-query")
	require.NoError(t, err)
	assert.True(t, s.HasMismatch)
	table := s.TableSummaryMap["s1"]
	assert.EqualValues(t, 1, table.MismatchedRows)
	assert.EqualValues(t, 1, table.ExtraRowsSource)
	assert.EqualValues(t, 1, table.ExtraRowsTarget)
	assert.EqualValues(t, smallRows-2, table.MatchingRows)
	assert.EqualValues(t, smallRows+1, table.RowsCompared)
	report := s.Reports["s1"]["-80"]
	require.Len(t, report.MismatchedRowsDiffs, 1)
	mismatch := report.MismatchedRowsDiffs[0]
	assert.Equal(t, "changed", mismatch.Target.Row["v"])
	assert.NotEqual(t, "changed", mismatch.Source.Row["v"])
	assert.Equal(t, mismatch.Source.Row["id"], mismatch.Target.Row["id"])
	require.Len(t, report.ExtraRowsSourceDiffs, 1)
	require.Len(t, report.ExtraRowsTargetDiffs, 1)
	assert.Equal(t, "-5", report.ExtraRowsTargetDiffs[0].Row["id"])
	for _, query := range []string{mismatch.Source.Query, mismatch.Target.Query} {
		result, err := b.target().Query(ctx, strings.TrimSuffix(query, ";"))
		require.NoError(t, err, query)
		assert.Len(t, result.Rows, 1, query)
	}

	s, err = b.small.Diff(ctx, "--tables", "s1", "--only-pks")
	require.NoError(t, err)
	for _, row := range s.Reports["s1"]["-80"].ExtraRowsSourceDiffs {
		assert.Len(t, row.Row, 1)
		assert.Contains(t, row.Row, "id")
	}

	s, err = b.small.Diff(ctx, "--tables", "s1", "--max-extra-rows-to-compare", "0")
	require.NoError(t, err)
	assert.Empty(t, s.Reports["s1"]["-80"].ExtraRowsSourceDiffs)
	assert.EqualValues(t, 1, s.TableSummaryMap["s1"].ExtraRowsSource, "counted all the same")
	b.cleanUp(t, b.small)
}

// plant changes, deletes and inserts one row of s1 on the target -80 behind replication, and returns a
// function that undoes it.
func plant(t *testing.T, ctx context.Context, b *bed) func() {
	t.Helper()
	target := b.target()
	result, err := target.Query(ctx, "select id, v from s1 where id > 0 order by id limit 10")
	require.NoError(t, err)
	changed, deleted := result.Rows[3], result.Rows[7]
	require.NoError(t, target.Exec(ctx,
		"create table if not exists s1_undo as select * from s1 where id in ("+changed[0].ToString()+", "+deleted[0].ToString()+")",
		"update s1 set v = 'changed' where id = "+changed[0].ToString(),
		"delete from s1 where id = "+deleted[0].ToString(),
		"insert into s1 (id, v, n) values (-5, 'inserted', 0)"))
	return func() {
		ctx, cancel := context.WithTimeout(context.Background(), waitTime)
		defer cancel()
		assert.NoError(t, target.Exec(ctx, "replace into s1 select * from s1_undo", "delete from s1 where id = -5", "drop table s1_undo"))
		s, err := b.small.Diff(ctx, "--tables", "s1")
		assert.NoError(t, err)
		b.matches(t, s, "s1")
		b.cleanUp(t, b.small)
	}
}

// TestAutoRetryOff lets a vdiff without --auto-retry fail: it stays in error until it is resumed.
func TestAutoRetryOff(t *testing.T) {
	b := testBed(t)
	ctx := testContext(t)
	rollback := hold(t, ctx, b.source(), "begin", "update s1 set v = concat(v, '!') where id = 1001")
	r := create(t, ctx, b.small, append(inFence, "--auto-retry=false", "--tables", "s1")...)
	r.release = rollback
	waitForState(t, ctx, b, r, vdiff.ErrorState)
	r.release()
	staysIn(t, ctx, b, r, vdiff.ErrorState, retryTime)
	require.NoError(t, cluster.WaitFor(ctx, "resume", retryPoll, func(ctx context.Context) (bool, error) {
		_, err := r.w.VDiff(ctx, "resume", r.uuid)
		return err == nil, nil
	}))
	s, err := r.w.WaitVDiff(ctx, r.uuid, vdiff.CompletedState)
	require.NoError(t, err)
	b.matches(t, s, "s1")
	b.cleanUp(t, b.small)
}
