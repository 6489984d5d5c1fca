// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package rowdiff

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/plan"
	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/scan"
)

// fold brings the source's rows to one per key, in memory, and then compares the target's rows with
// them: groups of a rule with group by, and the copies of a reference table's rows.
//
// VReplication adds up what collides in the target's unique index, so that groups have folded keys. Copies are found by the
// bytes of their keys; those that nothing has met in the end are paired by their folded keys.
type fold struct {
	c       *comparer
	counter counter
	sink    Sink
	sources []Source
	target  Source
	groups  map[string]*group
	alone   []scan.Row // rows of the target that may still meet a group by their folded keys
	memory  int64
}

// group is what is known of the source's rows of one key.
type group struct {
	row     scan.Row // the first row
	differs scan.Row // reference tables: a copy that is not like the first
	sums    []sum    // aggregated tables: one per column
	rows    int64    // how many rows the group has
	from    []int    // reference tables: the sources that had the key, in their order
	here    int64    // reference tables: how many rows of the last of them had it
	times   int64    // how often the target must have it: of copies, as often as the one that has it most often
	met     int64    // how many target rows had the key
}

func newFold(c *comparer, sources []Source, target Source, sink Sink, opts Options) *fold {
	return &fold{c: c, counter: newCounter(opts), sink: sink, sources: sources, target: target, groups: make(map[string]*group)}
}

func (f *fold) run(ctx context.Context) (Result, error) {
	var keyBuf []byte
	for i, s := range f.sources {
		err := each(ctx, s, func(row scan.Row) error {
			if !f.inPass(row, true) {
				return nil
			}
			keyBuf = f.appendKey(keyBuf[:0], row, true)
			return f.add(i, keyBuf, row)
		})
		if err != nil {
			return Result{}, err
		}
	}
	if err := f.joinCopies(ctx); err != nil {
		return Result{}, err
	}
	err := each(ctx, f.target, func(row scan.Row) error {
		if !f.inPass(row, false) {
			return nil
		}
		keyBuf = f.appendKey(keyBuf[:0], row, false)
		if f.mayMeet(keyBuf) {
			return f.wait(row)
		}
		return f.meet(keyBuf, row)
	})
	if err == nil {
		err = f.settle(ctx)
	}
	if err == nil {
		err = f.leftovers()
	}
	if errors.Is(err, ErrStop) {
		return Result{Done: f.counter.done, Stopped: true}, nil
	}
	return Result{Done: f.counter.done}, err
}

// appendKey appends what rows are found by.
func (f *fold) appendKey(dst []byte, row scan.Row, fromSource bool) []byte {
	if f.c.table.Aggregated {
		return f.c.appendFolded(dst, row, fromSource)
	}
	return f.c.appendKey(dst, row, fromSource)
}

func (f *fold) inPass(row scan.Row, fromSource bool) bool {
	switch {
	case f.counter.opts.Passes < 2:
		return true
	case !f.c.table.Aggregated:
		return f.counter.opts.inPass(f.c.appendFolded(nil, row, fromSource))
	}
	// A group that were in two passes would be wrong in both: text whose weight is not known has no say.
	var key []byte
	for _, k := range f.c.table.Key {
		if f.c.columns[k].weights == nil {
			key = f.c.appendFoldedColumn(key, row, k, fromSource)
		}
	}
	return f.counter.opts.inPass(key)
}

// divisible says whether groups can be shared out to passes.
func (f *fold) divisible() bool {
	return slices.ContainsFunc(f.c.table.Key, func(k int) bool { return f.c.columns[k].weights == nil })
}

// mayMeet says whether a row of the target that has no group by this key may have one by its folded key.
func (f *fold) mayMeet(key []byte) bool {
	if f.c.table.Aggregated {
		return f.c.weighs() // folded keys are known when the weights are, at the end
	}
	return f.c.table.KeyUnique && f.groups[string(key)] == nil
}

// wait keeps a row of the target.
func (f *fold) wait(row scan.Row) error {
	f.alone = append(f.alone, row.Clone())
	return f.grow(row.Size() + perRow)
}

func (f *fold) grow(n int) error {
	f.memory += int64(n)
	if limit := f.counter.opts.MemoryLimit; limit > 0 && f.memory > limit {
		cause := ErrMemory
		if f.c.table.Aggregated && !f.divisible() {
			cause = ErrIndivisible
		}
		return fmt.Errorf("table %s: %d keys of the source and %d rows of the target: %w", f.c.table.Name, len(f.groups), len(f.alone), cause)
	}
	return nil
}

// each calls visit with every row of a stream.
func each(ctx context.Context, s Source, visit func(scan.Row) error) error {
	cu := cursor{source: s}
	defer cu.release()
	for {
		if err := cu.next(ctx); err != nil || cu.eof {
			return err
		}
		if err := visit(cu.head.row); err != nil {
			return err
		}
	}
}

