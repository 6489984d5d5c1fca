// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package rowdiff

import (
	"context"
	"errors"
	"fmt"

	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/scan"
)

// merge pairs rows of streams that arrive in key order.
type merge struct {
	c       *comparer
	counter counter
	sink    Sink
	sources []*orderedCursor // a heap by head; those at their end are removed
	target  *orderedCursor
	group   []*orderedCursor // the sources whose heads have the smallest key
	last    scan.Row         // see finish
}

func newMerge(c *comparer, sources []Source, target Source, sink Sink, opts Options) *merge {
	m := &merge{c: c, counter: newCounter(opts), sink: sink, target: newOrderedCursor(c, "target", target)}
	for i, s := range sources {
		m.sources = append(m.sources, newOrderedCursor(c, fmt.Sprintf("source %d of %d", i+1, len(sources)), s))
	}
	return m
}

func (m *merge) run(ctx context.Context) (Result, error) {
	all := append([]*orderedCursor{m.target}, m.sources...)
	defer func() {
		for _, cu := range all {
			cu.release()
		}
	}()
	for _, cu := range all {
		if err := cu.startAfter(m.counter.opts.After); err != nil {
			return Result{}, err
		}
		if err := cu.endAt(m.counter.opts.UpTo); err != nil {
			return Result{}, err
		}
	}
	// Opening the streams was the slow part: their first rows are there, or will be soon.
	for _, cu := range all {
		if err := cu.next(ctx); err != nil {
			return Result{}, err
		}
	}
	if err := m.heapify(); err != nil {
		return Result{}, err
	}
	for {
		if m.counter.full() {
			return m.result(true), nil
		}
		more, err := m.step(ctx)
		if errors.Is(err, ErrStop) {
			return m.result(true), nil
		}
		if err != nil {
			return m.result(false), err
		}
		if !more {
			return m.result(false), nil
		}
	}
}

func (m *merge) result(stopped bool) Result {
	r := Result{Done: m.counter.done, Stopped: stopped}
	if m.last.Lengths != nil {
		r.Last = m.last.Clone()
	}
	return r
}

// step finishes the smallest key of all streams. It returns false at the end.
func (m *merge) step(ctx context.Context) (bool, error) {
	if len(m.sources) == 0 {
		if m.target.eof {
			return false, nil
		}
		return true, m.extraTarget(ctx)
	}
	source := m.sources[0]
	// The usual case first: one row on each side, equal to the byte, with no other source at that key.
	n, err := compareHeads(source, m.target)
	if err != nil {
		return false, err
	}
	if n > 0 {
		return true, m.extraTarget(ctx)
	}
	if len(m.sources) > 1 {
		return true, m.stepGroup(ctx, n == 0)
	}
	m.counter.done++
	switch {
	case n < 0:
		if err := m.sink.ExtraSource(source.head.row); err != nil {
			return false, err
		}
		return true, m.advance(ctx, source, nil)
	case m.c.equal(source.head.row, m.target.head.row):
		m.sink.Match()
	default:
		if err := m.sink.Mismatch(source.head.row, m.target.head.row); err != nil {
			return false, err
		}
	}
	return true, m.advance(ctx, source, m.target)
}

func (m *merge) extraTarget(ctx context.Context) error {
	m.counter.done++
	if err := m.sink.ExtraTarget(m.target.head.row); err != nil {
		return err
	}
	return m.advance(ctx, nil, m.target)
}

