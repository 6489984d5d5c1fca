// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package verify

import "slices"

// op is what an event does. A workflow has events of one kind: set; insert and clear; or add, drop and move.
type op int

const (
	set    op = iota // a key has one row with this value, or none for 0
	insert           // a key has one more row: a table without a unique key
	clear            // a key has none: VReplication deletes all that are equal
	add              // a row, told by its value, is there
	drop             // it is gone
	move             // it has another key; where it was lost there is nothing to move
)

// event is a change on a source shard.
type event struct {
	op              op
	key, value, was int
}

// touches tells whether an event changes what a key has.
func (e event) touches(key int) bool { return e.key == key || (e.op == move && e.was == key) }

// source is a source shard: all that ever happened on it. Its position is the number of events.
type source struct{ events []event }

// state returns the rows of all keys at a position.
func (s *source) state(keys, position int) [][]int {
	state := make([][]int, keys)
	for _, e := range s.events[:position] {
		e.apply(state)
	}
	return state
}

// apply changes the rows of keys as VReplication does. It tells whether a row was where the event expects it.
func (e event) apply(state [][]int) bool {
	switch e.op {
	case set:
		state[e.key] = rows(e.value)
	case insert:
		state[e.key] = append(slices.Clone(state[e.key]), e.value)
	case clear:
		state[e.key] = nil
	case add:
		if find(state, e.value) >= 0 {
			return false
		}
		put(state, e.key, e.value)
	case drop:
		return take(state, e.value)
	case move:
		if !take(state, e.value) {
			return false
		}
		put(state, e.key, e.value)
	}
	return true
}

// rows is what there is of a key with this value.
func rows(value int) []int {
	if value == 0 {
		return nil
	}
	return []int{value}
}

// find returns the key that has a value, -1 for none.
func find(state [][]int, value int) int {
	return slices.IndexFunc(state, func(rows []int) bool { return slices.Contains(rows, value) })
}

// put adds a value to a key, in order.
func put(state [][]int, key, value int) {
	state[key] = append(slices.Clone(state[key]), value)
	slices.Sort(state[key])
}

// take removes a value from wherever it is.
func take(state [][]int, value int) bool {
	key := find(state, value)
	if key < 0 {
		return false
	}
	state[key] = slices.DeleteFunc(slices.Clone(state[key]), func(v int) bool { return v == value })
	return true
}

// last returns the position of the last event of a key.
func (s *source) last(key int) int {
	for i := len(s.events); i > 0; i-- {
		if s.events[i-1].touches(key) {
			return i
		}
	}
	return 0
}

// write changes a row on its source: a new value, one of few so that values come back, or none. Where events add rows, it is one more
// or none; where they move rows, a row is new, gone, or under another key of its shard.
func (w *model) write() {
	key := w.IntN(w.keys)
	s := &w.sources[key%shards]
	e := event{key: key, value: w.IntN(4)}
	switch w.kind {
	case SamePosition:
		e.op, e.value = insert, 1
		if w.IntN(3) == 0 {
			e.op = clear
		}
	case AtOnce:
		state := s.state(w.keys, len(s.events))
		e.value = 1 + key%shards + shards*w.IntN(w.keys)
		switch e.was = find(state, e.value); {
		case e.was < 0:
			e.op = add
		case e.was == key || w.IntN(3) == 0:
			e.op, e.key = drop, e.was
		default:
			e.op = move
		}
	}
	s.events = append(s.events, e)
}

// apply applies one event to the target, or loses it, and tells whether there was one.
func (w *model) apply() bool {
	shard := w.IntN(shards)
	for range shards {
		if shard = (shard + 1) % shards; w.applied[shard] == len(w.sources[shard].events) {
			continue
		}
		e := w.sources[shard].events[w.applied[shard]]
		w.applied[shard]++
		switch {
		case w.faults && w.step > 0 && w.IntN(10) == 0:
			w.faulted[e.key] = w.step
			if e.op == move {
				w.faulted[e.was] = w.step
			}
		case e.apply(w.target):
		case e.op == add: // a stream would stop here: a fault of now
			w.faulted[e.key] = w.step
		case e.op == move: // the fault is as old as it was where the row should have been
			w.faulted[e.key] = max(w.faulted[e.key], w.faulted[e.was])
		}
		return true
	}
	return false
}

// damage plants a fault beside the stream: a value damaged, a row gone, there twice, or under another key.
func (w *model) damage() {
	if !w.faults {
		return
	}
	key, what := w.IntN(w.keys), w.IntN(4)
	if w.kind == AtOnce {
		what |= 1 // the target's own key stays unique
	}
	w.faulted[key] = w.step
	switch row := w.target[key]; what {
	case 0:
		w.target[key] = []int{9}
	case 1:
		w.target[key] = nil
	case 2:
		w.target[key] = append(slices.Clone(row), row...)
	case 3:
		other := w.IntN(w.keys)
		w.faulted[other] = w.step
		w.target[key] = nil
		for _, value := range row {
			put(w.target, other, value)
		}
	}
}
