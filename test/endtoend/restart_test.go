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

// disturb does something to the cluster while a vdiff is held in a phase. It returns when what it did
// is over: the tablet is back.
type disturbance struct {
	name string
	do   func(t *testing.T, ctx context.Context, b *bed)
}

var disturbances = []disturbance{
	{"SIGKILL", func(t *testing.T, ctx context.Context, b *bed) {
		b.target().Kill()
		require.NoError(t, b.target().Start(ctx))
	}},
	{"SIGTERM", func(t *testing.T, ctx context.Context, b *bed) {
		require.NoError(t, b.target().Term(ctx))
		require.NoError(t, b.target().Start(ctx))
	}},
	{"mysqld killed", func(t *testing.T, ctx context.Context, b *bed) {
		b.target().KillMySQL()
		// It comes back writable. One that stays read-only until somebody makes it writable stops the workflow for good
		// with some luck: a stream that cannot write its state takes that for a terminal error.
		require.NoError(t, b.target().StartMySQL(ctx, cluster.Writable...))
	}},
	{"target reparented", func(t *testing.T, ctx context.Context, b *bed) {
		reparent(t, ctx, b.c, targetName, "-80")
	}},
	{"source reparented", func(t *testing.T, ctx context.Context, b *bed) {
		reparent(t, ctx, b.c, sourceName, "0")
	}},
}

func reparent(t *testing.T, ctx context.Context, c *cluster.Cluster, keyspace, shard string) {
	t.Helper()
	for _, tablet := range c.Shard(keyspace, shard) {
		if tablet.Alias != c.Primary(keyspace, shard).Alias {
			require.NoError(t, c.Reparent(ctx, keyspace, shard, tablet.Alias))
			return
		}
	}
	t.Fatalf("%s/%s has no replica", keyspace, shard)
}

// TestDisturbed disturbs a vdiff in every phase of its life in every way. By itself it must then
// complete with every row counted once, and the workflow must run as before.
func TestDisturbed(t *testing.T) {
	b := testBed(t)
	for _, p := range phases {
		for _, d := range disturbances {
			t.Run(p.name+"/"+d.name, func(t *testing.T) {
				ctx := testContext(t)
				r := p.reach(t, ctx, b)
				if p.name == "planning" || p.name == "in the fence" || p.name == "errored" {
					if d.name == "source reparented" {
						// The old primary would wait for the session that holds the lock.
						r.release()
					}
				}
				d.do(t, ctx, b)
				r.release()
				s, err := r.w.WaitVDiff(ctx, r.uuid, vdiff.CompletedState)
				require.NoError(t, err)
				b.matches(t, s, b.tables(r.w)...)
				b.cleanUp(t, r.w)
			})
		}
	}
}

// TestTenKills kills the tablet of a target primary ten times in a row: first in the middle of the table, then each time
// after some progress, if there is any left to be made. The diff must complete by itself with every row counted once.
func TestTenKills(t *testing.T) {
	b := testBed(t)
	ctx := testContext(t)
	r := reachMidTable(t, ctx, b)
	rows, completed := int64(1), false
	for kill := range 10 {
		if kill > 0 && !completed && rows < bigRows/4 {
			rows, completed = waitForRows(t, ctx, b, r, rows)
		}
		b.target().Kill()
		require.NoError(t, b.target().Start(ctx), "kill %d", kill)
	}
	s, err := r.w.WaitVDiff(ctx, r.uuid, vdiff.CompletedState)
	require.NoError(t, err)
	b.matches(t, s, "b1")
	b.cleanUp(t, b.big)
}

// TestStopResumeDelete stops a vdiff in every phase: it stays stopped, also over a restart, until it is
// resumed, and then completes. It also deletes one in every phase: nothing of it is left.
func TestStopResumeDelete(t *testing.T) {
	b := testBed(t)
	for _, p := range phases {
		t.Run(p.name+"/stop and resume", func(t *testing.T) {
			ctx := testContext(t)
			r := p.reach(t, ctx, b)
			started := time.Now()
			_, err := r.w.VDiff(ctx, "stop", r.uuid)
			require.NoError(t, err)
			assert.Less(t, time.Since(started), 15*time.Second)
			want := vdiff.StoppedState
			if r.final != "" {
				want = r.final
			}
			if stateOf(t, ctx, b, r) == vdiff.CompletedState {
				want = vdiff.CompletedState // nothing held it, it was faster than the client, and stays so
			}
			waitForState(t, ctx, b, r, want)
			r.release()
			require.NoError(t, r.w.WaitRunning(ctx))
			b.target().Kill()
			require.NoError(t, b.target().Start(ctx))
			staysIn(t, ctx, b, r, want, 3*time.Second)
			err = cluster.WaitFor(ctx, "the vdiff to be resumed", 200*time.Millisecond, func(ctx context.Context) (bool, error) {
				_, err := r.w.VDiff(ctx, "resume", r.uuid)
				return err == nil, nil
			})
			require.NoError(t, err)
			s, err := r.w.WaitVDiff(ctx, r.uuid, vdiff.CompletedState)
			require.NoError(t, err)
			b.matches(t, s, b.tables(r.w)...)
			b.cleanUp(t, r.w)
		})
		t.Run(p.name+"/delete", func(t *testing.T) {
			ctx := testContext(t)
			r := p.reach(t, ctx, b)
			started := time.Now()
			_, err := r.w.VDiff(ctx, "delete", r.uuid)
			require.NoError(t, err)
			assert.Less(t, time.Since(started), 15*time.Second)
			_, err = r.w.VDiff(ctx, "show", r.uuid)
			require.ErrorContains(t, err, "no vdiff found")
			r.release()
			b.cleanUp(t, r.w)
			s, err := r.w.Diff(ctx)
			require.NoError(t, err)
			b.matches(t, s, b.tables(r.w)...)
			b.cleanUp(t, r.w)
		})
	}
}

// staysIn fails when the vdiff leaves a state on -80 within some time: long enough for several retries.
func staysIn(t *testing.T, ctx context.Context, b *bed, r *running, state vdiff.VDiffState, d time.Duration) {
	t.Helper()
	until := time.Now().Add(d)
	require.NoError(t, cluster.WaitFor(ctx, "the vdiff to stay "+string(state), 50*time.Millisecond, func(ctx context.Context) (bool, error) {
		result, err := b.target().Query(ctx, "select state from _vt.vdiff where vdiff_uuid = '"+r.uuid+"'")
		if err != nil {
			return false, err
		}
		if len(result.Rows) != 1 || result.Rows[0][0].ToString() != string(state) {
			t.Errorf("the vdiff left state %s: %v", state, result.Rows)
			return true, nil
		}
		return time.Now().After(until), nil
	}))
}
