// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"
	"math"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"vitess.io/vitess/go/sqltypes"
	"vitess.io/vitess/go/vt/vterrors"
	"vitess.io/vitess/go/vt/vttablet/tabletmanager/vdiff"

	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/differ"
	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/sidecar"

	tabletmanagerdatapb "vitess.io/vitess/go/vt/proto/tabletmanagerdata"
	vtrpcpb "vitess.io/vitess/go/vt/proto/vtrpc"
)

func (w *world) createRequest(change func(*tabletmanagerdatapb.VDiffRequest)) *tabletmanagerdatapb.VDiffRequest {
	req := &tabletmanagerdatapb.VDiffRequest{
		Action: string(vdiff.CreateAction), Keyspace: "ks", Workflow: "wf", VdiffUuid: uuid.NewString(),
		Options: &tabletmanagerdatapb.VDiffOptions{
			PickerOptions: &tabletmanagerdatapb.VDiffPickerOptions{},
			CoreOptions:   &tabletmanagerdatapb.VDiffCoreOptions{MaxRows: 100, TimeoutSeconds: 7, MaxExtraRowsToCompare: 5},
			ReportOptions: &tabletmanagerdatapb.VDiffReportOptions{MaxSampleRows: 3},
		},
	}
	if change != nil {
		change(req)
	}
	return req
}

// TestCreate tests that a vdiff is recorded as it was asked for, in the answer's form that clients
// expect, and run; that cells default to all cells; and that one without --auto-start waits for a
// resume.
func TestCreate(t *testing.T) {
	w := newWorld(t, nil)
	w.engine.cfg.Runner = w.completing()
	w.open()
	req := w.createRequest(nil)
	resp, err := w.do(req)
	require.NoError(t, err)
	require.Equal(t, req.VdiffUuid, resp.VdiffUuid)
	w.eventuallyState(resp.Id, vdiff.CompletedState)
	v := w.store.get(resp.Id)
	require.Equal(t, "-80", v.Shard)
	require.Equal(t, "z1,z2", v.Options.PickerOptions.SourceCell)
	require.Equal(t, "z1,z2", v.Options.PickerOptions.TargetCell)
	require.Equal(t, int64(100), v.Options.CoreOptions.MaxRows)
	require.Equal(t, int64(7), v.Options.CoreOptions.TimeoutSeconds)
	require.Empty(t, req.Options.PickerOptions.SourceCell, "the request is not changed")

	req = w.createRequest(func(r *tabletmanagerdatapb.VDiffRequest) {
		no := false
		r.Options.CoreOptions.AutoStart = &no
		r.Options.PickerOptions.SourceCell = "z9"
	})
	resp, err = w.do(req)
	require.NoError(t, err)
	require.Equal(t, vdiff.StoppedState, w.store.state(resp.Id))
	require.Equal(t, "z9", w.store.get(resp.Id).Options.PickerOptions.SourceCell)
	require.NoError(t, w.act(vdiff.ResumeAction, req.VdiffUuid))
	w.eventuallyState(resp.Id, vdiff.CompletedState)
}

// TestCreateDefaults tests that options, or parts of them, that a client leaves out are what
// vtctldclient would send, and never such that nothing is compared.
func TestCreateDefaults(t *testing.T) {
	w := newWorld(t, untilCancelled)
	w.open()
	f := func(options *tabletmanagerdatapb.VDiffOptions) *tabletmanagerdatapb.VDiffOptions {
		t.Helper()
		resp, err := w.do(w.createRequest(func(r *tabletmanagerdatapb.VDiffRequest) { r.Options = options }))
		require.NoError(t, err)
		return w.store.get(resp.Id).Options
	}
	o := f(nil)
	require.Equal(t, int64(math.MaxInt64), o.CoreOptions.MaxRows)
	require.Equal(t, int64(30), o.CoreOptions.TimeoutSeconds)
	require.Equal(t, int64(10), o.ReportOptions.MaxSampleRows)
	o = f(&tabletmanagerdatapb.VDiffOptions{CoreOptions: &tabletmanagerdatapb.VDiffCoreOptions{Tables: "t1"}})
	require.Equal(t, "t1", o.CoreOptions.Tables)
	require.Equal(t, int64(math.MaxInt64), o.CoreOptions.MaxRows)
	require.Equal(t, "z1,z2", o.PickerOptions.SourceCell)
	require.Zero(t, f(&tabletmanagerdatapb.VDiffOptions{ReportOptions: &tabletmanagerdatapb.VDiffReportOptions{}}).ReportOptions.MaxSampleRows)
}

