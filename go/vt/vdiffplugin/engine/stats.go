// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package engine

import (
	"slices"
	"strings"
	"sync"

	"vitess.io/vitess/go/stats"
)

// globalStats is registered once per process, when the package is loaded. The names are those of the
// stock engine with "Plugin" in them, since both packages are linked.
var globalStats = newEngineStats()

// engineStats has the controllers of all engines of the process (of which a vttablet has one), and
// the counters that are not of a vdiff. It has a lock of its own, so that reading metrics never waits
// for an engine.
type engineStats struct {
	mu          sync.Mutex
	controllers map[*Engine]map[int64]*controller

	errors          *stats.Counter
	rowsCompared    *stats.Counter
	rowsRead        *stats.Counter
	bytesRead       *stats.Counter
	restartedTables *stats.CountersWithSingleLabel
	nilEvents       *stats.Counter
	watchErrors     *stats.Counter
	openRetries     *stats.Counter
	panics          *stats.Counter
}

func newEngineStats() *engineStats {
	s := &engineStats{
		controllers:     make(map[*Engine]map[int64]*controller),
		errors:          stats.NewCounter("VDiffPluginErrorCountTotal", "Number of errors encountered across all vdiff actions, and of runs that ended in an error"),
		rowsCompared:    stats.NewCounter("VDiffPluginRowsComparedTotal", "Number of rows compared across all vdiffs since the process started"),
		rowsRead:        stats.NewCounter("VDiffPluginRowsRead", "Number of rows that MySQL sent for digests, on all tablets of both sides"),
		bytesRead:       stats.NewCounter("VDiffPluginBytesRead", "Size of the rows that MySQL sent for digests, on all tablets of both sides"),
		restartedTables: stats.NewCountersWithSingleLabel("VDiffPluginRestartedTableDiffsCount", "Table diffs restarted due to --max-diff-duration counts by table", "table_name"),
		nilEvents:       stats.NewCounter("VDiffPluginNilEvents", "Number of events without content that the watch of the shard record delivered"),
		watchErrors:     stats.NewCounter("VDiffPluginWatchErrors", "Number of times that the watch of the shard record failed or ended"),
		openRetries:     stats.NewCounter("VDiffPluginOpenRetries", "Number of failed attempts to open the vdiff engine"),
		panics:          stats.NewCounter("VDiffPluginPanics", "Number of panics that were contained"),
	}
	stats.NewGaugeFunc("VDiffPluginCount", "Number of current vdiffs", s.count)
	stats.NewGaugesFuncWithMultiLabels("VDiffPluginRowsCompared", "Live number of rows compared per vdiff by table",
		[]string{"workflow", "uuid", "table"}, s.rowsByTable)
	stats.NewCountersFuncWithMultiLabels("VDiffPluginErrors", "Count of specific errors seen during the lifetime of a vdiff",
		[]string{"workflow", "uuid", "error"}, s.errorsByText)
	stats.NewGaugesFuncWithMultiLabels("VDiffPluginPhaseTimings", "Time spent in the phases of a vdiff, in nanoseconds",
		[]string{"workflow", "uuid", "table", "phase"}, s.phaseTimings)
	stats.NewGaugesFuncWithMultiLabels("VDiffPluginRanges", "Number of ranges of each table that are verified, retrying or fenced",
		[]string{"workflow", "uuid", "table", "state"}, s.rangesByState)
	stats.NewGaugesFuncWithMultiLabels("VDiffPluginOldestReadView", "Age of the oldest read view that a vdiff holds open, in nanoseconds",
		[]string{"workflow", "uuid"}, s.oldestViews)
	stats.NewGaugesFuncWithMultiLabels("VDiffPluginHeldUpTime", "Time that reads of a vdiff were held up by throttlers or waited for their turn, in nanoseconds",
		[]string{"workflow", "uuid"}, s.heldUp)
	stats.NewStringMapFuncWithMultiLabels("VDiffPluginState", "State of each vdiff, and what it waits for",
		[]string{"workflow", "uuid"}, "state", s.states)
	return s
}

// reset forgets the controllers of an engine. Engine.resetLocked is its only caller.
func (s *engineStats) reset(e *Engine) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.controllers, e)
}

