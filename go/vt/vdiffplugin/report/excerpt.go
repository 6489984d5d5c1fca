// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package report

import (
	"unicode/utf8"

	"vitess.io/vitess/go/sqltypes"
)

// cutFront begins a value that is shown from its middle on.
const cutFront = "[TRUNCATED]..."

// limitOf returns how many bytes of the values of column i are shown. asked is true when the user wants it so, false when it is for the bound
// on the report.
func (b *Builder) limitOf(i, maxValue int) (limit int, asked bool) {
	if at := b.options.TruncateAt; at > 0 && at < maxValue && !b.isKey[i] {
		return at, true
	}
	return maxValue, false
}

// skips returns for each column how many bytes are left out in front of both values of a mismatch: none, but where what would be shown of
// both is the same. Such values are shown from a little before their first difference on.
func (b *Builder) skips(source, target []sqltypes.Value, maxValue int) []int {
	skips := make([]int, len(b.table.Columns))
	for i := range b.table.Columns {
		c := &b.table.Columns[i]
		limit, _ := b.limitOf(i, maxValue)
		s, sourceIsText := bytesOf(source[i], c.Source)
		t, targetIsText := bytesOf(target[i], c.Target)
		if sourceIsText != targetIsText || !isCut(s, limit) || !isCut(t, limit) {
			continue
		}
		same := commonPrefix(s, t)
		if same+utf8.UTFMax < limit || same == len(s) && same == len(t) {
			continue
		}
		skip := max(0, min(same-limit/4, len(s)-1, len(t)-1))
		for sourceIsText && skip > 0 && !utf8.RuneStart(s[skip]) {
			skip--
		}
		skips[i] = skip
	}
	return skips
}

// isCut says whether a value is cut at a limit.
func isCut(raw []byte, limit int) bool { return len(raw) >= limit+len(cutMark)+cutWorth }

// commonPrefix is the number of bytes that both begin with.
func commonPrefix(a, b []byte) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}
