// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"vitess.io/vitess/go/sqltypes"
	"vitess.io/vitess/go/vt/vttablet/tabletmanager/vdiff"

	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/sidecar"

	querypb "vitess.io/vitess/go/vt/proto/query"
)

// memStore is a sidecar.VDiffStore in memory with the same rules. before is called at the beginning of
// each method with its name, without the lock, and may block or return the method's error.
type memStore struct {
	before func(ctx context.Context, method string) error

	mu       sync.Mutex
	nextID   int64
	vdiffs   map[int64]*memVDiff
	noStream bool
	fenced   map[int64]bool // vdiffs with an open fence
	report   string         // what summaries show as the report of a table
}

type memVDiff struct {
	sidecar.VDiff
	tables  map[string]*sidecar.Table
	failure *sidecar.Failure
	log     []string
}

func newMemStore() *memStore {
	return &memStore{vdiffs: make(map[int64]*memVDiff), fenced: make(map[int64]bool)}
}

func (m *memStore) enter(ctx context.Context, method string) error {
	if m.before != nil {
		if err := m.before(ctx, method); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// put adds a vdiff and returns its id.
func (m *memStore) put(v sidecar.VDiff, tables ...sidecar.Table) int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.nextID++
	v.ID = m.nextID
	if v.UUID == "" {
		v.UUID = fmt.Sprintf("00000000-0000-4000-8000-%012d", v.ID)
	}
	if v.Workflow == "" {
		v.Workflow, v.Keyspace = "wf", "ks"
	}
	setDefaults(&v)
	mv := &memVDiff{VDiff: v, tables: make(map[string]*sidecar.Table)}
	for _, t := range tables {
		mv.tables[t.Name] = &t
	}
	m.vdiffs[v.ID] = mv
	return v.ID
}

// get returns a copy of what is stored, with State "deleted" when nothing is.
func (m *memStore) get(id int64) memVDiff {
	m.mu.Lock()
	defer m.mu.Unlock()
	v := m.vdiffs[id]
	if v == nil {
		return memVDiff{VDiff: sidecar.VDiff{State: "deleted"}}
	}
	c := *v
	c.tables = make(map[string]*sidecar.Table)
	for name, t := range v.tables {
		own := *t
		c.tables[name] = &own
	}
	c.log = slices.Clone(v.log)
	return c
}

func (m *memStore) state(id int64) vdiff.VDiffState { return m.get(id).State }

// setTable is what a run does to a table.
func (m *memStore) setTable(id int64, name string, state vdiff.VDiffState, rows int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if v := m.vdiffs[id]; v != nil {
		v.tables[name] = &sidecar.Table{Name: name, State: state, RowsCompared: rows}
	}
}

func (m *memStore) find(ok func(*memVDiff) bool) []*sidecar.VDiff {
	var found []*sidecar.VDiff
	for _, v := range m.vdiffs {
		if ok(v) {
			c := v.VDiff
			found = append(found, &c)
		}
	}
	slices.SortFunc(found, func(a, b *sidecar.VDiff) int { return int(a.ID - b.ID) })
	return found
}

func (m *memStore) VDiffByUUID(ctx context.Context, uuid string) (*sidecar.VDiff, error) {
	if err := m.enter(ctx, "VDiffByUUID"); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if found := m.find(func(v *memVDiff) bool { return v.UUID == uuid }); len(found) > 0 {
		return found[0], nil
	}
	return nil, nil
}

func (m *memStore) VDiffsOfWorkflow(ctx context.Context, keyspace, workflow string) ([]*sidecar.VDiff, error) {
	if err := m.enter(ctx, "VDiffsOfWorkflow"); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.find(func(v *memVDiff) bool { return v.Keyspace == keyspace && v.Workflow == workflow }), nil
}

func (m *memStore) VDiffsToRun(ctx context.Context) ([]*sidecar.VDiff, error) {
	if err := m.enter(ctx, "VDiffsToRun"); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.find(func(v *memVDiff) bool {
		return v.State != vdiff.StoppedState && v.State != vdiff.CompletedState && v.State != vdiff.ErrorState
	}), nil
}

func (m *memStore) ErroredVDiffs(ctx context.Context) ([]*sidecar.Errored, error) {
	if err := m.enter(ctx, "ErroredVDiffs"); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	var errored []*sidecar.Errored
	for _, v := range m.find(func(v *memVDiff) bool { return v.State == vdiff.ErrorState && v.Options.CoreOptions.AutoRetry }) {
		f := sidecar.Failure{Class: sidecar.Classify(errors.New(v.LastError)), Text: v.LastError}
		if own := m.vdiffs[v.ID].failure; own != nil {
			f = *own
		}
		errored = append(errored, &sidecar.Errored{VDiff: v, Failure: f})
	}
	return errored, nil
}

func (m *memStore) CreateVDiff(ctx context.Context, v *sidecar.VDiff) (int64, error) {
	if err := m.enter(ctx, "CreateVDiff"); err != nil {
		return 0, err
	}
	return m.put(*v), nil
}

// change is what every transition does: it looks at the state under the lock.
func (m *memStore) change(ctx context.Context, method string, id int64, f func(*memVDiff) error) (bool, error) {
	if err := m.enter(ctx, method); err != nil {
		return false, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	v := m.vdiffs[id]
	if v == nil {
		return false, nil
	}
	return true, f(v)
}

func (v *memVDiff) pendTables(all bool) {
	for _, t := range v.tables {
		if all || t.State != vdiff.CompletedState {
			t.State = vdiff.PendingState
		}
	}
}

func (m *memStore) ResumeVDiff(ctx context.Context, id int64) error {
	found, err := m.change(ctx, "ResumeVDiff", id, func(v *memVDiff) error {
		v.pendTables(v.State == vdiff.CompletedState)
		v.State, v.LastError, v.failure = vdiff.PendingState, "", nil
		return nil
	})
	if err == nil && !found {
		return sidecar.ErrNotFound
	}
	return err
}

func (m *memStore) RetryVDiff(ctx context.Context, id int64) (ok bool, err error) {
	_, err = m.change(ctx, "RetryVDiff", id, func(v *memVDiff) error {
		if ok = v.State == vdiff.ErrorState; ok {
			v.pendTables(false)
			v.State, v.LastError = vdiff.PendingState, ""
		}
		return nil
	})
	return ok, err
}

func (m *memStore) StartVDiff(ctx context.Context, id int64) (ok bool, err error) {
	_, err = m.change(ctx, "StartVDiff", id, func(v *memVDiff) error {
		if ok = v.State == vdiff.PendingState || v.State == vdiff.StartedState; ok {
			v.State = vdiff.StartedState
		}
		return nil
	})
	return ok, err
}

func (m *memStore) CompleteVDiff(ctx context.Context, id int64) (ok bool, err error) {
	_, err = m.change(ctx, "CompleteVDiff", id, func(v *memVDiff) error {
		if ok = v.State == vdiff.StartedState; !ok {
			return nil
		}
		for _, t := range v.tables {
			if ok = ok && t.State == vdiff.CompletedState; !ok {
				return sidecar.ErrIncomplete
			}
		}
		v.State = vdiff.CompletedState
		return nil
	})
	return ok, err
}

func (m *memStore) FailVDiff(ctx context.Context, id int64, text string, class sidecar.Class, tables []string, maxRetries int) (f *sidecar.Failure, err error) {
	_, err = m.change(ctx, "FailVDiff", id, func(v *memVDiff) error {
		if v.State == vdiff.StoppedState || v.State == vdiff.CompletedState {
			return nil
		}
		var rows int64
		for _, t := range v.tables {
			rows += t.RowsCompared
		}
		f = sidecar.NextFailure(v.failure, class, rows, text)
		v.State, v.LastError, v.failure = vdiff.ErrorState, text, f
		for _, name := range tables {
			v.tables[name].State = vdiff.ErrorState
		}
		if class == sidecar.Transient && f.Attempt > maxRetries {
			v.log = append(v.log, fmt.Sprintf("gave up after %d attempts", f.Attempt))
		}
		return nil
	})
	return f, err
}

func (m *memStore) StopVDiff(ctx context.Context, id int64) (ok bool, err error) {
	_, err = m.change(ctx, "StopVDiff", id, func(v *memVDiff) error {
		if ok = v.State != vdiff.CompletedState; ok {
			v.State, v.LastError = vdiff.StoppedState, ""
			for _, t := range v.tables {
				if t.State != vdiff.CompletedState {
					t.State = vdiff.StoppedState
				}
			}
		}
		return nil
	})
	return ok, err
}

func (m *memStore) DeleteVDiff(ctx context.Context, id int64) error {
	_, err := m.change(ctx, "DeleteVDiff", id, func(*memVDiff) error {
		if m.fenced[id] {
			return sidecar.ErrFenceOpen
		}
		delete(m.vdiffs, id)
		return nil
	})
	return err
}

func (m *memStore) RecentVDiffs(ctx context.Context, keyspace, workflow string, limit int) (*sqltypes.Result, error) {
	found, err := m.VDiffsOfWorkflow(ctx, keyspace, workflow)
	if err != nil {
		return nil, err
	}
	slices.Reverse(found)
	qr := &sqltypes.Result{Fields: sqltypes.MakeTestFields("id|vdiff_uuid|workflow|keyspace|shard|state", "int64|varchar|varbinary|varbinary|varchar|varbinary")}
	for _, v := range found[:min(limit, len(found))] {
		line := fmt.Sprintf("%d|%s|%s|%s|%s|%s", v.ID, v.UUID, v.Workflow, v.Keyspace, v.Shard, v.State)
		qr.Rows = append(qr.Rows, sqltypes.MakeTestResult(qr.Fields, line).Rows...)
	}
	return qr, nil
}

func (m *memStore) VDiffSummary(ctx context.Context, id int64) (*sqltypes.Result, error) {
	if err := m.enter(ctx, "VDiffSummary"); err != nil {
		return nil, err
	}
	v := m.get(id)
	fields := []*querypb.Field{{Name: "uuid", Type: sqltypes.VarChar}, {Name: "vdiff_state", Type: sqltypes.VarBinary}, {Name: "table_name", Type: sqltypes.VarBinary},
		{Name: "table_state", Type: sqltypes.VarBinary}, {Name: "report", Type: sqltypes.TypeJSON}}
	qr := &sqltypes.Result{Fields: fields}
	for name, t := range v.tables {
		qr.Rows = append(qr.Rows, []sqltypes.Value{sqltypes.NewVarChar(v.UUID), sqltypes.NewVarBinary(string(v.State)), sqltypes.NewVarBinary(name),
			sqltypes.NewVarBinary(string(t.State)), sqltypes.MakeTrusted(sqltypes.TypeJSON, []byte(m.report))})
	}
	slices.SortFunc(qr.Rows, func(a, b []sqltypes.Value) int { return strings.Compare(a[2].ToString(), b[2].ToString()) })
	return qr, nil
}

func (m *memStore) HasStreams(ctx context.Context, _ string) (bool, error) {
	if err := m.enter(ctx, "HasStreams"); err != nil {
		return false, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return !m.noStream, nil
}

func (m *memStore) Tables(ctx context.Context, id int64) ([]*sidecar.Table, error) {
	if err := m.enter(ctx, "Tables"); err != nil {
		return nil, err
	}
	var tables []*sidecar.Table
	for _, t := range m.get(id).tables {
		tables = append(tables, t)
	}
	return tables, nil
}