func (s *engineStats) add(e *Engine, ct *controller) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.controllers[e] == nil {
		s.controllers[e] = make(map[int64]*controller)
	}
	s.controllers[e][ct.id] = ct
}

func (s *engineStats) remove(e *Engine, id int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.controllers[e], id)
}

// all returns the controllers of all engines.
func (s *engineStats) all() []*controller {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []*controller
	for _, controllers := range s.controllers {
		for _, ct := range controllers {
			all = append(all, ct)
		}
	}
	return all
}

func (s *engineStats) count() int64 { return int64(len(s.all())) }

func (s *engineStats) rowsByTable() map[string]int64 {
	result := make(map[string]int64)
	for _, ct := range s.all() {
		ct.metrics.mu.Lock()
		for table, n := range ct.metrics.rows {
			result[joinLabels(ct.v.Workflow, ct.v.UUID, table)] += n
		}
		ct.metrics.mu.Unlock()
	}
	return result
}

func (s *engineStats) errorsByText() map[string]int64 {
	result := make(map[string]int64)
	for _, ct := range s.all() {
		ct.metrics.mu.Lock()
		for text, n := range ct.metrics.errors {
			result[joinLabels(ct.v.Workflow, ct.v.UUID, text)] += n
		}
		ct.metrics.mu.Unlock()
	}
	return result
}

func (s *engineStats) phaseTimings() map[string]int64 {
	result := make(map[string]int64)
	for _, ct := range s.all() {
		ct.metrics.mu.Lock()
		for key, took := range ct.metrics.phases {
			result[joinLabels(ct.v.Workflow, ct.v.UUID, key.table, key.phase)] += took.Nanoseconds()
		}
		ct.metrics.mu.Unlock()
	}
	return result
}

func (s *engineStats) rangesByState() map[string]int64 {
	result := make(map[string]int64)
	for _, ct := range s.all() {
		ct.metrics.mu.Lock()
		for key, n := range ct.metrics.ranges {
			result[joinLabels(ct.v.Workflow, ct.v.UUID, key.table, key.state)] += n
		}
		ct.metrics.mu.Unlock()
	}
	return result
}

func (s *engineStats) oldestViews() map[string]int64 {
	result := make(map[string]int64)
	for _, ct := range s.all() {
		result[joinLabels(ct.v.Workflow, ct.v.UUID)] = ct.metrics.oldestView().Nanoseconds()
	}
	return result
}

func (s *engineStats) heldUp() map[string]int64 {
	result := make(map[string]int64)
	for _, ct := range s.all() {
		ct.metrics.mu.Lock()
		result[joinLabels(ct.v.Workflow, ct.v.UUID)] = ct.metrics.heldUp.Nanoseconds()
		ct.metrics.mu.Unlock()
	}
	return result
}

func (s *engineStats) states() map[string]string {
	result := make(map[string]string)
	for _, ct := range s.all() {
		l := ct.describe()
		state := string(l.State)
		if l.Waiting != "" {
			state += ", waiting for " + l.Waiting
		}
		result[joinLabels(l.Workflow, l.UUID)] = state
	}
	return result
}

// joinLabels makes the key of a metric with several labels. Collectors split it at the dots, so a
// label must not have any: a workflow called a.b would shift all labels after it.
func joinLabels(labels ...string) string {
	for i, label := range labels {
		labels[i] = strings.ReplaceAll(label, ".", "_")
	}
	return strings.Join(labels, ".")
}

// LiveVDiffs returns the vdiffs that the engine holds, ordered by workflow and UUID.
func (e *Engine) LiveVDiffs() []Live {
	e.mu.Lock()
	controllers := make([]*controller, 0, len(e.controllers))
	for _, ct := range e.controllers {
		controllers = append(controllers, ct)
	}
	e.mu.Unlock()
	live := make([]Live, 0, len(controllers))
	for _, ct := range controllers {
		live = append(live, ct.describe())
	}
	slices.SortFunc(live, func(a, b Live) int {
		return strings.Compare(a.Workflow+"\x00"+a.UUID, b.Workflow+"\x00"+b.UUID)
	})
	return live
}