// TestOptionsAreNotShared tests case 8: two vdiffs that wait to be started and are resumed at the same
// time each run with their own options.
func TestOptionsAreNotShared(t *testing.T) {
	var mu sync.Mutex
	seen := make(map[string]*tabletmanagerdatapb.VDiffCoreOptions)
	both := make(chan struct{})
	w := newWorld(t, func(ctx context.Context, v *sidecar.VDiff, _ differ.Observer) error {
		mu.Lock()
		seen[v.UUID] = v.Options.CoreOptions
		if len(seen) == 2 {
			close(both)
		}
		mu.Unlock()
		<-ctx.Done()
		return ctx.Err()
	})
	w.open()
	no := false
	var uuids []string
	for _, core := range []*tabletmanagerdatapb.VDiffCoreOptions{
		{Tables: "t1", MaxRows: 10, AutoStart: &no},
		{Tables: "t2", AutoStart: &no},
	} {
		req := w.createRequest(func(r *tabletmanagerdatapb.VDiffRequest) { r.Options.CoreOptions = core })
		_, err := w.do(req)
		require.NoError(t, err)
		uuids = append(uuids, req.VdiffUuid)
	}
	for _, id := range uuids {
		require.NoError(t, w.act(vdiff.ResumeAction, id))
	}
	<-both
	mu.Lock()
	defer mu.Unlock()
	require.Equal(t, "t1", seen[uuids[0]].Tables)
	require.Equal(t, int64(10), seen[uuids[0]].MaxRows)
	require.Equal(t, "t2", seen[uuids[1]].Tables)
	require.Equal(t, int64(math.MaxInt64), seen[uuids[1]].MaxRows)
}

// TestInvalidRequests tests that every request that cannot be meant is refused with a code and a text
// that says what is wrong, is counted, and changes nothing.
func TestInvalidRequests(t *testing.T) {
	w := newWorld(t, untilCancelled)
	taken := w.store.put(sidecar.VDiff{State: vdiff.CompletedState, UUID: uuid.NewString()})
	w.open()
	f := func(wantCode vtrpcpb.Code, wantText string, req *tabletmanagerdatapb.VDiffRequest) {
		t.Helper()
		errorsBefore := globalStats.actionErrors.Get()
		resp, err := w.do(req)
		require.Nil(t, resp)
		require.ErrorContains(t, err, wantText)
		require.Equal(t, wantCode, vterrors.Code(err), "%v", err)
		require.Equal(t, errorsBefore+1, globalStats.actionErrors.Get())
		w.store.mu.Lock()
		defer w.store.mu.Unlock()
		require.Len(t, w.store.vdiffs, 1)
	}
	create := func(change func(*tabletmanagerdatapb.VDiffRequest)) *tabletmanagerdatapb.VDiffRequest {
		return w.createRequest(change)
	}
	type request = tabletmanagerdatapb.VDiffRequest
	const bad = vtrpcpb.Code_INVALID_ARGUMENT
	f(bad, "nil vdiff request", nil)
	f(bad, "action  not supported", &request{})
	f(bad, "action explode not supported, use one of", &request{Action: "explode"})
	f(bad, "keyspace", create(func(r *request) { r.Keyspace = "" }))
	f(bad, "name of the workflow", create(func(r *request) { r.Workflow = "" }))
	f(bad, "is missing", create(func(r *request) { r.VdiffUuid = "" }))
	f(bad, "is not a UUID", create(func(r *request) { r.VdiffUuid = "x'; drop table" }))
	f(bad, "--limit must not be negative", create(func(r *request) { r.Options.CoreOptions.MaxRows = -1 }))
	f(bad, "--filtered-replication-wait-time", create(func(r *request) { r.Options.CoreOptions.TimeoutSeconds = -1 }))
	f(bad, "--max-extra-rows-to-compare", create(func(r *request) { r.Options.CoreOptions.MaxExtraRowsToCompare = -1 }))
	f(bad, "--max-diff-duration", create(func(r *request) { r.Options.CoreOptions.MaxDiffSeconds = -1 }))
	f(bad, "--max-report-sample-rows", create(func(r *request) { r.Options.ReportOptions.MaxSampleRows = -1 }))
	f(bad, "--tablet-types", create(func(r *request) { r.Options.PickerOptions.TabletTypes = "replica,nonsense" }))
	f(vtrpcpb.Code_ALREADY_EXISTS, "already exists on tablet z1-0000000100", create(func(r *request) { r.VdiffUuid = w.store.get(taken).UUID }))
	f(bad, "action argument (all, last or a UUID) \"first\" is not a UUID", &request{Action: "show", Keyspace: "ks", Workflow: "wf", ActionArg: "first"})
	f(bad, "workflow", &request{Action: "show", Keyspace: "ks", ActionArg: "all"})
	f(vtrpcpb.Code_NOT_FOUND, "no vdiff found for UUID", &request{Action: "show", Keyspace: "ks", Workflow: "wf", ActionArg: uuid.NewString()})
	f(vtrpcpb.Code_NOT_FOUND, "no vdiff found for UUID", &request{Action: "show", Keyspace: "ks", Workflow: "other", ActionArg: w.store.get(taken).UUID})
	f(bad, "is not a UUID", &request{Action: "stop", VdiffUuid: "all"})
	f(bad, "is missing", &request{Action: "resume"})
	f(vtrpcpb.Code_NOT_FOUND, "not found on tablet", &request{Action: "resume", VdiffUuid: uuid.NewString()})
	f(bad, "is not a UUID", &request{Action: "delete", ActionArg: "everything"})
	f(bad, "is missing", &request{Action: "delete"})
	f(bad, "keyspace", &request{Action: "delete", ActionArg: "all"})
	f(vtrpcpb.Code_FAILED_PRECONDITION, "no vdiff found for UUID", &request{Action: "delete", ActionArg: uuid.NewString()})
	w.store.mu.Lock()
	w.store.noStream = true
	w.store.mu.Unlock()
	f(vtrpcpb.Code_FAILED_PRECONDITION, "workflow ks.wf has no streams on tablet", create(nil))
}

