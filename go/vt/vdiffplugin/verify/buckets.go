// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package verify

import "time"

// buckets is what is known about the buckets of a table that has no order.
type buckets struct {
	done []bool
	// open is how many are not done, fewest the least there were when tries were counted last.
	open, fewest int
	tries        int
	left         bool
}

// newBuckets returns n buckets of which nothing is known.
func newBuckets(n int) *buckets {
	return &buckets{done: make([]bool, n), open: n, fewest: n}
}

// leave leaves all buckets that are not done for the fence, and returns how many.
func (b *buckets) leave() int {
	b.left = true
	return b.open
}

// proved tells whether bucket i is right by an outcome.
func (t *table) proved(o Outcome, i int) bool {
	switch {
	case t.Proof == SamePosition && !o.SamePosition, t.Proof == AtOnce && !(o.SamePosition && o.Equal):
		return false
	}
	return o.Equal || (i < len(o.EqualBuckets) && o.EqualBuckets[i])
}

// comparedBuckets takes the outcome of a table that has no order. A bucket that was proved once is done, and its rows of that
// time count. The others are compared again, which means to read the whole table, as long as their number at least
// halves; a number of tries that do not halve it ends that.
func (m *Machine) comparedBuckets(s *segment, o Outcome, now time.Duration) {
	t := s.table
	b := t.buckets
	s.fails = 0
	for i := range b.done {
		if b.done[i] || !t.proved(o, i) {
			continue
		}
		b.done[i] = true
		b.open--
		t.stats.Verified++
		if i < len(o.BucketRows) {
			s.rows += o.BucketRows[i]
			t.stats.Rows += o.BucketRows[i]
		}
	}
	if b.open == 0 {
		t.finish(s, done)
		m.retire(t)
		return
	}
	s.tries++
	if b.open <= b.fewest/2 {
		b.tries, b.fewest = 0, b.open
	}
	if b.tries++; o.SamePosition || b.tries >= m.config.Tries {
		m.leave(s)
		return
	}
	m.wait(s, now+m.config.backoff(b.tries))
}

// LeftBuckets returns the buckets of a table that are left for the fence, in ascending order.
func (m *Machine) LeftBuckets(id TableID) (numbers []int) {
	t := m.tables[id]
	if t == nil || t.buckets == nil || !t.buckets.left {
		return nil
	}
	for i, done := range t.buckets.done {
		if !done {
			numbers = append(numbers, i)
		}
	}
	return numbers
}
