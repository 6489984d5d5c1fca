// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package verify

import (
	"fmt"
	"slices"
)

// check verifies what always holds of a Machine, and panics where it does not. Tests call it after each event.
func (m *Machine) check() {
	assert := func(ok bool, t *table, what string) {
		if !ok {
			panic(fmt.Sprintf("table %s: %s", t.ID, what))
		}
	}
	tasks := map[*segment]int{}
	for id, task := range m.tasks {
		assert(task.id == id && !task.segment.table.gone, task.segment.table, "a task is lost")
		tasks[task.segment]++
	}
	seen, splitOff := 0, 0
	for _, t := range m.tables {
		var count [states]int
		pending, lanes := 0, 0
		var rows int64
		assert(t.first.prev == nil && len(t.first.r.After) == 0, t, "the first segment does not begin at the beginning")
		for s := t.first; s != nil; s = s.next {
			count[s.state]++
			assert(s.table == t, t, "a segment is another table's")
			if s.next == nil {
				assert(len(s.r.UpTo) == 0, t, "the last segment does not end at the end")
			} else {
				assert(s.next.prev == s && len(s.r.UpTo) > 0 && s.r.UpTo.Equal(s.next.r.After), t, "segments do not follow each other")
				assert(s.state != s.next.state || (s.state != done && s.state != left), t, "finished neighbours are not joined")
			}
			busy := s.state == walking || s.state == comparing
			assert(tasks[s] == 0 && !busy || tasks[s] == 1 && busy, t, "a segment "+s.state.String()+" has another number of tasks")
			seen += tasks[s]
			if s.pending {
				pending++
				assert(s.state == waiting || s.state == comparing, t, "a segment is pending that is "+s.state.String())
			}
			if s.state == open || s.state == walking {
				lanes++
				if s.limit > 0 {
					splitOff++
				}
				assert(slices.Contains(t.lanes, s), t, "a lane is lost")
			}
			if s.state == done {
				rows += s.rows
			}
			if s.state == waiting {
				assert(slices.ContainsFunc(m.waiting.entries, func(e entry) bool { return e.segment == s && e.at == s.at }), t, "a segment waits for ever")
			}
		}
		assert(count == t.count, t, "segments are miscounted")
		assert(pending == t.pending, t, "pending segments are miscounted")
		assert(lanes == len(t.lanes), t, "lanes are miscounted")
		if t.buckets == nil {
			assert(rows == t.stats.Rows, t, "verified rows are miscounted")
		}
		assert(slices.Contains(m.order, t) == (t.unfinished() > 0), t, "its place in the order is wrong")
		assert(t.size >= m.config.MinRows && t.size <= m.config.MaxRows, t, "a walk's size is out of bounds")
	}
	if splitOff != m.splitOff {
		panic("lanes that were split off are miscounted")
	}
	if seen != len(m.tasks) {
		panic("there are tasks of segments that are in no table")
	}
	if !slices.IsSortedFunc(m.order, larger) {
		panic("tables are out of order")
	}
}
