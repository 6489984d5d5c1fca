// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package endtoend

import (
	"context"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"vitess.io/vitess/go/vt/vttablet/tabletmanager/vdiff"

	"github.com/vttablet-ext/vttablet-ext/test/endtoend/cluster"
)

// TestHugeReport compares twenty rows of 1 MB that all differ, with reports that may show all of them, on a server that takes statements of 4 MB:
// the vdiff completes and can be shown and resumed, and its report, larger than MySQL's sort buffer, is bounded and says that it is cut.
func TestHugeReport(t *testing.T) {
	b := testBed(t)
	ctx := longContext(t)
	w, one := b.moveToOne(t, ctx, "huge", "huge", "create table huge (id int primary key, doc longblob)", "insert into huge select n, repeat(char(64 + n), 1 << 20) from numbers where n <= 20")
	result, err := one.Query(ctx, "select @@global.max_allowed_packet")
	require.NoError(t, err)
	require.NoError(t, one.Exec(ctx, "update huge set doc = concat('!', substr(doc, 2))", "set global max_allowed_packet = 4 << 20"))
	defer func() {
		assert.NoError(t, one.Exec(context.WithoutCancel(ctx), "set global max_allowed_packet = "+result.Rows[0][0].ToString()))
	}()
	s, err := w.Diff(ctx, "--row-diff-column-truncate-at", "0", "--max-report-sample-rows", "0", "--debug-query")
	require.NoError(t, err)
	assert.Equal(t, counts("huge", 0, 20, 0, 0), s.TableSummaryMap["huge"])
	assert.NotEmpty(t, s.Reports["huge"]["0"].MismatchedRowsDiffs)
	stored, err := one.Query(ctx, "select length(t.report), json_extract(t.report, '$.Truncated') from _vt.vdiff_table t join _vt.vdiff v on v.id = t.vdiff_id where v.vdiff_uuid = '"+s.UUID+"'")
	require.NoError(t, err)
	size, err := stored.Rows[0][0].ToInt64()
	require.NoError(t, err)
	assert.Less(t, size, int64(2<<20))
	assert.Greater(t, size, int64(256<<10))
	assert.Equal(t, "true", stored.Rows[0][1].ToString())
	_, err = w.VDiff(ctx, "resume", s.UUID)
	require.NoError(t, err)
	s, err = w.WaitVDiff(ctx, s.UUID, vdiff.CompletedState)
	require.NoError(t, err)
	assert.Equal(t, counts("huge", 0, 20, 0, 0), s.TableSummaryMap["huge"])
}

// TestLockedSource holds a write lock on the table of the source: the vdiff says what it waits for and does not stop the workflow, and completes
// when the lock is gone.
func TestLockedSource(t *testing.T) {
	b := testBed(t)
	ctx := testContext(t)
	unlock := hold(t, ctx, b.source(), "lock tables s1 write")
	watch := watchStreams(ctx, b.small)
	r := create(t, ctx, b.small, "--tables", "s1", "--tablet-types", "primary")
	staysUncompleted(t, ctx, b, r, 3*time.Second)
	_, touched := watch()
	assert.Zero(t, len(touched), "samples in which a stream was touched: %v", touched[:min(len(touched), 3)])
	unlock()
	s, err := b.small.WaitVDiff(ctx, r.uuid, vdiff.CompletedState)
	require.NoError(t, err)
	b.matches(t, s, "s1")
	b.cleanUp(t, b.small)
}

// staysUncompleted fails when the vdiff completes within some time.
func staysUncompleted(t *testing.T, ctx context.Context, b *bed, r *running, d time.Duration) {
	t.Helper()
	until := time.Now().Add(d)
	require.NoError(t, cluster.WaitFor(ctx, "the vdiff to wait", 50*time.Millisecond, func(ctx context.Context) (bool, error) {
		if state := stateOf(t, ctx, b, r); state == vdiff.CompletedState {
			t.Errorf("the vdiff is %s", state)
			return true, nil
		}
		return time.Now().After(until), nil
	}))
}

// TestLaggingReplicas compares replicas that lag some seconds, on both sides, while rows change: no difference is found, and the changes
// are waited for.
func TestLaggingReplicas(t *testing.T) {
	b := testBed(t)
	ctx := testContext(t)
	var replicas []*cluster.Tablet
	for _, side := range [][2]string{{sourceName, "0"}, {targetName, "-80"}} {
		for _, tablet := range b.c.Shard(side[0], side[1]) {
			if tablet.Alias != b.c.Primary(side[0], side[1]).Alias {
				replicas = append(replicas, tablet)
			}
		}
	}
	require.Len(t, replicas, 2)
	delay := func(ctx context.Context, seconds string) {
		for _, tablet := range replicas {
			require.NoError(t, tablet.Exec(ctx, "stop replica sql_thread", "change replication source to source_delay = "+seconds, "start replica sql_thread"))
		}
	}
	delay(ctx, "3")
	defer delay(context.WithoutCancel(ctx), "0")
	for range 3 {
		require.NoError(t, b.source().Exec(ctx, "update s1 set n = n + 1 where id < 3000"))
		s, err := b.small.Diff(ctx, "--tablet-types", "replica,primary")
		require.NoError(t, err)
		b.matches(t, s, "s1", "s2", "s3")
	}
	b.cleanUp(t, b.small)
}

