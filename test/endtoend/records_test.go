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

const (
	// retryTime is long enough for several retries of the cluster's tablets.
	retryTime = 3 * time.Second
	retryPoll = 200 * time.Millisecond
)

// TestGarbageRecords puts records into _vt that no engine has written, and restarts the tablet. Each
// ends in exact counts or in an error that says what to do; the other vdiffs are not kept from running.
func TestGarbageRecords(t *testing.T) {
	b := testBed(t)
	f := func(name, garbage string, completes bool, wantError string) {
		t.Run(name, func(t *testing.T) {
			ctx := testContext(t)
			other := create(t, ctx, b.small)
			_, err := other.w.WaitVDiff(ctx, other.uuid, vdiff.CompletedState)
			require.NoError(t, err)
			r := create(t, ctx, b.small)
			_, err = r.w.WaitVDiff(ctx, r.uuid, vdiff.CompletedState)
			require.NoError(t, err)
			b.target().Kill()
			require.NoError(t, b.target().Exec(ctx,
				"update _vt.vdiff v join _vt.vdiff_table t on t.vdiff_id = v.id set v.state = 'started', t.state = 'started' where t.table_name = 's1'",
				"update _vt.vdiff v join _vt.vdiff_table t on t.vdiff_id = v.id set "+garbage+" where t.table_name = 's1' and v.vdiff_uuid = '"+r.uuid+"'"))
			require.NoError(t, b.target().Start(ctx))
			s, err := other.w.WaitVDiff(ctx, other.uuid, vdiff.CompletedState)
			require.NoError(t, err)
			b.matches(t, s, "s1", "s2", "s3")
			if completes {
				s, err := r.w.WaitVDiff(ctx, r.uuid, vdiff.CompletedState)
				require.NoError(t, err)
				b.matches(t, s, "s1", "s2", "s3")
			} else {
				s, err := r.w.WaitVDiff(ctx, r.uuid, vdiff.ErrorState)
				require.NoError(t, err)
				assert.Contains(t, s.Errors["-80"], wantError)
				staysIn(t, ctx, b, r, vdiff.ErrorState, retryTime)
			}
			b.cleanUp(t, b.small)
		})
	}
	f("options are a string", `v.options = '"x"'`, false, "options")
	f("options are of other types", `v.options = '{"core_options": {"max_rows": "many"}}'`, false, "options")
	f("options are null", `v.options = NULL`, true, "")
	f("unknown state", `v.state = 'dreaming'`, false, "dreaming")
	f("lastpk is garbage", `t.lastpk = 'garbage'`, true, "")
	f("lastpk is of another table", `t.lastpk = 'target:{fields:{name:"x" type:INT64} fields:{name:"y" type:INT64} rows:{lengths:1 lengths:1 values:"12"}}'`, true, "")
	f("report is garbage", `t.report = '{"ProcessedRows": -5, "MatchingRows": "x"}', t.lastpk = 'target:{fields:{name:"id" type:INT64} rows:{lengths:4 values:"5000"}}'`, true, "")
	f("report is null", `t.report = NULL, t.lastpk = NULL`, true, "")
	f("unknown table state", `t.state = 'dreaming', t.lastpk = NULL`, true, "")
}

// TestTakeOver lets the stock engine go on with a vdiff that ours left in the middle of a table, and
// ours with one that the stock engine left. Every row is counted once.
func TestTakeOver(t *testing.T) {
	b := testBed(t)
	for _, stockFirst := range []bool{false, true} {
		name := "from ours to stock"
		if stockFirst {
			name = "from stock to ours"
		}
		t.Run(name, func(t *testing.T) {
			ctx := testContext(t)
			target := b.target()
			restart := func(stock bool) {
				target.Kill()
				target.Stock = stock
				require.NoError(t, target.Start(ctx))
			}
			defer func() { target.Stock = false }()
			if stockFirst {
				restart(true)
			}
			r := reachMidTable(t, ctx, b)
			restart(!stockFirst)
			s, err := r.w.WaitVDiff(ctx, r.uuid, vdiff.CompletedState)
			require.NoError(t, err)
			b.matches(t, s, "b1")
			if !stockFirst {
				restart(false)
			}
			require.NoError(t, cluster.WaitFor(ctx, "the tablet to answer", retryPoll, func(ctx context.Context) (bool, error) {
				_, err := r.w.VDiffShow(ctx, r.uuid)
				return err == nil, nil
			}))
			b.cleanUp(t, b.big)
		})
	}
}

// TestKillSwitch runs the stock engine in the binary of vttablet-ext.
func TestKillSwitch(t *testing.T) {
	b := testBed(t)
	ctx := testContext(t)
	target := b.target()
	require.NoError(t, target.Term(ctx))
	require.NoError(t, target.Start(ctx, "--vdiff-plugin=false"))
	s, err := b.small.Diff(ctx)
	require.NoError(t, err)
	b.matches(t, s, "s1", "s2", "s3")
	metrics, err := target.Metrics(ctx)
	require.NoError(t, err)
	assert.NotZero(t, metrics["VDiffRowsComparedTotal"], "the stock engine compared")
	require.NoError(t, target.Term(ctx))
	require.NoError(t, target.Start(ctx))
	require.NoError(t, target.WaitServing(ctx))
	b.cleanUp(t, b.small)
}
