// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"vitess.io/vitess/go/vt/vterrors"
	"vitess.io/vitess/go/vt/vttablet/tabletmanager/vdiff"

	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/differ"
	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/sidecar"

	tabletmanagerdatapb "vitess.io/vitess/go/vt/proto/tabletmanagerdata"
	vtrpcpb "vitess.io/vitess/go/vt/proto/vtrpc"
)

// TestStopInEveryState tests case 23: stop works whatever the vdiff is doing, also before it has tables
// and while it waits for a retry, and it stays stopped, over retries and restarts; a completed one stays
// completed, and one that is not on this tablet is no error.
func TestStopInEveryState(t *testing.T) {
	f := func(what string, want vdiff.VDiffState, v sidecar.VDiff, run runnerFunc, ready func(w *world, id int64)) {
		t.Run(what, func(t *testing.T) {
			w := newWorld(t, run)
			passes := countCalls(w.store, "ErroredVDiffs")
			id := w.store.put(v)
			w.open()
			ready(w, id)
			require.NoError(t, w.act(vdiff.StopAction, w.store.get(id).UUID))
			require.Equal(t, want, w.store.state(id))
			seen := passes()
			w.eventually("several looks", func() bool { return passes() > seen+5 })
			require.Equal(t, want, w.store.state(id))
			for _, table := range w.store.get(id).tables {
				require.Contains(t, []vdiff.VDiffState{vdiff.StoppedState, vdiff.CompletedState}, table.State)
			}
			w.engine.Close()
			w.open()
			seen = passes()
			w.eventually("several looks", func() bool { return passes() > seen+5 })
			require.Equal(t, want, w.store.state(id))
			require.NoError(t, w.act(vdiff.StopAction, w.store.get(id).UUID), "again")
			require.Equal(t, want, w.store.state(id))
		})
	}
	started := func(w *world, id int64) { w.eventuallyState(id, vdiff.StartedState) }
	errored := func(w *world, id int64) { w.eventuallyState(id, vdiff.ErrorState) }
	f("planning", vdiff.StoppedState, retried(), untilCancelled, started)
	f("comparing", vdiff.StoppedState, retried(), untilCancelled, func(w *world, id int64) {
		started(w, id)
		w.store.setTable(id, "t1", vdiff.StartedState, 5)
		w.store.setTable(id, "t2", vdiff.CompletedState, 5)
	})
	f("errored", vdiff.StoppedState, pending(), func(context.Context, *sidecar.VDiff, differ.Observer) error { return errors.New("x") }, errored)
	f("retrying", vdiff.StoppedState, retried(), func(context.Context, *sidecar.VDiff, differ.Observer) error { return errors.New("x") }, errored)
	f("completed", vdiff.CompletedState, sidecar.VDiff{State: vdiff.CompletedState}, untilCancelled, func(*world, int64) {})
	f("stopped", vdiff.StoppedState, sidecar.VDiff{State: vdiff.StoppedState}, untilCancelled, func(*world, int64) {})
	f("not run", vdiff.StoppedState, sidecar.VDiff{State: "nonsense"}, untilCancelled, errored)

	w := newWorld(t, untilCancelled)
	w.open()
	require.NoError(t, w.act(vdiff.StopAction, uuid.NewString()))
}

// TestStopOfPending tests that a vdiff that is pending because the database does not let it start is
// stopped, and that its start, when it gets through, does not run it.
func TestStopOfPending(t *testing.T) {
	var runs atomic.Int64
	starting, release := make(chan struct{}), make(chan struct{})
	w := newWorld(t, func(context.Context, *sidecar.VDiff, differ.Observer) error { runs.Add(1); return nil }, func(c *Config) { c.StopWait = time.Millisecond })
	w.store.before = func(_ context.Context, method string) error {
		if method == "StartVDiff" {
			close(starting)
			<-release // whatever its context says
		}
		return nil
	}
	id := w.store.put(pending())
	w.open()
	<-starting
	require.NoError(t, w.act(vdiff.StopAction, w.store.get(id).UUID))
	require.Equal(t, vdiff.StoppedState, w.store.state(id))
	close(release)
	w.engine.Close()
	require.Zero(t, runs.Load())
	require.Equal(t, vdiff.StoppedState, w.store.state(id))
}

// stubborn is a run that does not end before it is released, and then claims to have completed.
func (w *world) stubborn() (run runnerFunc, running <-chan int64, release chan struct{}) {
	started, released := make(chan int64, 100), make(chan struct{})
	return func(ctx context.Context, v *sidecar.VDiff, _ differ.Observer) error {
		w.store.setTable(v.ID, "t1", vdiff.StartedState, 1)
		started <- v.ID
		<-released
		w.store.setTable(v.ID, "t1", vdiff.CompletedState, 10)
		return nil
	}, started, released
}

