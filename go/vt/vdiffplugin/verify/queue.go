// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package verify

import (
	"container/heap"
	"time"
)

// queue has the segments that wait, the one that is due first at the front. A segment that has stopped waiting for
// another reason stays in it until its turn comes, and is skipped.
type queue struct {
	entries entries
	seq     int64
}

type entry struct {
	segment *segment
	at      time.Duration
	seq     int64
}

type entries []entry

func (e entries) Len() int { return len(e) }
func (e entries) Less(i, j int) bool {
	return e[i].at < e[j].at || (e[i].at == e[j].at && e[i].seq < e[j].seq)
}
func (e entries) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e *entries) Push(x any)   { *e = append(*e, x.(entry)) }
func (e *entries) Pop() any {
	old := *e
	last := old[len(old)-1]
	old[len(old)-1] = entry{}
	*e = old[:len(old)-1]
	return last
}

// push adds a segment that is waiting.
func (q *queue) push(s *segment) {
	q.seq++
	heap.Push(&q.entries, entry{segment: s, at: s.at, seq: q.seq})
}

// first returns the segment that is due first, nil when none waits.
func (q *queue) first() *segment {
	for len(q.entries) > 0 {
		s := q.entries[0].segment
		if s.state == waiting && s.at == q.entries[0].at && !s.table.gone {
			return s
		}
		heap.Pop(&q.entries)
	}
	return nil
}

// take removes the segment that first returned.
func (q *queue) take() { heap.Pop(&q.entries) }