// stepGroup is step for several sources: it takes all sources whose heads have the smallest key. One
// of them is paired with the target's row (if that has the key); the rest are extra, or for a
// reference table further copies of the same row.
func (m *merge) stepGroup(ctx context.Context, inTarget bool) error {
	if err := m.popGroup(); err != nil {
		return err
	}
	partner := m.group[0]
	if inTarget {
		for _, cu := range m.group {
			if m.c.equal(cu.head.row, m.target.head.row) == !m.c.table.Reference {
				// The equal row, or among copies the one that is not.
				partner = cu
				break
			}
		}
	}
	for _, cu := range m.group {
		switch {
		case cu == partner && inTarget:
			m.counter.done++
			if m.c.equal(cu.head.row, m.target.head.row) {
				m.sink.Match()
			} else if err := m.sink.Mismatch(cu.head.row, m.target.head.row); err != nil {
				return err
			}
		case cu == partner || !m.c.table.Reference:
			m.counter.done++
			if err := m.sink.ExtraSource(cu.head.row); err != nil {
				return err
			}
		}
	}
	target := m.target
	if !inTarget {
		target = nil
	}
	return m.advance(ctx, partner, target)
}

// advance moves on all streams that took part in a step: source (of a group: all of it) and target,
// either of which may be nil. The key just finished is the last one.
func (m *merge) advance(ctx context.Context, source, target *orderedCursor) error {
	head := source
	if head == nil {
		head = target
	}
	tickErr := m.counter.tick(head.head.row)
	// The last key is needed when a comparison ends. Rows do not outlive their batch, so it is copied
	// where a batch, or the comparison, ends.
	if tickErr != nil || head.i+1 == head.batch.Len() || m.counter.full() {
		head.head.row.CopyTo(&m.last)
	}
	if tickErr != nil {
		return tickErr
	}
	if target != nil {
		if err := target.next(ctx); err != nil {
			return err
		}
	}
	if source == nil {
		return nil
	}
	if len(m.group) == 0 {
		if err := source.next(ctx); err != nil {
			return err
		}
		return m.fix()
	}
	for _, cu := range m.group {
		if err := cu.next(ctx); err != nil {
			return err
		}
		if err := m.push(cu); err != nil {
			return err
		}
	}
	m.group = m.group[:0]
	return nil
}

// The heap of sources, smallest head first. It is written out because comparing can fail.

func (m *merge) heapify() error {
	cursors := m.sources
	m.sources = nil
	for _, cu := range cursors {
		if err := m.push(cu); err != nil {
			return err
		}
	}
	return nil
}

func (m *merge) push(cu *orderedCursor) error {
	if cu.eof {
		return nil
	}
	m.sources = append(m.sources, cu)
	for i := len(m.sources) - 1; i > 0; {
		parent := (i - 1) / 2
		n, err := compareHeads(m.sources[i], m.sources[parent])
		if err != nil {
			return err
		}
		if n >= 0 {
			return nil
		}
		m.sources[i], m.sources[parent] = m.sources[parent], m.sources[i]
		i = parent
	}
	return nil
}

func (m *merge) pop() (*orderedCursor, error) {
	top, end := m.sources[0], len(m.sources)-1
	m.sources[0] = m.sources[end]
	m.sources = m.sources[:end]
	return top, m.fix()
}

// fix restores the heap after its top changed, and drops a top that is at its end.
func (m *merge) fix() error {
	if len(m.sources) > 0 && m.sources[0].eof {
		end := len(m.sources) - 1
		m.sources[0] = m.sources[end]
		m.sources = m.sources[:end]
	}
	for i := 0; ; {
		child := 2*i + 1
		if child >= len(m.sources) {
			return nil
		}
		if right := child + 1; right < len(m.sources) {
			n, err := compareHeads(m.sources[right], m.sources[child])
			if err != nil {
				return err
			}
			if n < 0 {
				child = right
			}
		}
		n, err := compareHeads(m.sources[child], m.sources[i])
		if err != nil {
			return err
		}
		if n >= 0 {
			return nil
		}
		m.sources[i], m.sources[child] = m.sources[child], m.sources[i]
		i = child
	}
}

// popGroup takes all sources whose heads have the smallest key off the heap.
func (m *merge) popGroup() error {
	m.group = m.group[:0]
	for {
		cu, err := m.pop()
		if err != nil {
			return err
		}
		m.group = append(m.group, cu)
		if len(m.sources) == 0 {
			return nil
		}
		n, err := compareHeads(m.sources[0], cu)
		if n != 0 || err != nil {
			return err
		}
	}
}
