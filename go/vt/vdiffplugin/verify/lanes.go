// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package verify

import (
	"time"

	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/pkrange"
)

// cutLanes cuts the largest lanes that nobody walks, until there is one for each worker: large tables at the beginning of a
// vdiff, and the largest rest whenever some lane has come to its end.
func (m *Machine) cutLanes(now time.Duration) {
	lanes := 0
	for _, t := range m.order {
		if lanes >= m.config.Workers {
			return
		}
		if m.tiny(t) || m.blocked(t) {
			continue
		}
		for _, s := range t.lanes {
			if s.limit == 0 {
				lanes++
			}
		}
	}
	for ; lanes < m.config.Workers; lanes++ {
		if !m.cutLargest(now) {
			return
		}
	}
}

// cutLargest cuts one lane, and tells whether there was one.
func (m *Machine) cutLargest(now time.Duration) bool {
	for {
		var largest *segment
		most := float64(2 * m.config.FirstRows)
		for _, t := range m.order {
			if t.Min == nil || t.Max == nil || t.Buckets > 0 || m.blocked(t) || t.expected() <= float64(4*m.config.FirstRows) {
				continue
			}
			density := t.density()
			for _, s := range t.lanes {
				if s.state != open || s.whole || s.limit > 0 || s.at > now {
					continue
				}
				if rows := density * pkrange.Span(s.r, *t.Min, *t.Max); rows >= most && (largest == nil || rows > most) {
					largest, most = s, rows
				}
			}
		}
		if largest == nil {
			return false
		}
		t := largest.table
		if middle, ok := pkrange.Middle(largest.r, *t.Min, *t.Max); ok {
			t.cut(largest, middle)
			return true
		}
		largest.whole = true
	}
}

// density estimates the rows for each value of the first key column in a table's lanes. It is what is left of
// the table's rows, so that an estimate is better the further the lanes are walked: of a table with all its
// rows at one end of the values, the other lanes soon end, and all the rest is expected where it is.
func (t *table) density() float64 {
	var span float64
	for _, s := range t.lanes {
		if s.limit == 0 {
			span += pkrange.Span(s.r, *t.Min, *t.Max)
		}
	}
	if span == 0 {
		return 0
	}
	return max(0, t.expected()-float64(t.walked)) / span
}

// expected estimates the rows of a table whose Min and Max are known: as it was said at first, which may be a day old or of when the
// table was empty, or as the walks so far make likely, where that is more.
func (t *table) expected() float64 {
	rows, all := float64(t.Rows), pkrange.Span(pkrange.Range{}, *t.Min, *t.Max)
	done := all
	for _, s := range t.lanes {
		done -= pkrange.Span(s.r, *t.Min, *t.Max)
	}
	if done >= 1 && t.walked > 0 {
		rows = max(rows, float64(t.walked)*all/done)
	}
	return rows
}
