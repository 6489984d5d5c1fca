// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package rowdiff

import (
	"context"
	"maps"
	"slices"

	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/scan"
)

// settle compares the rows of the target that wait with the groups that their folded keys belong to.
func (f *fold) settle(ctx context.Context) error {
	if len(f.alone) == 0 {
		return f.regroup(ctx) // groups that the target has not are counted, too
	}
	if f.c.table.Aggregated {
		if err := f.regroup(ctx); err != nil {
			return err
		}
		for _, row := range f.alone {
			if err := f.meet(f.c.appendFolded(nil, row, false), row); err != nil {
				return err
			}
		}
		return nil
	}
	if err := f.c.learn(ctx, f.counter.opts.Weigher, f.unsettled, nil); err != nil {
		return err
	}
	folded := make(map[string]string, len(f.groups))
	for key, g := range f.groups {
		if g.met == 0 {
			folded[string(f.c.appendFolded(nil, g.row, true))] = key
		}
	}
	for _, row := range f.alone {
		at := f.c.appendFolded(nil, row, false)
		key := folded[string(at)]
		delete(folded, string(at))
		if err := f.meet([]byte(key), row); err != nil { // the key of no group is empty, which is none
			return err
		}
	}
	return nil
}

// unsettled yields the first row of each group that is not met, and the rows that wait.
func (f *fold) unsettled(yield func(row scan.Row, fromSource bool) bool) {
	for _, g := range f.groups {
		if g.met == 0 && !yield(g.row, true) {
			return
		}
	}
	for _, row := range f.alone {
		if !yield(row, false) {
			return
		}
	}
}

// regroup makes one group of those whose folded keys turn out to be equal as soon as the weights of text are known.
func (f *fold) regroup(ctx context.Context) error {
	if !f.c.table.Aggregated || !f.c.weighs() {
		return nil
	}
	if err := f.c.learn(ctx, f.counter.opts.Weigher, f.unsettled, f.grow); err != nil {
		return err
	}
	groups := make(map[string]*group, len(f.groups))
	for _, old := range slices.Sorted(maps.Keys(f.groups)) {
		g := f.groups[old]
		key := string(f.c.appendFolded(nil, g.row, true))
		into := groups[key]
		if into == nil {
			groups[key] = g
			continue
		}
		into.rows += g.rows
		for i := range into.sums {
			into.sums[i].merge(&g.sums[i])
		}
	}
	f.groups = groups
	return nil
}

// leftovers are groups that the target does not have, or not as often as it must.
func (f *fold) leftovers() error {
	for _, g := range f.groups {
		for g.met < g.times {
			g.met++ // a group may be there by several keys
			if f.counter.full() {
				return ErrStop
			}
			f.counter.done++
			if err := f.sink.ExtraSource(f.result(g)); err != nil {
				return err
			}
		}
	}
	return nil
}
