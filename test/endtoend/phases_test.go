// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package endtoend

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"vitess.io/vitess/go/mysql"
	"vitess.io/vitess/go/vt/vttablet/tabletmanager/vdiff"

	"github.com/vttablet-ext/vttablet-ext/test/endtoend/cluster"
)

// running is a vdiff that was brought to a phase and is held there.
type running struct {
	w    *cluster.Workflow
	uuid string
	// release lets go of what holds the vdiff in its phase.
	release func()
	// final is the state in which the vdiff is already, if it is.
	final vdiff.VDiffState
}

// phase brings a new vdiff of the bed to a point of its life.
type phase struct {
	name  string
	reach func(t *testing.T, ctx context.Context, b *bed) *running
}

var phases = []phase{
	{"pending", reachPending},
	{"planning", reachPlanning},
	{"in the fence", reachFence},
	{"mid table", reachMidTable},
	{"errored", reachErrored},
	{"completed", reachCompleted},
}

func create(t *testing.T, ctx context.Context, w *cluster.Workflow, flags ...string) *running {
	t.Helper()
	uuid, err := w.VDiffCreate(ctx, flags...)
	require.NoError(t, err)
	return &running{w: w, uuid: uuid, release: func() {}}
}

// inFence are the flags of a vdiff that compares rows under a fence, and reads where hold holds its locks: a limit, however
// large, asks for rows.
var inFence = []string{"--tablet-types", "primary", "--limit", "1000000000"}

// reachPending returns as soon as the vdiff is created. The big table keeps it from being completed at once.
func reachPending(t *testing.T, ctx context.Context, b *bed) *running {
	return create(t, ctx, b.big)
}

// reachPlanning holds a write lock on a table of the source: reading its schema waits for that.
func reachPlanning(t *testing.T, ctx context.Context, b *bed) *running {
	unlock := hold(t, ctx, b.source(), "lock tables s1 write")
	r := create(t, ctx, b.small)
	r.release = unlock
	waitForState(t, ctx, b, r, vdiff.StartedState)
	return r
}

// reachFence holds a transaction that has written to a table of the source: the schema can be read but
// the table not be locked for a snapshot. The streams are stopped when it returns.
func reachFence(t *testing.T, ctx context.Context, b *bed) *running {
	rollback := hold(t, ctx, b.source(), "begin", "update s1 set v = concat(v, '!') where id = 1001")
	r := create(t, ctx, b.small, inFence...)
	r.release = rollback
	err := cluster.WaitFor(ctx, "streams to be stopped by the vdiff", 5*time.Millisecond, func(ctx context.Context) (bool, error) {
		result, err := b.target().Query(ctx, "select message from _vt.vreplication where workflow = '"+smallName+"' and state = 'Stopped'")
		return err == nil && len(result.Rows) == 1 && strings.Contains(result.Rows[0][0].ToString(), r.uuid), nil
	})
	require.NoError(t, err)
	return r
}

// reachMidTable waits until a part of the big table is compared and written down. On a fast machine the table may be completed
// before that is seen: then it is tried again.
func reachMidTable(t *testing.T, ctx context.Context, b *bed) *running {
	for range 5 {
		r := create(t, ctx, b.big)
		if _, completed := waitForRows(t, ctx, b, r, 1); !completed {
			return r
		}
	}
	require.Fail(t, "the table was completed five times before it was caught in its middle")
	return nil
}

// stopMidTable stops a vdiff of the big table when more than n of its rows are written down on -80. Where the table was completed
// before it could be stopped, it is tried again.
func stopMidTable(t *testing.T, ctx context.Context, b *bed, n int64) *running {
	t.Helper()
	for range 10 {
		r := create(t, ctx, b.big)
		waitForRows(t, ctx, b, r, n)
		_, err := r.w.VDiff(ctx, "stop", r.uuid)
		require.NoError(t, err)
		waitForState(t, ctx, b, r, vdiff.StoppedState, vdiff.CompletedState)
		result, err := b.target().Query(ctx, "select 1 from _vt.vdiff v join _vt.vdiff_table t on v.id = t.vdiff_id where v.vdiff_uuid = '"+r.uuid+"' and v.state = 'stopped' and json_extract(t.report, '$.Checkpoint') is not null")
		require.NoError(t, err)
		if len(result.Rows) == 1 {
			return r
		}
		b.cleanUp(t, b.big)
	}
	require.Fail(t, "the table was completed ten times before it was stopped in its middle")
	return nil
}

