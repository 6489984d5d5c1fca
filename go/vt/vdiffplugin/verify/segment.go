// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package verify

import (
	"time"

	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/pkrange"
)

// state is what is known about a segment.
type state uint8

const (
	// open: nobody looks at it. It is a lane: a walk may start at its beginning.
	open state = iota
	// walking: a task reads it on the target, and where it will be cut is not known yet.
	walking
	// comparing: a task compares all of it.
	comparing
	// waiting: it was unequal, or a call failed; it is compared again at a time.
	waiting
	// done: verified.
	done
	// left: for the fence.
	left
	states = iota
)

// String names a state in logs of tests.
func (s state) String() string {
	return [...]string{"open", "walking", "comparing", "waiting", "done", "left"}[s]
}

// segment is a part of a table. Neighbours that are both done or both left are joined, so that a table's list
// is about as long as it has lanes and ranges in trouble.
type segment struct {
	table      *table
	prev, next *segment
	r          pkrange.Range
	state      state
	// rows and sourceRows are what was there when it was last read, 0 for not known. Rows of a done segment are
	// those that count as verified.
	rows, sourceRows int64
	// limit is the rows of a walk while it is a lane that was split off, 0 for what the table's walks have.
	limit int64
	// tries is how many comparisons found it unequal, fails how many calls for it failed since the last that did not.
	tries, fails int
	// pending says that it was waiting and nothing has come of it yet.
	pending bool
	// at is the time before which it is not looked at, while it is open or waiting.
	at time.Duration
	// whole says that a lane cannot be cut.
	whole bool
}

// table is a table with its segments.
type table struct {
	Table
	seq     int64
	first   *segment
	count   [states]int
	pending int
	// lanes are the segments that are open or walking. Those that were split off are counted for all tables together.
	lanes    []*segment
	splitOff *int
	// size is the rows of the next walk.
	size int64
	// walked is the rows of all segments that are no lanes: what an estimate of the rest leaves out.
	walked  int64
	buckets *buckets
	gone    bool
	stats   Stats
}

// unfinished is the number of segments of which nothing final is known.
func (t *table) unfinished() int {
	return t.count[open] + t.count[walking] + t.count[comparing] + t.count[waiting]
}

// append adds a segment at the end of a table that is being made.
func (t *table) append(last *segment, r pkrange.Range, st state) *segment {
	s := &segment{table: t, r: r, prev: last, state: st}
	if last == nil {
		t.first = s
	} else {
		last.next = s
	}
	t.enter(s)
	return s
}

// cut cuts a segment at a place. It keeps the part up to there, and the rest is a new segment that is open.
func (t *table) cut(s *segment, at pkrange.Bound) *segment {
	rest := &segment{table: t, prev: s, next: s.next, r: pkrange.Range{After: at, UpTo: s.r.UpTo}, limit: s.limit, state: open}
	if s.next != nil {
		s.next.prev = rest
	}
	s.next = rest
	s.r.UpTo = at
	t.enter(rest)
	return rest
}

// set changes a segment's state.
func (t *table) set(s *segment, st state) {
	t.exit(s)
	s.state = st
	t.enter(s)
}

// enter counts a segment in its state.
func (t *table) enter(s *segment) {
	t.count[s.state]++
	if s.state == open || s.state == walking {
		t.lanes = append(t.lanes, s)
		if s.limit > 0 {
			*t.splitOff++
		}
	}
	pending := s.state == waiting || (s.state == comparing && s.pending)
	if pending {
		t.pending++
	}
	s.pending = pending
}

// exit undoes enter. The segment remembers that it was pending.
func (t *table) exit(s *segment) {
	t.count[s.state]--
	if s.pending {
		t.pending--
	}
	if s.state != open && s.state != walking {
		return
	}
	if s.limit > 0 {
		*t.splitOff--
	}
	for i, lane := range t.lanes {
		if lane == s {
			t.lanes = append(t.lanes[:i], t.lanes[i+1:]...)
			return
		}
	}
}

// finish ends a segment as done or left, and joins it with neighbours of the same kind.
func (t *table) finish(s *segment, st state) {
	t.set(s, st)
	if p := s.prev; p != nil && p.state == st {
		t.swallow(p, s)
		s = p
	}
	if n := s.next; n != nil && n.state == st {
		t.swallow(s, n)
	}
}

// swallow joins a segment with the next one.
func (t *table) swallow(s, next *segment) {
	s.r.UpTo = next.r.UpTo
	s.rows += next.rows
	s.next = next.next
	if s.next != nil {
		s.next.prev = s
	}
	t.exit(next)
	next.prev, next.next = nil, nil
}