// TestShow tests the three forms of show, and that a stored report that is none does not hide the rest.
func TestShow(t *testing.T) {
	w := newWorld(t, untilCancelled)
	w.open()
	show := func(arg string) *tabletmanagerdatapb.VDiffResponse {
		t.Helper()
		resp, err := w.do(&tabletmanagerdatapb.VDiffRequest{Action: "show", Keyspace: "ks", Workflow: "wf", ActionArg: arg})
		require.NoError(t, err)
		return resp
	}
	require.Nil(t, show("last").Output)
	require.Empty(t, show("all").Output.Rows)

	table := sidecar.Table{Name: "t1", State: vdiff.CompletedState}
	first := w.store.put(sidecar.VDiff{State: vdiff.CompletedState, UUID: uuid.NewString()}, table)
	last := w.store.put(sidecar.VDiff{State: vdiff.StoppedState, UUID: uuid.NewString()}, table)
	w.store.report = `{"ProcessedRows": 5}`
	all := sqltypes.Proto3ToResult(show("all").Output).Named().Rows
	require.Len(t, all, 2)
	require.Equal(t, w.store.get(last).UUID, all[0].AsString("vdiff_uuid", ""))
	require.Equal(t, w.store.get(last).UUID, show("last").VdiffUuid)
	resp := show(w.store.get(first).UUID)
	require.Equal(t, w.store.get(first).UUID, resp.VdiffUuid)
	row := sqltypes.Proto3ToResult(resp.Output).Named().Rows[0]
	require.Equal(t, "completed", row.AsString("vdiff_state", ""))
	require.Equal(t, w.store.report, row.AsString("report", ""))

	w.store.report = `{"ProcessedRows": "five"}`
	row = sqltypes.Proto3ToResult(show(w.store.get(first).UUID).Output).Named().Rows[0]
	require.True(t, row["report"].IsNull())
	require.Equal(t, "t1", row.AsString("table_name", ""))
}

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
	require.Equal(t, vdiff.StartedState, w.store.state(elsewhere))
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