// TestStubbornRun tests what happens with a run that does not end when it is told to: stop returns and
// the vdiff is and stays stopped; delete says that it is still stopping; resume waits for it, up to the
// caller's patience; and when the run has ended at last all of that works.
func TestStubbornRun(t *testing.T) {
	w := newWorld(t, nil, func(c *Config) { c.StopWait = 5 * time.Millisecond })
	run, running, release := w.stubborn()
	w.engine.cfg.Runner = run
	id := w.store.put(pending())
	other := w.store.put(sidecar.VDiff{State: vdiff.CompletedState})
	w.open()
	<-running
	require.NoError(t, w.act(vdiff.StopAction, w.store.get(id).UUID))
	require.Equal(t, vdiff.StoppedState, w.store.state(id))

	err := w.act(vdiff.DeleteAction, w.store.get(id).UUID)
	require.ErrorContains(t, err, "still stopping, try again")
	require.Equal(t, vtrpcpb.Code_UNAVAILABLE, vterrors.Code(err))
	require.Equal(t, vdiff.StoppedState, w.store.state(id))

	err = w.act(vdiff.DeleteAction, vdiff.AllActionArg)
	require.ErrorContains(t, err, "still stopping, try again")
	require.Equal(t, vdiff.VDiffState("deleted"), w.store.state(other), "the others are deleted")

	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Millisecond)
	_, err = w.engine.PerformVDiffAction(ctx, &tabletmanagerdatapb.VDiffRequest{Action: "resume", VdiffUuid: w.store.get(id).UUID})
	cancel()
	require.ErrorContains(t, err, "still stopping, try again")
	require.Equal(t, vdiff.StoppedState, w.store.state(id))

	resumed := make(chan error, 1)
	go func() { resumed <- w.act(vdiff.ResumeAction, w.store.get(id).UUID) }()
	require.Equal(t, vdiff.StoppedState, w.store.state(id))
	close(release)
	require.NoError(t, <-resumed)
	require.Equal(t, id, <-running)
	w.eventuallyState(id, vdiff.CompletedState)
	require.NoError(t, w.act(vdiff.DeleteAction, w.store.get(id).UUID))
	require.Equal(t, vdiff.VDiffState("deleted"), w.store.state(id))
	w.requireNoControllers()
}

// TestResume tests that stopped, completed and errored vdiffs (case 24) can be resumed, that tables of a
// completed one are compared again and otherwise completed ones are not, and that one that runs or
// whose options cannot be read is refused.
func TestResume(t *testing.T) {
	w := newWorld(t, nil)
	hold := make(chan struct{})
	w.engine.cfg.Runner = runnerFunc(func(ctx context.Context, v *sidecar.VDiff, _ differ.Observer) error {
		select {
		case <-hold:
		case <-ctx.Done():
			return ctx.Err()
		}
		for name := range w.store.get(v.ID).tables {
			w.store.setTable(v.ID, name, vdiff.CompletedState, 10)
		}
		return nil
	})
	put := func(state, table vdiff.VDiffState) int64 {
		return w.store.put(sidecar.VDiff{State: state}, sidecar.Table{Name: "t1", State: table}, sidecar.Table{Name: "t2", State: vdiff.CompletedState})
	}
	stopped := put(vdiff.StoppedState, vdiff.StoppedState)
	completed := put(vdiff.CompletedState, vdiff.CompletedState)
	errored := put(vdiff.ErrorState, vdiff.ErrorState)
	w.open()
	for id, second := range map[int64]vdiff.VDiffState{stopped: vdiff.CompletedState, completed: vdiff.PendingState, errored: vdiff.CompletedState} {
		uuid := w.store.get(id).UUID
		resp, err := w.do(&tabletmanagerdatapb.VDiffRequest{Action: "resume", VdiffUuid: uuid})
		require.NoError(t, err)
		require.Equal(t, id, resp.Id)
		require.Equal(t, uuid, resp.VdiffUuid)
		w.eventuallyState(id, vdiff.StartedState)
		require.Equal(t, vdiff.PendingState, w.store.get(id).tables["t1"].State)
		require.Equal(t, second, w.store.get(id).tables["t2"].State)

		err = w.act(vdiff.ResumeAction, uuid)
		require.ErrorContains(t, err, "no completed or stopped vdiff found for UUID")
		require.ErrorContains(t, err, "stop it first")
		require.Equal(t, vtrpcpb.Code_FAILED_PRECONDITION, vterrors.Code(err))
	}
	close(hold)
	for _, id := range []int64{stopped, completed, errored} {
		w.eventuallyState(id, vdiff.CompletedState)
		// At once after it has completed: its run may still be on its way out.
		require.NoError(t, w.act(vdiff.ResumeAction, w.store.get(id).UUID))
		w.eventuallyState(id, vdiff.CompletedState)
	}
	bad := w.store.put(sidecar.VDiff{State: vdiff.ErrorState, OptionsErr: errors.New("json")})
	require.ErrorContains(t, w.act(vdiff.ResumeAction, w.store.get(bad).UUID), "delete it and create it anew")
}

