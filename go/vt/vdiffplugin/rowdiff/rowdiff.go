// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package rowdiff

import (
	"context"
	"errors"

	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/plan"
	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/scan"
)

var (
	// ErrNotOrdered says that a stream was not ascending in its key: compare by Pair, from the start.
	ErrNotOrdered = errors.New("rows did not arrive in key order")
	// ErrMemory says that the rows that wait for their partner outgrew the bound: use more passes.
	ErrMemory = errors.New("rows waiting for their partner outgrew the memory limit")
	// ErrIndivisible says the same of rows that passes cannot share out: which groups are equal only MySQL knows.
	ErrIndivisible = errors.New("groups by text whose collation Vitess does not know outgrew the memory limit")
	// ErrStop is what Progress returns to end a comparison early without an error.
	ErrStop = errors.New("comparison ended early")
)

// Source is a stream of rows. *scan.Stream is one.
type Source interface {
	// Next returns the next rows or io.EOF.
	Next(ctx context.Context) (*scan.Batch, error)
}

// Sink receives the verdicts, one call per row or pair of rows. Rows are only valid during the call.
// Calls come from one goroutine.
type Sink interface {
	Match()
	Mismatch(source, target scan.Row) error
	ExtraSource(row scan.Row) error
	ExtraTarget(row scan.Row) error
}

// Options bound a comparison.
type Options struct {
	// MaxRows ends the comparison after that many rows or pairs; 0 is no limit.
	MaxRows int64
	// After, when its Lengths are set, is a row with the key of the checkpoint that the streams start
	// behind (other columns may be NULL): a merge checks that the first rows do come after it.
	After scan.Row
	// UpTo, when its Lengths are set, is a row with the last key that a merge looks at: rows behind it are as if they were
	// not there. Result.Last is then only set when the comparison was stopped.
	UpTo scan.Row
	// Weigher tells which texts are equal under collations that Vitess does not know. Without one such text is equal when its
	// bytes are.
	Weigher Weigher
	// MemoryLimit bounds the rows that Pair and Fold hold, in bytes.
	MemoryLimit int64
	// Passes and Pass make Pair and Fold look only at keys of hash class Pass of Passes. 0 and 1
	// passes are the same: everything. Keys that only the Weigher knows to be equal may be in unlike classes: then they are
	// found to be extra on both sides instead of mismatched. Groups of such keys cannot be shared out: ErrIndivisible.
	Passes, Pass uint64
	// Progress, when set, is called every few thousand rows. done is how many rows or pairs have
	// been counted by this comparison so far. In a merge all rows with keys up to last are finished
	// on every side; otherwise last is empty. An error ends the comparison: ErrStop ends it as if
	// MaxRows had been reached.
	Progress func(done int64, last scan.Row) error
}

// progressEvery is how many verdicts lie between two calls of Progress.
const progressEvery = 2048

// Result says how a comparison ended.
type Result struct {
	// Done is the number of rows or pairs counted.
	Done int64
	// Last is the last key's row of a merge, of either side; Lengths is nil when there was no row.
	// It owns its memory.
	Last scan.Row
	// Stopped is true when MaxRows or ErrStop ended it before all rows were seen.
	Stopped bool
}

// Compare compares the rows of sources, one per source shard, with those of target, in the way that
// the plan asks for. merge false forbids Merge even where the plan says that the streams are in order.
func Compare(ctx context.Context, t *plan.Table, merge bool, sources []Source, target Source, sink Sink, opts Options) (Result, error) {
	c, err := newComparer(t)
	if err != nil {
		return Result{}, err
	}
	switch {
	case t.Aggregated:
		return newFold(c, sources, target, sink, opts).run(ctx)
	case merge && t.Mergeable && t.KeyUnique:
		return newMerge(c, sources, target, sink, opts).run(ctx)
	case t.Reference && len(sources) > 1:
		return newFold(c, sources, target, sink, opts).run(ctx)
	default:
		return newPair(c, sources, target, sink, opts).run(ctx)
	}
}

// counter counts verdicts, calls Progress and applies MaxRows.
type counter struct {
	done int64
	opts Options
	next int64
}

func newCounter(opts Options) counter { return counter{opts: opts, next: progressEvery} }

// full says that no further row may be counted.
func (c *counter) full() bool { return c.opts.MaxRows > 0 && c.done >= c.opts.MaxRows }

// tick is called after every step with the last finished row, if any.
func (c *counter) tick(last scan.Row) error {
	if c.done < c.next || c.opts.Progress == nil {
		return nil
	}
	c.next = c.done + progressEvery
	return c.opts.Progress(c.done, last)
}
