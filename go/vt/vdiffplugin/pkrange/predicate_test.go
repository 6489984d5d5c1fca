// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package pkrange

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// ints makes a Bound of integers.
func ints(values ...int64) (b Bound) {
	for _, v := range values {
		b = append(b, Value{Kind: Int, Int: v})
	}
	return b
}

// TestPredicate tests the SQL of ranges: open, one column, several, bounds that are prefixes, and ends that
// begin alike.
func TestPredicate(t *testing.T) {
	f := func(after, upTo Bound, want string, params ...int64) {
		t.Helper()
		sql, got := Predicate([]string{"`a`", "b", "c"}, Range{After: after, UpTo: upTo})
		require.Equal(t, want, sql)
		require.Equal(t, []Value(ints(params...)), got)
	}
	f(nil, nil, "")
	f(ints(1), nil, "`a` > ?", 1)
	f(nil, ints(2), "`a` <= ?", 2)
	f(ints(1), ints(2), "`a` > ? and `a` <= ?", 1, 2)
	f(ints(1, 2, 3), nil, "`a` >= ? and (`a` > ? or (`a` = ? and (b > ? or (b = ? and c > ?))))", 1, 1, 1, 2, 2, 3)
	f(nil, ints(1, 2), "`a` <= ? and (`a` < ? or (`a` = ? and b <= ?))", 1, 1, 1, 2)
	f(ints(1, 2), ints(3), "`a` >= ? and (`a` > ? or (`a` = ? and b > ?)) and `a` <= ?", 1, 1, 1, 2, 3)
	f(ints(7, 1), ints(7, 2), "`a` = ? and b > ? and b <= ?", 7, 1, 2)
	f(ints(7, 1), ints(7), "`a` = ? and b > ?", 7, 1)
	f(ints(7), ints(7, 2), "`a` > ? and `a` <= ? and (`a` < ? or (`a` = ? and b <= ?))", 7, 7, 7, 7, 2)
	f(ints(7, 1, 1), ints(7, 1, 9), "`a` = ? and b = ? and c > ? and c <= ?", 7, 1, 1, 9)
	f(ints(7, 1, 5), ints(7, 2, 9), "`a` = ? and b >= ? and (b > ? or (b = ? and c > ?)) and b <= ? and (b < ? or (b = ? and c <= ?))",
		7, 1, 1, 1, 5, 2, 2, 2, 9)
	require.Equal(t, "`a`, b, c", OrderBy([]string{"`a`", "b", "c"}))
}
