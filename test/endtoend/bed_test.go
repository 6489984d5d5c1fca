// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package endtoend

import (
	"context"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"vitess.io/vitess/go/vt/vtctl/workflow"
	"vitess.io/vitess/go/vt/vttablet/tabletmanager/vdiff"

	"github.com/vttablet-ext/vttablet-ext/test/endtoend/cluster"
)

// bed is the cluster that the tests of this package share: keyspace src (shard 0) moves to dst (-80
// and 80-) in two workflows, small with tables that are compared in a moment and big with one that
// takes seconds.
type bed struct {
	c     *cluster.Cluster
	small *cluster.Workflow
	big   *cluster.Workflow
	// rows has the number of rows of each table over all shards.
	rows map[string]int64
}

const (
	smallRows  = 20_000
	bigRows    = 1_000_000
	waitTime   = 10 * time.Minute
	smallName  = "small"
	bigName    = "big"
	sourceName = "src"
	targetName = "dst"
)

// extFlags make the plug-in try again soon, so that tests of retries are short.
var extFlags = []string{"--vdiff-plugin-lock-wait=500ms", "--vdiff-plugin-retry-interval=1s"}

var (
	shared   *bed
	makeOnce sync.Once
	makeErr  error
)

func TestMain(m *testing.M) {
	code := m.Run()
	if shared != nil {
		if code != 0 {
			shared.c.Fail()
		}
		if err := shared.c.Close(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

// testBed returns the shared cluster, which it starts when it is not there yet. A test that uses it
// fails when any log of the cluster has a panic at its end.
func testBed(t *testing.T) *bed {
	t.Helper()
	makeOnce.Do(func() {
		started := time.Now()
		shared, makeErr = newBed()
		t.Logf("the cluster and its workflows are up after %v", time.Since(started).Round(time.Second))
	})
	require.NoError(t, makeErr)
	t.Cleanup(func() { noPanics(t, shared.c) })
	return shared
}

func newBed() (*bed, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 8*time.Minute)
	defer cancel()
	c, err := cluster.New(ctx, cluster.Options{ExtFlags: extFlags})
	if err != nil {
		return nil, err
	}
	b := &bed{c: c, small: c.Workflow(targetName, smallName), big: c.Workflow(targetName, bigName), rows: map[string]int64{
		"s1": smallRows, "s2": smallRows / 2, "s3": smallRows / 4, "b1": bigRows,
	}}
	if err := b.fill(ctx); err != nil {
		c.Fail()
		return nil, fmt.Errorf("%w (closing: %v)", err, c.Close())
	}
	return b, nil
}

func (b *bed) fill(ctx context.Context) error {
	sharded := `{"sharded": true, "vindexes": {"hash": {"type": "hash"}}, "tables": {
		"s1": {"column_vindexes": [{"column": "id", "name": "hash"}]}, "s2": {"column_vindexes": [{"column": "a", "name": "hash"}]},
		"s3": {"column_vindexes": [{"column": "a", "name": "hash"}]}, "b1": {"column_vindexes": [{"column": "id", "name": "hash"}]}}}`
	err := b.c.AddKeyspaces(ctx,
		cluster.Keyspace{Name: sourceName, Shards: []cluster.Shard{{Name: "0", Replicas: 1}}, VSchema: `{"tables": {"s1": {}, "s2": {}, "s3": {}, "b1": {}}}`},
		cluster.Keyspace{Name: targetName, Shards: []cluster.Shard{{Name: "-80", Replicas: 1}, {Name: "80-"}}, VSchema: sharded})
	if err != nil {
		return err
	}
	src := b.c.Primary(sourceName, "0")
	statements := []string{
		"create table s1 (id bigint primary key, v varchar(100), n decimal(10,2))",
		"create table s2 (a int, b varchar(20), c datetime(3), d int, primary key (b, a))",
		"create table s3 (a int, b int)",
		"create table b1 (id bigint primary key, v varchar(200), n int)",
		// Numbers 1 to 1000 come from a table of their own: recursive queries are slow.
		"create table numbers (n int primary key)",
		"insert into numbers with recursive r as (select 1 as n union all select n + 1 from r where n < 1000) select n from r",
		"insert into s1 select x.n * 1000 + y.n, concat('value ', y.n), x.n / 7 from numbers x, numbers y where x.n <= " + fmt.Sprint(smallRows/1000),
		"insert into s2 select id, concat('k', id % 977), '2020-01-02 03:04:05.678', id % 5 from s1 order by id limit " + fmt.Sprint(smallRows/2),
		"insert into s3 select id % 500, id % 7 from s1 order by id limit " + fmt.Sprint(smallRows/4),
		"insert into b1 select x.n * 1000 + y.n, concat(repeat('abc ', 20), y.n), x.n from numbers x, numbers y",
	}
	if err := src.Exec(ctx, statements...); err != nil {
		return err
	}
	if err := b.small.MoveTables(ctx, "--source-keyspace", sourceName, "--tables", "s1,s2,s3"); err != nil {
		return err
	}
	return b.big.MoveTables(ctx, "--source-keyspace", sourceName, "--tables", "b1")
}

// addOne adds keyspace one, of one shard, to the bed if it is not there yet.
func addOne(ctx context.Context, b *bed) error {
	if b.c.Primary("one", "0") != nil {
		return nil
	}
	return b.c.AddKeyspace(ctx, cluster.Keyspace{Name: "one", Shards: []cluster.Shard{{Name: "0"}}, VSchema: `{}`})
}

// moveToOne runs statements on the source and moves tables to keyspace one by a workflow that ends with the test. It returns the workflow and the
// keyspace's primary.
func (b *bed) moveToOne(t *testing.T, ctx context.Context, name, tables string, statements ...string) (*cluster.Workflow, *cluster.Tablet) {
	t.Helper()
	require.NoError(t, addOne(ctx, b))
	require.NoError(t, b.source().Exec(ctx, statements...))
	w := b.c.Workflow("one", name)
	require.NoError(t, w.MoveTables(ctx, "--source-keyspace", sourceName, "--tables", tables))
	t.Cleanup(func() { assert.NoError(t, w.Cancel(context.WithoutCancel(ctx), "MoveTables")) })
	return w, b.c.Primary("one", "0")
}

// source is the primary of the source.
func (b *bed) source() *cluster.Tablet { return b.c.Primary(sourceName, "0") }

// target is the primary of the target shard -80, the one that things happen to.
func (b *bed) target() *cluster.Tablet { return b.c.Primary(targetName, "-80") }

// context ends with the test, or when the test takes far too long.
func testContext(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), waitTime)
	t.Cleanup(cancel)
	return ctx
}

