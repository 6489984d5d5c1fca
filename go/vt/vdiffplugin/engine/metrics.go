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
	// earlier are those of the rows that were compared before this run, which began to compare at began. placed are the tables whose place it has
	// told: of the others both are what the records say.
	earlier map[string]int64
	placed  map[string]bool
	began   time.Time
}

// tableRanges is a table and the state of ranges.
type tableRanges struct{ table, state string }

var rangeStates = [...]string{"verified", "retrying", "fenced"}

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

// begin says that a run begins: the rows so far are of earlier ones.
func (m *metrics) begin() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.began, m.earlier, m.placed = time.Time{}, maps.Clone(m.rows), make(map[string]bool)
}

// place says that a table is compared from where so many of its rows have been. The first time in a run these are of earlier ones; later it
// is what is left of the run's own, and of the earlier ones where the table goes back behind them.
func (m *metrics) place(table string, rows int64, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.began.IsZero() {
		m.began = now
	}
	if !m.placed[table] || rows < m.earlier[table] {
		m.earlier[table] = rows
	}
	m.placed[table], m.rows[table] = true, rows
	for _, state := range rangeStates {
		delete(m.ranges, tableRanges{table, state})
	}
}

// longestPace bounds how long ago a run would have begun: no rest that takes longer is told to clients.
const longestPace = 365 * 24 * time.Hour

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
	ago := float64(now.Sub(m.began)) * float64(rows) / float64(rows-earlier)
	return now.Add(-time.Duration(min(ago, float64(longestPace)))), true
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

// follow takes over the errors that the vdiff had before, so that their count does not begin anew with each run.
func (m *metrics) follow(before *metrics) {
	before.mu.Lock()
	errors := maps.Clone(before.errors)
	before.mu.Unlock()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.errors = errors
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

// TableAt is part of differ.Observer.
func (ct *controller) TableAt(table string, rows int64) {
	ct.metrics.place(table, rows, time.Now())
}

// Waiting is part of differ.Observer.
func (ct *controller) Waiting(what string) {
	ct.metrics.setWaiting(what)
}

// Ranges is part of differ.Observer.
func (ct *controller) Ranges(table string, verified, retrying, fenced int64) {
	ct.metrics.mu.Lock()
	defer ct.metrics.mu.Unlock()
	for i, n := range []int64{verified, retrying, fenced} {
		ct.metrics.ranges[tableRanges{table, rangeStates[i]}] = n
	}
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