// reachErrored holds the lock of reachFence until the vdiff gives up for now: it is in error on -80
// and will be retried.
func reachErrored(t *testing.T, ctx context.Context, b *bed) *running {
	rollback := hold(t, ctx, b.source(), "begin", "update s1 set v = concat(v, '!') where id = 1001")
	r := create(t, ctx, b.small, inFence...)
	r.release = rollback
	waitForState(t, ctx, b, r, vdiff.ErrorState)
	return r
}

func reachCompleted(t *testing.T, ctx context.Context, b *bed) *running {
	r := create(t, ctx, b.small)
	_, err := r.w.WaitVDiff(ctx, r.uuid, vdiff.CompletedState)
	require.NoError(t, err)
	r.final = vdiff.CompletedState
	return r
}

// hold runs statements on a connection of its own to a tablet's mysqld, and keeps it until the
// returned function is called, or the test ends.
func hold(t *testing.T, ctx context.Context, tablet *cluster.Tablet, statements ...string) func() {
	t.Helper()
	conn, err := tablet.Conn(ctx)
	require.NoError(t, err)
	for _, s := range append([]string{"use " + tablet.DBName()}, statements...) {
		_, err := conn.ExecuteFetch(s, 1, false)
		require.NoError(t, err)
	}
	t.Cleanup(conn.Close)
	return func() { closeSession(conn) }
}

// closeSession ends a session at once, transaction and locks included.
func closeSession(conn *mysql.Conn) {
	_, _ = conn.ExecuteFetch("rollback", 1, false)
	_, _ = conn.ExecuteFetch("unlock tables", 1, false)
	conn.Close()
}

// waitForState waits for the state of the vdiff on the target -80, as its record says.
func waitForState(t *testing.T, ctx context.Context, b *bed, r *running, states ...vdiff.VDiffState) {
	t.Helper()
	require.NoError(t, cluster.WaitFor(ctx, fmt.Sprintf("vdiff %s to be %v on -80", r.uuid, states), 10*time.Millisecond, func(ctx context.Context) (bool, error) {
		result, err := b.target().Query(ctx, "select state from _vt.vdiff where vdiff_uuid = '"+r.uuid+"'")
		return err == nil && len(result.Rows) == 1 && slices.Contains(states, vdiff.VDiffState(result.Rows[0][0].ToString())), nil
	}))
}

// stateOf returns the state of the vdiff on the target -80, as its record says.
func stateOf(t *testing.T, ctx context.Context, b *bed, r *running) vdiff.VDiffState {
	t.Helper()
	result, err := b.target().Query(ctx, "select state from _vt.vdiff where vdiff_uuid = '"+r.uuid+"'")
	require.NoError(t, err)
	require.Len(t, result.Rows, 1)
	return vdiff.VDiffState(result.Rows[0][0].ToString())
}

// waitForRows waits until more than n rows of the big table are written down as compared on -80, or the table is completed there.
func waitForRows(t *testing.T, ctx context.Context, b *bed, r *running, n int64) (rows int64, completed bool) {
	t.Helper()
	require.NoError(t, cluster.WaitFor(ctx, fmt.Sprintf("more than %d rows to be compared", n), 5*time.Millisecond, func(ctx context.Context) (bool, error) {
		result, err := b.target().Query(ctx, "select t.rows_compared, t.state from _vt.vdiff_table t join _vt.vdiff v on v.id = t.vdiff_id where v.vdiff_uuid = '"+r.uuid+"'")
		if err != nil || len(result.Rows) == 0 {
			return false, nil
		}
		rows, _ = result.Rows[0][0].ToInt64()
		completed = result.Rows[0][1].ToString() == string(vdiff.CompletedState)
		return rows > n || completed, nil
	}))
	return rows, completed
}