// TestTenantReads compares one tenant of a table that holds rows of others: MySQL reads those of the tenant only.
func TestTenantReads(t *testing.T) {
	b := testBed(t)
	ctx := longContext(t)
	require.NoError(t, b.c.AddKeyspace(ctx, cluster.Keyspace{Name: "tn", Shards: []cluster.Shard{{Name: "0"}}, VSchema: `{
		"multi_tenant_spec": {"tenant_id_column_name": "tenant_id", "tenant_id_column_type": "INT64"}, "tables": {"tn1": {}}}`}))
	target := b.c.Primary("tn", "0")
	require.NoError(t, b.source().Exec(ctx, "create table tn1 (id int, col1 int, tenant_id int, v int, primary key (id, col1))", "insert into tn1 select n, 1, 2, n from numbers"))
	require.NoError(t, target.Exec(ctx, "create table tn1 (id int, col1 int, tenant_id int, v int, primary key (tenant_id, id, col1))",
		"create table numbers (n int primary key)", "insert into numbers with recursive r as (select 1 as n union all select n + 1 from r where n < 1000) select n from r",
		"insert into tn1 select x.n * 1000 + y.n, 1, 1, 0 from numbers x, numbers y where x.n <= 50"))
	w := b.c.Workflow("tn", "tenant2")
	require.NoError(t, w.MoveTables(ctx, "--source-keyspace", sourceName, "--tables", "tn1", "--tenant-id", "2"))
	defer func() { assert.NoError(t, w.Cancel(context.WithoutCancel(ctx), "MoveTables")) }()
	before := status(t, ctx, target, "Innodb_rows_read")
	s, err := w.Diff(ctx, "--tablet-types", "primary")
	require.NoError(t, err)
	assert.Equal(t, counts("tn1", 1000, 0, 0, 0), s.TableSummaryMap["tn1"])
	assert.Less(t, status(t, ctx, target, "Innodb_rows_read")-before, int64(20_000), "rows that InnoDB read on the target, of 51,000")
}

// TestRowsCompared reads the metric of rows compared after a vdiff of two target shards: it has every row once.
func TestRowsCompared(t *testing.T) {
	b := testBed(t)
	ctx := testContext(t)
	s, err := b.small.Diff(ctx)
	require.NoError(t, err)
	b.matches(t, s, "s1", "s2", "s3")
	var rows float64
	for _, p := range b.small.Primaries() {
		for name, n := range metric(t, ctx, p, "VDiffPluginRowsCompared") {
			if strings.Contains(name, s.UUID) {
				rows += n
			}
		}
	}
	assert.EqualValues(t, smallRows+smallRows/2+smallRows/4, rows)
	b.cleanUp(t, b.small)
}

// TestRestartFails makes the restart of the workflow fail at the end of a fence, until the test sees that it did: the failure is logged, the
// restart is tried again until the streams run as before, and the vdiff finds every row.
func TestRestartFails(t *testing.T) {
	b := testBed(t)
	ctx := testContext(t)
	require.NoError(t, b.target().Exec(ctx, `create trigger _vt.no_restart before update on _vt.vreplication for each row
		begin if new.state = 'Running' and old.state <> 'Running' and coalesce(new.stop_pos, '') = '' then signal sqlstate '45000' set message_text = 'planted by a test'; end if; end`))
	drop := func() error {
		return b.target().Exec(context.WithoutCancel(ctx), "drop trigger if exists _vt.no_restart")
	}
	defer func() { assert.NoError(t, drop()) }()
	r := create(t, ctx, b.small, append([]string{"--tables", "s2"}, inFence...)...)
	failed := regexp.MustCompile(r.uuid + ".*restoring the streams of workflow small.*planted by a test")
	require.NoError(t, cluster.WaitFor(ctx, "a restart that fails", 20*time.Millisecond, func(context.Context) (bool, error) {
		lines, err := b.c.GrepLogs(failed)
		return len(lines) > 1, err // it is tried again, too
	}))
	result, err := b.target().Query(ctx, "select distinct state from _vt.vreplication where workflow = 'small'")
	require.NoError(t, err)
	require.Len(t, result.Rows, 1)
	assert.Equal(t, "Stopped", result.Rows[0][0].ToString(), "the streams while their restart fails")
	assert.NotEqual(t, vdiff.CompletedState, stateOf(t, ctx, b, r), "a vdiff whose workflow does not run")
	require.NoError(t, drop())
	s, err := b.small.WaitVDiff(ctx, r.uuid, vdiff.CompletedState)
	require.NoError(t, err)
	b.matches(t, s, "s2")
	require.NoError(t, b.small.WaitRunning(ctx))
	b.cleanUp(t, b.small)
}
