// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package endtoend

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// Each shard has all rows of a reference table. Where it is copied to several shards it goes to each of them. Where it is
// copied from several, the target has every row once; VReplication would insert the copies one over the other and fail, so
// there the first shard of the source has the only copy until all is copied, and the others get theirs behind replication.

// copies says whether the source has several copies of the table.
func (t *randomTable) copies() bool { return t.reference && t.layout.merges }

// addCopies gives the other shards of the source their copies.
func (b *batch) addCopies(t *testing.T, ctx context.Context) {
	t.Helper()
	for _, table := range b.tables {
		if !table.copies() {
			continue
		}
		for _, tablet := range b.sources[1:] {
			require.NoError(t, b.sessions.execAll(ctx, tablet, slices.Concat([]string{"set sql_log_bin = 0"}, table.inserts, []string{"set sql_log_bin = 1"})...))
		}
	}
}

// plantCopy changes one copy of the source now and then. Rows that fit the source's key might not fit the target's where
// that is another.
func (b *batch) plantCopy(ctx context.Context, t *randomTable) ([]string, error) {
	if t.unlike || t.r.IntN(2) == 0 {
		return nil, nil
	}
	tablet := pick(t.r, b.sources)
	rows, err := t.read(ctx, b.sessions, tablet, false, b.o.padding)
	if err != nil {
		return nil, err
	}
	return b.execAny(ctx, tablet, slices.Concat([]string{"set sql_log_bin = 0"}, t.change(rows, false), []string{"set sql_log_bin = 1"}))
}

// compareCopies finds what is true of a reference table: a row of the target is as each copy that has the row says, or it is
// mismatched; a row that any copy has, and the target has not, is extra.
func (t *randomTable) compareCopies(copies [][]*truthRow, target []*truthRow) (*truth, error) {
	if t.pairedBy() == nil { // then nothing was planted on the source, and any copy is as good as another
		return t.compare(copies[0], target, inShard("0"))
	}
	v, bySource, order := &truth{}, map[string][]*truthRow{}, []string(nil)
	for i, rows := range copies {
		seen := map[string]bool{}
		for _, row := range rows {
			if seen[row.key] {
				return nil, fmt.Errorf("table %s: two rows of copy %d have the key %q", t.name, i, row.key)
			}
			seen[row.key] = true
			if bySource[row.key] == nil {
				order = append(order, row.key)
			}
			bySource[row.key] = append(bySource[row.key], row)
		}
	}
	met := map[string]bool{}
	for _, row := range target {
		partners := bySource[row.key]
		unlike := slices.IndexFunc(partners, func(partner *truthRow) bool { return !partner.equal(row) })
		switch {
		case met[row.key]:
			return nil, fmt.Errorf("table %s: two rows of the target have the key %q", t.name, row.key)
		case len(partners) == 0:
			v.extraTarget = append(v.extraTarget, row)
		case unlike >= 0:
			v.mismatched = append(v.mismatched, [2]*truthRow{partners[unlike], row})
		default:
			v.matching++
		}
		met[row.key] = true
	}
	for _, key := range order {
		if !met[key] {
			v.extraSource = append(v.extraSource, bySource[key][0])
		}
	}
	return v, nil
}
