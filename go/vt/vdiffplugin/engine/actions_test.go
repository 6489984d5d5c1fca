// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"math"
	"sync"
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
// expect, and run; that cells default to all cells, in an order of the vdiff's own; and that one
// without --auto-start waits for a resume.
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
	require.Equal(t, []string{"z2", "z1"}, w.topo.cells, "the topology's own list is not changed")

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
		errorsBefore := globalStats.errors.Get()
		resp, err := w.do(req)
		require.Nil(t, resp)
		require.ErrorContains(t, err, wantText)
		require.Equal(t, wantCode, vterrors.Code(err), "%v", err)
		require.Equal(t, errorsBefore+1, globalStats.errors.Get())
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

// TestPace tests when a vdiff seems to have started: as it says where all rows are of one run, and earlier where it goes on from
// rows of earlier ones, so that time and rows agree. The time before it compares does not count.
func TestPace(t *testing.T) {
	var m metrics
	m.init(vdiff.StartedState)
	start := time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC)
	f := func(want time.Duration) {
		t.Helper()
		began, ok := m.pace(start.Add(10 * time.Second))
		require.Equal(t, want != 0, ok)
		if ok {
			require.Equal(t, start.Add(10*time.Second-want), began)
		}
	}
	f(0)
	m.begin()
	m.place("t", 0, start)
	m.setRows("t", 50)
	f(0) // a first run
	m.begin()
	f(0)
	m.place("t", 50, start)
	f(0) // nothing compared since
	m.setRows("t", 60)
	m.setRows("u", 40)
	f(20 * time.Second) // half of the rows in ten seconds
	m.place("t", 55, start.Add(time.Second))
	m.setRows("t", 60)
	f(20 * time.Second) // read again since the last checkpoint
	m.setRows("v", 1_000_000_000)
	m.begin()
	m.place("t", 0, start)
	m.setRows("t", 1)
	f(longestPace)
	m.place("v", 0, start)
	m.setRows("v", 39)
	f(20 * time.Second) // of its earlier rows none holds any more

	summary := sqltypes.MakeTestResult(sqltypes.MakeTestFields("uuid|started_at", "varchar|datetime"), "a|2026-01-02 03:00:00", "a|2026-01-02 03:00:00")
	setStartedAt(summary, start.Add(-time.Hour))
	require.Equal(t, "2026-01-02 02:00:00", summary.Rows[1][1].ToString())
	setStartedAt(sqltypes.MakeTestResult(sqltypes.MakeTestFields("uuid", "varchar"), "a"), start)
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
