// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package verify

import (
	"slices"

	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/pkrange"
)

// Checkpoint returns what is verified of a table, in key order, neighbours joined: what Add takes to go on from here. If
// that were more than most segments, verified ones are given up, those with the fewest rows first; they will be compared
// again. What is left for the fence is not verified.
func (m *Machine) Checkpoint(id TableID, most int) (segments []Segment) {
	t := m.tables[id]
	if t == nil {
		return nil
	}
	for s := t.first; s != nil; s = s.next {
		segments = join(segments, Segment{Range: s.r, Done: s.state == done, Rows: s.rows})
	}
	// Given up, a segment vanishes together with one neighbour, or joins two.
	var verified []int
	for i, s := range segments {
		if s.Done {
			verified = append(verified, i)
		}
	}
	slices.SortStableFunc(verified, func(a, b int) int {
		switch {
		case segments[a].Rows < segments[b].Rows:
			return -1
		case segments[a].Rows > segments[b].Rows:
			return 1
		}
		return 0
	})
	count := len(segments)
	for _, i := range verified {
		if count <= max(most, 1) {
			break
		}
		if i > 0 {
			count--
		}
		if i < len(segments)-1 {
			count--
		}
		segments[i].Done = false
	}
	var joined []Segment
	for _, s := range segments {
		joined = join(joined, s)
	}
	return joined
}

// join appends a segment, or makes it part of the last one.
func join(segments []Segment, s Segment) []Segment {
	if !s.Done {
		s.Rows = 0
	}
	if n := len(segments); n > 0 && segments[n-1].Done == s.Done {
		segments[n-1].Range.UpTo = s.Range.UpTo
		segments[n-1].Rows += s.Rows
		return segments
	}
	return append(segments, s)
}

// Left returns the ranges of a table that are left for the fence, in key order, neighbours joined. It has none for a table
// that is compared by buckets: see LeftBuckets.
func (m *Machine) Left(id TableID) (ranges []pkrange.Range) {
	t := m.tables[id]
	if t == nil || t.buckets != nil {
		return nil
	}
	for _, s := range t.in(left) {
		ranges = append(ranges, s.r)
	}
	return ranges
}

// Settle tells that a range that Left returned has been compared in a fence, so that a checkpoint has it as done. Rows is
// how many rows the target had. For a table that is compared by buckets the range is the zero Range, and rows
// those of the buckets that were left. It returns false when no such range is left.
func (m *Machine) Settle(id TableID, r pkrange.Range, rows int64) bool {
	t := m.tables[id]
	if t == nil {
		return false
	}
	for _, s := range t.in(left) {
		if !s.r.Equal(r) {
			continue
		}
		if t.buckets != nil {
			t.buckets.left = false
			s.rows += rows
		} else {
			s.rows = rows
		}
		t.stats.Rows += rows
		t.finish(s, done)
		return true
	}
	return false
}
