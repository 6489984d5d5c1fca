// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package endtoend

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// way is how the engine compares a table.
type way string

const (
	byRanges      way = "digests of ranges"
	byBuckets     way = "digests in buckets"
	byRows        way = "rows, since digests cannot do it"
	byStockSource way = "source by VStreamRows"
	byFence       way = "rows in a fence"
)

var comparedBy = regexp.MustCompile(`vdiff ([0-9a-f-]+): table (\S+?):? (is compared row by row.*|.* compared in \d+ of \d+ buckets|.* compared in \d+ ranges)`)

// ofOne are the parts of a reason that only one table has: the name of a column, and the sizes of types.
var ofOne = regexp.MustCompile(`column .+? is|\([^)]*\)`)

// ways finds out on which way each table was compared. A table that the log does not name was verified by digests; whether
// in ranges or in buckets is what its schema says.
func (b *batch) ways(t *testing.T, uuid string, fence bool) map[*randomTable]way {
	t.Helper()
	logged, why := map[string]way{}, map[string]string{}
	for _, tablet := range b.targets {
		lines, err := tablet.GrepLogs(comparedBy)
		require.NoError(t, err)
		for _, line := range lines {
			m := comparedBy.FindStringSubmatch(line)
			switch {
			case m[1] != uuid:
			case strings.Contains(m[3], "row by row"):
				logged[m[2]] = byRows
				why[m[2]] = strings.TrimPrefix(m[3], "is compared ")
			case strings.Contains(m[3], "buckets"):
				logged[m[2]] = byBuckets
			default:
				logged[m[2]] = byRanges
			}
		}
	}
	ways := map[*randomTable]way{}
	for _, table := range b.tables {
		w, ok := logged[table.name]
		switch {
		case fence:
			w = byFence
		case b.layout.from == "ostk" && w != byRows:
			w = byStockSource
		case !ok && table.looksOrdered():
			w = byRanges
		case !ok:
			w = byBuckets
		}
		ways[table] = w
		if w == byRows && len(b.planted) == 0 {
			b.o.outcome("by rows", table, shortReason(why[table.name]))
		}
	}
	return ways
}

// looksOrdered says whether the key has an order that both sides share and that can be said in SQL.
func (t *randomTable) looksOrdered() bool {
	if !t.sourceKey.unique() || !t.targetKey.unique() || !slices.Equal(t.sourceKey.columns, t.targetKey.columns) {
		return false
	}
	for _, c := range t.targetKey.columns {
		if !c.kind.ordered() || c.sourceType != c.targetType && c.kind.name != "integer" {
			return false
		}
	}
	return true
}

func shortReason(why string) string {
	return ofOne.ReplaceAllStringFunc(why, func(part string) string {
		if strings.HasPrefix(part, "column") {
			return "column C is"
		}
		return ""
	})
}
