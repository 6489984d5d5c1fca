// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package verify

import (
	"time"

	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/pkrange"
)

// Walked tells that the target's part of a task has been read: up to where (empty: to the end of the task's Range), how
// many rows and bytes, and how long it took. What is behind is open at once, so that it is walked on while the sources
// are still being read. It must be told of every walk before Compared; of other tasks it may be.
func (m *Machine) Walked(id int64, upTo pkrange.Bound, rows, bytes int64, took time.Duration) {
	task := m.tasks[id]
	if task == nil {
		return
	}
	s := task.segment
	t := s.table
	t.stats.Read += rows
	t.stats.Bytes += bytes
	if s.state != walking {
		return
	}
	if len(upTo) > 0 && !upTo.Equal(s.r.UpTo) {
		if upTo.Equal(s.r.After) {
			// No step forward: the range that was read, if any, is not the one that would be compared.
			task.void = true
			return
		}
		t.cut(s, upTo)
	}
	task.full, task.took = rows >= task.limit, took
	s.rows = rows
	t.walked += rows
	t.set(s, comparing)
}

// Compared tells what the comparison of a task showed.
func (m *Machine) Compared(id int64, o Outcome, now time.Duration) {
	task := m.tasks[id]
	if task == nil {
		return
	}
	delete(m.tasks, id)
	s := task.segment
	t := s.table
	switch {
	case s.state != comparing || task.void:
		m.failed(s, now)
		return
	case t.Buckets > 0:
		m.comparedBuckets(s, o, now)
		return
	}
	s.fails = 0
	t.walked += o.TargetRows - s.rows
	s.rows, s.sourceRows = o.TargetRows, o.SourceRows
	if cut := o.SourceUpTo; len(cut) > 0 && !cut.Equal(s.r.UpTo) {
		m.overflowed(s, o, now)
		return
	}
	if o.Equal {
		m.resize(task, o, true)
		m.verified(s)
		return
	}
	if !o.SamePosition {
		m.resize(task, o, false)
	}
	s.tries++
	most := max(o.TargetRows, o.SourceRows)
	switch {
	case t.stats.Fenced >= m.config.MaxFence:
		m.leave(s)
	case !o.SamePosition && s.tries < m.config.Tries:
		m.wait(s, now+m.config.backoff(s.tries))
	case o.TargetRows <= m.config.LeafRows || (o.SamePosition && most <= m.config.FirstRows):
		m.leave(s)
	default:
		m.split(s)
	}
}

// overflowed deals with a segment of which a source has far more rows than expected: it is cut where the source stopped. What
// is before was not compared as such, so it is now; what is behind is open.
func (m *Machine) overflowed(s *segment, o Outcome, now time.Duration) {
	t := s.table
	s.tries++
	if !o.SourceUpTo.Equal(s.r.After) {
		t.cut(s, o.SourceUpTo)
	}
	switch {
	case t.stats.Fenced >= m.config.MaxFence || s.tries > m.config.Tries:
		m.leave(s)
	case o.SamePosition:
		m.wait(s, now)
	default:
		m.wait(s, now+m.config.backoff(s.tries))
	}
}

// Failed tells that a task's call failed for a reason that passes. Its range waits; counting failures and giving up is the
// caller's business.
func (m *Machine) Failed(id int64, now time.Duration) {
	if task := m.tasks[id]; task != nil {
		delete(m.tasks, id)
		m.failed(task.segment, now)
	}
}

// failed makes a segment wait after a call that failed: as a lane if it was not walked.
func (m *Machine) failed(s *segment, now time.Duration) {
	s.fails++
	at := now + m.config.backoff(s.fails)
	if s.state == walking {
		s.table.set(s, open)
		s.at = at
		return
	}
	m.wait(s, at)
}

// wait makes a segment wait for another comparison.
func (m *Machine) wait(s *segment, at time.Duration) {
	s.at = at
	s.table.set(s, waiting)
	m.waiting.push(s)
}

// split makes a segment a lane that is walked in small steps.
func (m *Machine) split(s *segment) {
	t := s.table
	s.limit = max(m.config.LeafRows, s.rows/8)
	t.walked -= s.rows
	s.rows, s.sourceRows, s.tries, s.at = 0, 0, 0, 0
	t.stats.Splits++
	t.set(s, open)
}

// verified ends a segment that is equal.
func (m *Machine) verified(s *segment) {
	t := s.table
	t.stats.Verified++
	t.stats.Rows += s.rows
	t.finish(s, done)
	m.retire(t)
}

// leave ends a segment for the fence. When as many are left as there may be, those that wait for another try are left too.
func (m *Machine) leave(s *segment) {
	t := s.table
	if t.buckets != nil {
		t.stats.Fenced += t.buckets.leave()
		t.finish(s, left)
		m.retire(t)
		return
	}
	t.stats.Fenced++
	t.finish(s, left)
	if t.stats.Fenced == m.config.MaxFence {
		for _, other := range t.in(waiting) {
			if other.tries > 0 {
				m.leave(other)
			}
		}
	}
	m.retire(t)
}

// resize adapts the rows of a table's walks to how one of them went: to whether it was equal at first sight, and to the time of the
// slower side. A source that scans the rows of many targets takes many times as long as the target, and the longer a
// comparison takes the more changes meanwhile. Only a walk of the present size counts: of several that were begun at one
// size, one changes it.
func (m *Machine) resize(task *task, o Outcome, equal bool) {
	t := task.segment.table
	if task.limit == 0 || task.limit != t.size || task.segment.limit > 0 {
		return
	}
	took := max(task.took, o.Took)
	switch {
	case !equal || took > 2*m.config.TaskTime:
		t.size = max(t.size/2, m.config.MinRows)
	case task.full && took <= m.config.TaskTime/2:
		t.size = min(t.size*2, m.config.MaxRows)
	}
}
