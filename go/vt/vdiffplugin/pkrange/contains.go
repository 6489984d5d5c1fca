// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package pkrange

// Contains tells whether a row with this key is in a range. Compare orders two values of a key column
// (negative, 0, positive) as MySQL does. It says what Predicate means, and is what tests hold SQL against: nothing
// but a test knows a column's order outside of MySQL.
func Contains(key []Value, r Range, compare func(column int, a, b Value) int) bool {
	return behind(key, r.After, compare) && (len(r.UpTo) == 0 || !behind(key, r.UpTo, compare))
}

// behind tells whether a key is behind a place.
func behind(key []Value, b Bound, compare func(column int, a, b Value) int) bool {
	for i, v := range b {
		if c := compare(i, key[i], v); c != 0 {
			return c > 0
		}
	}
	return len(b) == 0
}
