// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package verify

import (
	"errors"
	"fmt"
	"slices"

	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/pkrange"
)

// Machine decides what is read next for any number of tables.
type Machine struct {
	config Config
	tables map[TableID]*table
	// order has the tables that are not finished, the largest first.
	order []*table
	// splitOff is the number of lanes, of all tables, that were split off.
	splitOff int
	waiting  queue
	tasks    map[int64]*task
	lastTask int64
	lastSeq  int64
	// batches is how many more batches the tiny tables that wait are to be dealt out in, 0 when that is to be
	// counted anew.
	batches int
}

// New returns a Machine without tables.
func New(config Config) *Machine {
	return &Machine{config: config.withDefaults(), tables: map[TableID]*table{}, tasks: map[int64]*task{}}
}

// Add adds a table. An error says that it is there already or that its checkpoint is none; it can be added without
// the checkpoint then. The Machine keeps the checkpoint's bounds.
func (m *Machine) Add(t Table) error {
	if m.tables[t.ID] != nil {
		return fmt.Errorf("verify: table %q is added twice", t.ID)
	}
	if err := CheckSegments(t.Segments); err != nil {
		return err
	}
	if t.Buckets > 0 && len(t.Segments) > 1 {
		return errors.New("verify: a checkpoint has several ranges of a table that has no order")
	}
	if t.Buckets == 0 && t.Proof != AnyTime {
		return errors.New("verify: a table whose events are not idempotent cannot be compared in ranges")
	}
	m.lastSeq++
	n := &table{Table: t, seq: m.lastSeq, size: m.config.FirstRows, splitOff: &m.splitOff}
	n.Segments = nil
	if t.Buckets > 0 {
		n.buckets = newBuckets(t.Buckets)
	}
	n.load(t.Segments)
	m.tables[t.ID] = n
	if n.unfinished() > 0 {
		i, _ := slices.BinarySearchFunc(m.order, n, larger)
		m.order = slices.Insert(m.order, i, n)
	}
	m.batches = 0
	return nil
}

// larger orders tables: the largest first, those of one size as they were added.
func larger(a, b *table) int {
	switch {
	case a.Rows != b.Rows && a.Rows > b.Rows:
		return -1
	case a.Rows != b.Rows:
		return 1
	}
	return int(a.seq - b.seq)
}

// load makes the segments of a checkpoint.
func (t *table) load(segments []Segment) {
	if len(segments) == 0 {
		t.append(nil, pkrange.Range{}, open)
		return
	}
	var last *segment
	for _, from := range segments {
		st := open
		if from.Done {
			st = done
		}
		if last != nil && last.state == st {
			last.r.UpTo = from.Range.UpTo
		} else {
			last = t.append(last, from.Range, st)
		}
		if from.Done {
			last.rows += from.Rows
			t.walked += from.Rows
			t.stats.Rows += from.Rows
		}
	}
}

// CheckSegments tells whether segments can be a checkpoint: none, or ranges that follow each other from the beginning of
// the table to its end.
func CheckSegments(segments []Segment) error {
	for i, s := range segments {
		switch {
		case s.Rows < 0 || (!s.Done && s.Rows != 0):
			return errors.New("verify: a checkpoint has a range with an impossible number of rows")
		case i == 0 && len(s.Range.After) != 0, i == len(segments)-1 && len(s.Range.UpTo) != 0:
			return errors.New("verify: a checkpoint does not cover the whole table")
		case i > 0 && (len(s.Range.After) == 0 || !s.Range.After.Equal(segments[i-1].Range.UpTo)):
			return errors.New("verify: a checkpoint has ranges that do not follow each other")
		}
	}
	return nil
}

// SetBounds tells the smallest and the largest value of a table's first key column, an integer, where Add did not: the table can
// be cut into lanes from now on.
func (m *Machine) SetBounds(id TableID, smallest, largest *pkrange.Value) {
	if t := m.tables[id]; t != nil && t.Buckets == 0 && t.Min == nil {
		t.Min, t.Max = smallest, largest
	}
}

// Remove forgets a table. Whatever is told about tasks of it is ignored from then on.
func (m *Machine) Remove(id TableID) {
	t := m.tables[id]
	if t == nil {
		return
	}
	for _, s := range t.lanes {
		if s.limit > 0 {
			m.splitOff--
		}
	}
	t.gone = true
	m.forget(t)
	m.retire(t)
	delete(m.tables, id)
	m.batches = 0
}

// Abandon leaves all of a table that is not verified yet for the fence, as it is. Tasks of it that are in flight come to
// nothing.
func (m *Machine) Abandon(id TableID) {
	t := m.tables[id]
	if t == nil {
		return
	}
	m.forget(t)
	for _, s := range t.in(open, walking, comparing, waiting) {
		if s.state != left { // leaving one may have left others
			m.leave(s)
		}
	}
	m.retire(t)
}

// forget forgets the tasks of a table.
func (m *Machine) forget(t *table) {
	for id, task := range m.tasks {
		if task.segment.table == t {
			delete(m.tasks, id)
		}
	}
}

// in returns the segments that are in one of these states.
func (t *table) in(states ...state) (found []*segment) {
	for s := t.first; s != nil; s = s.next {
		if slices.Contains(states, s.state) {
			found = append(found, s)
		}
	}
	return found
}

// retire takes a table out of the order when nothing more is to be done for it.
func (m *Machine) retire(t *table) {
	if t.unfinished() > 0 && !t.gone {
		return
	}
	if i, ok := slices.BinarySearchFunc(m.order, t, larger); ok {
		m.order = slices.Delete(m.order, i, i+1)
	}
}

// Finished tells whether nothing more is to be done for a table: all of it is verified or left. So it is for a table that
// is not there.
func (m *Machine) Finished(id TableID) bool {
	t := m.tables[id]
	return t == nil || t.unfinished() == 0
}

// Done tells whether all tables are finished.
func (m *Machine) Done() bool { return len(m.order) == 0 }