// TestDelete tests that a vdiff is deleted in every state, with its controller and its metrics, that one
// with an open fence is kept, and that deleting all of a workflow leaves other workflows alone.
func TestDelete(t *testing.T) {
	w := newWorld(t, untilCancelled)
	running := w.store.put(pending())
	done := w.store.put(sidecar.VDiff{State: vdiff.CompletedState})
	fenced := w.store.put(pending())
	elsewhere := w.store.put(sidecar.VDiff{State: vdiff.PendingState, Keyspace: "ks", Workflow: "other"})
	w.open()
	w.eventuallyState(running, vdiff.StartedState)
	gone := func(id int64) bool { return w.store.state(id) == "deleted" }

	require.NoError(t, w.act(vdiff.DeleteAction, w.store.get(running).UUID))
	require.True(t, gone(running))
	engine, metrics := w.ids()
	require.Equal(t, engine, metrics)
	require.NotContains(t, engine, running)

	w.store.mu.Lock()
	w.store.fenced[fenced] = true
	w.store.mu.Unlock()
	err := w.act(vdiff.DeleteAction, w.store.get(fenced).UUID)
	require.Equal(t, vtrpcpb.Code_FAILED_PRECONDITION, vterrors.Code(err))
	require.ErrorContains(t, err, "stopped the workflow")
	require.Equal(t, vdiff.StoppedState, w.store.state(fenced))

	w.store.mu.Lock()
	w.store.fenced[fenced] = false
	w.store.mu.Unlock()
	require.NoError(t, w.act(vdiff.DeleteAction, vdiff.AllActionArg))
	require.True(t, gone(done))
	require.True(t, gone(fenced))
	w.eventuallyState(elsewhere, vdiff.StartedState)
	engine, metrics = w.ids()
	require.Equal(t, engine, metrics)
	require.Len(t, engine, 1)
}

// TestActionsStorm tests that actions of many callers on the same vdiffs neither deadlock nor leave two
// runs of one vdiff at the same time, and that the maps agree in the end.
func TestActionsStorm(t *testing.T) {
	w := newWorld(t, nil)
	var mu sync.Mutex
	runs, overlaps := make(map[int64]int), 0
	w.engine.cfg.Runner = runnerFunc(func(ctx context.Context, v *sidecar.VDiff, _ differ.Observer) error {
		mu.Lock()
		if runs[v.ID]++; runs[v.ID] > 1 {
			overlaps++
		}
		mu.Unlock()
		defer func() {
			mu.Lock()
			defer mu.Unlock()
			runs[v.ID]--
		}()
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Millisecond):
			return errors.New("lost connection")
		}
	})
	var uuids []string
	for range 4 {
		uuids = append(uuids, w.store.get(w.store.put(retried())).UUID)
	}
	w.open()
	var storm sync.WaitGroup
	for i := range 6 {
		storm.Go(func() {
			for j := range 30 {
				id := uuids[(i+j)%len(uuids)]
				switch (i*7 + j) % 5 {
				case 0, 1:
					_ = w.act(vdiff.ResumeAction, id)
				case 2:
					_ = w.act(vdiff.StopAction, id)
				case 3:
					_, _ = w.do(w.createRequest(nil))
				case 4:
					if j%10 == 0 {
						_ = w.act(vdiff.DeleteAction, vdiff.AllActionArg)
					}
				}
			}
		})
	}
	storm.Wait()
	engine, metrics := w.ids()
	require.Equal(t, engine, metrics)
	require.NoError(t, w.act(vdiff.DeleteAction, vdiff.AllActionArg))
	w.requireNoControllers()
	mu.Lock()
	defer mu.Unlock()
	require.Zero(t, overlaps)
}

// TestCloseInterruptsActions tests that an action that waits for the database or for a run when the
// engine closes is answered at once, as by a closed engine.
func TestCloseInterruptsActions(t *testing.T) {
	w := newWorld(t, untilCancelled)
	id := w.store.put(pending())
	waiting := make(chan struct{})
	w.store.before = func(ctx context.Context, method string) error {
		if method == "StopVDiff" {
			close(waiting)
			<-ctx.Done()
			return ctx.Err()
		}
		return nil
	}
	w.open()
	answer := make(chan error, 1)
	go func() { answer <- w.act(vdiff.StopAction, w.store.get(id).UUID) }()
	<-waiting
	w.engine.Close()
	err := <-answer
	require.Equal(t, vtrpcpb.Code_UNAVAILABLE, vterrors.Code(err))
	require.ErrorContains(t, err, "vdiff engine is closed")
}

// TestPanicInAction tests that a panic in an action is its error and nothing else.
func TestPanicInAction(t *testing.T) {
	w := newWorld(t, untilCancelled)
	w.store.before = func(_ context.Context, method string) error {
		if method == "VDiffByUUID" {
			panic("odd record")
		}
		return nil
	}
	w.open()
	require.ErrorContains(t, w.act(vdiff.StopAction, uuid.NewString()), "panic while performing the vdiff action stop")
	require.NoError(t, w.act(vdiff.ShowAction, vdiff.AllActionArg))
}
