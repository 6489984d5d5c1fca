// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package engine

import (
	"maps"
	"strings"
	"sync"
	"time"

	"vitess.io/vitess/go/vt/vttablet/tabletmanager/vdiff"
)

// metrics is what a controller tells of itself. It has a lock of its own, for it is read by whoever
// collects metrics at any time.
type metrics struct {
	mu      sync.Mutex
	state   vdiff.VDiffState
	waiting string
	lastErr string
	dead    bool // the outcome could not be recorded
	rows    map[string]int64
	phases  map[tablePhase]time.Duration
	errors  map[string]int64
	ranges  map[tableRanges]int64
	views   map[int64]time.Time // when each read view that is open was opened
	viewID  int64
	heldUp  time.Duration
	// earlier are those of the rows that were compared before this run, which began at began.
	earlier map[string]int64
	began   time.Time
}

// tableRanges is a table and the state of ranges: verified, retrying or fenced.
type tableRanges struct{ table, state string }

type tablePhase struct{ table, phase string }

// maxErrorLabel bounds the error as a label of a metric, and maxErrorLabels the number of them.
const (
	maxErrorLabel  = 128
	maxErrorLabels = 20
)

func (m *metrics) init(state vdiff.VDiffState) {
	m.state = state
	m.rows = make(map[string]int64)
	m.phases = make(map[tablePhase]time.Duration)
	m.errors = make(map[string]int64)
	m.ranges = make(map[tableRanges]int64)
	m.views = make(map[int64]time.Time)
}

func (m *metrics) setState(state vdiff.VDiffState) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.state, m.waiting = state, ""
}

func (m *metrics) setWaiting(what string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.waiting = what
}

func (m *metrics) setRows(table string, n int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.rows[table] = n
}

// forget says that the rows of a table are compared again: none is any more.
func (m *metrics) forget(table string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.rows, table)
	delete(m.earlier, table)
}

// begin says that a run begins: the rows so far are of earlier ones.
func (m *metrics) begin(now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.began, m.earlier = now, maps.Clone(m.rows)
}

// pace returns when a run would have begun that had compared all rows, those of earlier runs too, at the pace of this one. ok is false where
// nothing tells: when all rows are of this run, or none is yet.
func (m *metrics) pace(now time.Time) (began time.Time, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var rows, earlier int64
	for _, n := range m.rows {
		rows += n
	}
	for _, n := range m.earlier {
		earlier += n
	}
	if m.began.IsZero() || earlier == 0 || rows <= earlier {
		return time.Time{}, false
	}
	return now.Add(-time.Duration(float64(now.Sub(m.began)) * float64(rows) / float64(rows-earlier))), true
}

func (m *metrics) addError(text string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.lastErr = text
	if len(text) > maxErrorLabel {
		text = strings.ToValidUTF8(text[:maxErrorLabel], "")
	}
	if _, known := m.errors[text]; known || len(m.errors) < maxErrorLabels {
		m.errors[text]++
	}
}

func (m *metrics) abandon() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.dead, m.waiting = true, "nothing: its outcome could not be recorded, see the log"
}

func (m *metrics) abandoned() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.dead
}

// Live is a vdiff that the engine holds.
type Live struct {
	UUID     string
	Workflow string
	State    vdiff.VDiffState
	// Waiting says what the vdiff waits for, "" when it works or has ended.
	Waiting      string
	RowsCompared int64
	LastError    string
}

func (ct *controller) describe() Live {
	m := &ct.metrics
	m.mu.Lock()
	defer m.mu.Unlock()
	l := Live{UUID: ct.v.UUID, Workflow: ct.v.Workflow, State: m.state, Waiting: m.waiting, LastError: m.lastErr}
	for _, n := range m.rows {
		l.RowsCompared += n
	}
	return l
}

// RowsCompared is part of differ.Observer.
func (ct *controller) RowsCompared(table string, n int64) {
	globalStats.rowsCompared.Add(n)
	ct.metrics.mu.Lock()
	defer ct.metrics.mu.Unlock()
	ct.metrics.rows[table] += n
}

// Phase is part of differ.Observer.
func (ct *controller) Phase(table, phase string, took time.Duration) {
	ct.metrics.mu.Lock()
	defer ct.metrics.mu.Unlock()
	ct.metrics.phases[tablePhase{table, phase}] += took
}

// TableRestarted is part of differ.Observer.
func (ct *controller) TableRestarted(table string) {
	globalStats.restartedTables.Add(table, 1)
}

// TableAnew is part of differ.Observer.
func (ct *controller) TableAnew(table string) {
	ct.metrics.forget(table)
}

// Waiting is part of differ.Observer.
func (ct *controller) Waiting(what string) {
	ct.metrics.setWaiting(what)
}

// Ranges is part of differ.Observer.
func (ct *controller) Ranges(table string, verified, retrying, fenced int64) {
	ct.metrics.mu.Lock()
	defer ct.metrics.mu.Unlock()
	ct.metrics.ranges[tableRanges{table, "verified"}] = verified
	ct.metrics.ranges[tableRanges{table, "retrying"}] = retrying
	ct.metrics.ranges[tableRanges{table, "fenced"}] = fenced
}

// Read is part of differ.Observer.
func (ct *controller) Read(rows, bytes int64) {
	globalStats.rowsRead.Add(rows)
	globalStats.bytesRead.Add(bytes)
}

// HeldUp is part of differ.Observer.
func (ct *controller) HeldUp(d time.Duration) {
	ct.metrics.mu.Lock()
	defer ct.metrics.mu.Unlock()
	ct.metrics.heldUp += d
}

// View is part of differ.Observer.
func (ct *controller) View() (closed func()) {
	m := &ct.metrics
	m.mu.Lock()
	defer m.mu.Unlock()
	m.viewID++
	id := m.viewID
	m.views[id] = time.Now()
	return func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		delete(m.views, id)
	}
}

// oldestView is the age of the oldest read view that is open, 0 when none is.
func (m *metrics) oldestView() (age time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, opened := range m.views {
		age = max(age, time.Since(opened))
	}
	return age
}