func (f *fold) add(source int, key []byte, row scan.Row) error {
	g := f.groups[string(key)]
	if g == nil {
		g = &group{row: row.Clone(), here: 1, times: 1}
		if f.c.table.Aggregated {
			g.sums = make([]sum, len(f.c.columns))
		} else {
			g.from = append(make([]int, 0, len(f.sources)), source)
		}
		f.groups[string(key)] = g
		if err := f.grow(len(key) + row.Size() + perRow + len(g.sums)*72 + cap(g.from)*8); err != nil {
			return err
		}
	} else if !f.c.table.Aggregated {
		if source != g.from[len(g.from)-1] {
			g.from, g.here = append(g.from, source), 0
		}
		g.here++
		if g.here > 1 && f.c.table.KeyUnique {
			return fmt.Errorf("table %s: a source shard has two rows with one key", f.c.table.Name)
		}
		g.times = max(g.times, g.here)
		if g.differs.Lengths == nil && !g.row.Equal(row) {
			g.differs = row.Clone()
		}
		return nil
	}
	g.rows++
	for i := range g.sums {
		if err := g.sums[i].add(&f.c.columns[i], row, i); err != nil {
			return fmt.Errorf("table %s: column %s: %w", f.c.table.Name, f.c.columns[i].Name, err)
		}
	}
	return nil
}

// result is the group's row with its aggregates filled in.
func (f *fold) result(g *group) scan.Row {
	if g.sums == nil {
		return g.row
	}
	var out scan.Row
	for i := range f.c.columns {
		col := &f.c.columns[i]
		value, ok := g.row.Value(i)
		if col.Aggregate != plan.AggregateNone {
			value, ok = g.sums[i].value(col)
		}
		if !ok {
			out.Lengths = append(out.Lengths, -1)
			continue
		}
		out.Lengths = append(out.Lengths, int32(len(value)))
		out.Values = append(out.Values, value...)
	}
	return out
}

func (f *fold) meet(key []byte, row scan.Row) error {
	if f.counter.full() {
		return ErrStop
	}
	g := f.groups[string(key)]
	f.counter.done++
	if g == nil && f.isEmptyGroup(row) {
		f.sink.Match()
		return f.counter.tick(scan.Row{})
	}
	if g == nil || g.met == g.times {
		if err := f.sink.ExtraTarget(row); err != nil {
			return err
		}
		return f.counter.tick(scan.Row{})
	}
	g.met++
	source := f.result(g)
	equal := f.equal(g, source, row)
	if equal && g.differs.Lengths != nil && !f.equal(g, g.differs, row) {
		source, equal = g.differs, false
	}
	if equal {
		f.sink.Match()
	} else if err := f.sink.Mismatch(source, row); err != nil {
		return err
	}
	return f.counter.tick(scan.Row{})
}

// residue is what may be left of a sum of floats from which all was subtracted.
const residue = 1e-9

// isEmptyGroup says whether a target row is a group whose last row is gone: VReplication counts it
// down to zeros but never deletes it. A sum of floats need not be zero exactly where a count says that there are no rows.
func (f *fold) isEmptyGroup(row scan.Row) bool {
	if !f.c.table.Aggregated {
		return false
	}
	aggregates, slack := 0, 0.0
	for i := range f.c.columns {
		switch f.c.columns[i].Aggregate {
		case plan.AggregateNone:
			continue
		case plan.AggregateCount:
			slack = residue
		}
		aggregates++
	}
	for i := range f.c.columns {
		col := &f.c.columns[i]
		if value, ok := row.Value(i); ok && col.Aggregate != plan.AggregateNone && !sameSum(col, value, []byte("0"), slack) {
			return false
		}
	}
	return aggregates > 0
}

// equal compares aggregates by value: NULL and zero are the same sum, since VReplication adds NULLs
// up to zero, and sums of floats may differ by what rounding does. The key of a group is equal already, and has
// the bytes of the row that came first, be it there still or not. A column that is neither of
// the key nor an aggregate has the value of the row that was applied last, whichever that was, or
// NULL after a delete: it is compared where the group has but one row.
func (f *fold) equal(g *group, source, target scan.Row) bool {
	for i := range f.c.columns {
		col := &f.c.columns[i]
		if col.Aggregate == plan.AggregateNone {
			if f.c.table.Aggregated {
				if _, ok := target.Value(i); !ok || g.rows > 1 || f.c.isKey[i] {
					continue
				}
			}
			if !f.c.equalColumn(i, source, target) {
				return false
			}
			continue
		}
		s, sok := source.Value(i)
		t, tok := target.Value(i)
		if !sok {
			s = []byte("0")
		}
		if !tok {
			t = []byte("0")
		}
		if !sameSum(col, s, t, g.sums[i].slack(col, g.rows)) {
			return false
		}
	}
	return true
}
