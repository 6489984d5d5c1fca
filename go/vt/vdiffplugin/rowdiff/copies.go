// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package rowdiff

import (
	"context"
	"slices"

	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/scan"
)

// joinCopies makes one group of those that are one row of a reference table, whose key one copy has in other case or accents: each is of
// copies that do not have the other, and the target has room for one of them only. A key that every copy has is not looked at.
func (f *fold) joinCopies(ctx context.Context) error {
	if f.c.table.Aggregated || !f.c.table.KeyUnique {
		return nil
	}
	type keyed struct {
		*group
		key string
	}
	var some []keyed
	for key, g := range f.groups {
		if len(g.from) < len(f.sources) {
			some = append(some, keyed{g, key})
		}
	}
	if len(some) < 2 {
		return nil
	}
	slices.SortFunc(some, func(a, b keyed) int { return slices.Compare(a.from, b.from) })
	err := f.c.learn(ctx, f.counter.opts.Weigher, func(yield func(scan.Row, bool) bool) {
		for _, g := range some {
			if !yield(g.row, true) {
				return
			}
		}
	}, nil)
	if err != nil {
		return err
	}
	byFolded := make(map[string]*group, len(some))
	for _, g := range some {
		folded := string(f.c.appendFolded(nil, g.row, true))
		into := byFolded[folded]
		switch {
		case into == nil:
			byFolded[folded] = g.group
		case !slices.ContainsFunc(g.from, func(source int) bool { return slices.Contains(into.from, source) }):
			into.from = append(into.from, g.from...)
			if into.differs.Lengths == nil {
				into.differs = g.row
			}
			f.groups[g.key] = into
		}
	}
	return nil
}