// matches asserts that a completed vdiff found every row of the workflow's tables equal, counted once.
func (b *bed) matches(t *testing.T, s *workflow.Summary, tables ...string) {
	t.Helper()
	require.NotNil(t, s)
	assert.Equal(t, vdiff.CompletedState, s.State)
	assert.False(t, s.HasMismatch)
	assert.Empty(t, s.Errors)
	assert.ElementsMatch(t, tables, slices.Collect(maps.Keys(s.TableSummaryMap)))
	var all int64
	for name, table := range s.TableSummaryMap {
		want := b.rows[name]
		all += want
		assert.Equal(t, workflow.TableSummary{
			TableName: name, State: vdiff.CompletedState, RowsCompared: want, MatchingRows: want,
		}, table)
	}
	assert.Equal(t, all, s.RowsCompared)
}

// tables of a workflow of the bed.
func (b *bed) tables(w *cluster.Workflow) []string {
	if w == b.big {
		return []string{"b1"}
	}
	return []string{"s1", "s2", "s3"}
}

// cleanUp deletes the vdiffs of a workflow and checks that nothing of them is left in _vt, and that the
// workflow runs as before.
func (b *bed) cleanUp(t *testing.T, w *cluster.Workflow) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), waitTime)
	defer cancel()
	require.NoError(t, w.WaitRunning(ctx))
	err := cluster.WaitFor(ctx, "vdiffs to be deleted", 200*time.Millisecond, func(ctx context.Context) (bool, error) {
		_, err := w.VDiff(ctx, "delete", "all")
		return err == nil, nil
	})
	require.NoError(t, err)
	for _, p := range w.Primaries() {
		for _, table := range []string{"vdiff", "vdiff_table", "vdiff_log"} {
			result, err := p.Query(ctx, "select count(*) from _vt."+table)
			require.NoError(t, err)
			assert.Equal(t, "0", result.Rows[0][0].ToString(), "rows left in _vt.%s of %s", table, p.Alias)
		}
	}
	require.NoError(t, w.WaitRunning(ctx))
}

var panics = regexp.MustCompile(`^panic:|panic while|DATA RACE|segmentation violation`)

// noPanics fails the test when a log of the cluster has a panic.
func noPanics(t *testing.T, c *cluster.Cluster) {
	t.Helper()
	lines, err := c.GrepLogs(panics)
	require.NoError(t, err)
	assert.Empty(t, strings.Join(lines, "\n"))
}

// waitErrors waits until a vdiff has an error on each of the shards: it is in error as soon as one of them is.
func waitErrors(t *testing.T, ctx context.Context, w *cluster.Workflow, uuid string, shards ...string) *workflow.Summary {
	t.Helper()
	var s *workflow.Summary
	require.NoError(t, cluster.WaitFor(ctx, "the errors of all shards", 100*time.Millisecond, func(ctx context.Context) (bool, error) {
		var err error
		s, err = w.VDiffShow(ctx, uuid)
		return err == nil && !slices.ContainsFunc(shards, func(shard string) bool { return s.Errors[shard] == "" }), err
	}))
	return s
}
