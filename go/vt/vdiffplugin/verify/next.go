// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package verify

import (
	"time"

	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/pkrange"
)

// The bounds of a batch, besides ten times FirstRows rows.
const (
	maxBatchTables  = 256
	maxBatchBuckets = 1 << 16
)

// Next returns what to do now: one task, or several of tiny tables for one call. Nil says that there is nothing for
// now: there may be after any event, and at the time that Wake tells.
func (m *Machine) Next(now time.Duration) []Task {
	if batch := m.retries(now); batch != nil {
		return batch
	}
	m.cutLanes(now)
	if lane := m.lane(now); lane != nil {
		return []Task{m.start(lane)}
	}
	return m.deal(now)
}

// Wake returns when Next may have something without any event, and whether there is such a time. It is in the past when
// Next has something already.
func (m *Machine) Wake() (at time.Duration, ok bool) {
	if s := m.waiting.first(); s != nil {
		at, ok = s.at, true
	}
	for _, t := range m.order {
		if m.blocked(t) {
			continue
		}
		for _, s := range t.lanes {
			if s.state == open && s.at > 0 && (!ok || s.at < at) {
				at, ok = s.at, true
			}
		}
	}
	return at, ok
}

// retries takes the first segment that is due for another comparison; if that is a whole tiny table, others of them too.
func (m *Machine) retries(now time.Duration) (batch []Task) {
	var fill fill
	for {
		s := m.waiting.first()
		if s == nil || s.at > now {
			return batch
		}
		tiny := s.prev == nil && s.next == nil && max(s.rows, s.table.Rows) <= m.config.FirstRows
		if len(batch) > 0 && (!tiny || !fill.fits(s.table, m.config)) {
			return batch
		}
		m.waiting.take()
		fill.add(s.table)
		batch = append(batch, m.start(s))
		if !tiny {
			return batch
		}
	}
}

// lane returns the lane to walk next: one that was split off, or the first of the largest table.
func (m *Machine) lane(now time.Duration) (best *segment) {
	for _, t := range m.order {
		if m.blocked(t) {
			continue
		}
		for _, s := range t.lanes {
			switch {
			case s.state != open || s.at > now:
			case s.limit > 0:
				return s
			case best == nil && !m.tiny(t):
				best = s
			}
		}
		if best != nil && m.splitOff == 0 {
			return best
		}
	}
	return best
}

// blocked tells whether so many ranges of a table wait that it is not walked on.
func (m *Machine) blocked(t *table) bool { return t.pending >= m.config.MaxPending }

// tiny tells whether a table is one of those that are dealt out in batches: nobody has looked at it, and it seems to be
// small.
func (m *Machine) tiny(t *table) bool {
	s := t.first
	return t.Rows <= m.config.FirstRows && s.next == nil && s.state == open && s.limit == 0
}

// fill is how much is in a batch.
type fill struct {
	tables, buckets int
	rows            int64
}

// add counts a table.
func (f *fill) add(t *table) {
	f.tables++
	f.buckets += t.Buckets
	f.rows += t.Rows
}

// fits tells whether a table can be added.
func (f *fill) fits(t *table, c Config) bool {
	return f.tables < maxBatchTables && f.buckets+t.Buckets <= maxBatchBuckets && f.rows+t.Rows <= 10*c.FirstRows
}

// deal makes a batch of tiny tables. All that wait are dealt out like cards, so that the batches of all workers are about
// equally large.
func (m *Machine) deal(now time.Duration) (batch []Task) {
	var ready []*table
	var all fill
	for _, t := range m.order {
		if m.tiny(t) && t.first.at <= now {
			ready = append(ready, t)
			all.add(t)
		}
	}
	if len(ready) == 0 {
		m.batches = 0
		return nil
	}
	if m.batches == 0 {
		byRows := int((all.rows + 10*m.config.FirstRows - 1) / (10 * m.config.FirstRows))
		byTables := (len(ready) + maxBatchTables - 1) / maxBatchTables
		m.batches = min(max(m.config.Workers, byRows, byTables), len(ready))
	}
	var fill fill
	for i := 0; i < len(ready); i += m.batches {
		if t := ready[i]; i == 0 || fill.fits(t, m.config) {
			fill.add(t)
			batch = append(batch, m.start(t.first))
		}
	}
	m.batches--
	return batch
}

// start makes the task for a segment that is open or waiting.
func (m *Machine) start(s *segment) Task {
	t := s.table
	m.lastTask++
	out := Task{ID: m.lastTask, Table: t.ID, Range: s.r, Buckets: t.Buckets}
	in := &task{id: out.ID, segment: s}
	switch {
	case t.Buckets > 0:
		out.Range = pkrange.Range{}
		t.set(s, comparing)
	case s.state == waiting:
		out.SourceLimit = 4*max(s.rows, s.sourceRows) + m.config.FirstRows
		t.set(s, comparing)
	default:
		out.Limit = s.limit
		if out.Limit == 0 {
			out.Limit = t.size
		}
		out.MaxBytes, out.MaxTime = m.config.MaxBytes, m.config.TaskTime
		out.SourceLimit = 2*out.Limit + m.config.FirstRows
		in.limit = out.Limit
		t.set(s, walking)
	}
	s.at = 0
	m.tasks[out.ID] = in
	return out
}
