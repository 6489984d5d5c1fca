// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package pkrange

// Middle returns a place about in the middle of a range, by the value of the first key column, which must be an
// integer. Min and max are the column's smallest and largest value, as far as is known; they stand in for
// open ends. It returns false when the column is of another kind or nothing lies between: then the range
// cannot be cut this way.
//
// Both parts, (After, middle] and (middle, UpTo], can have rows. The middle is one value, so that rows that have the same
// first value are never parted.
func Middle(r Range, min, max Value) (Bound, bool) {
	low, high := ends(r, min, max)
	n, ok := distance(low, high)
	if !ok || n == 0 {
		return nil, false
	}
	half := n / 2
	if half == 0 && len(r.After) == 1 {
		return nil, false // no row behind After is at its value
	}
	if low.Kind == Uint {
		return Bound{{Kind: Uint, Uint: low.Uint + half}}, true
	}
	return Bound{{Kind: Int, Int: int64(uint64(low.Int) + half)}}, true
}

// Span returns about how many values of its first key column a range covers, which is what shares out an estimate of a
// table's rows among its ranges. Min and max are as for Middle. It is 0 when the column is no integer or
// the range lies outside of min and max.
func Span(r Range, min, max Value) float64 {
	n, ok := distance(ends(r, min, max))
	if !ok {
		return 0
	}
	return float64(n) + 1
}

// ends returns the smallest and the largest value that the first column has in a range.
func ends(r Range, min, max Value) (low, high Value) {
	low, high = min, max
	if len(r.After) > 0 {
		low = r.After[0]
	}
	if len(r.UpTo) > 0 {
		high = r.UpTo[0]
	}
	return low, high
}

// distance returns high - low for integers of one kind when that is not negative. It always fits: the difference of
// two int64 is less than 2^64.
func distance(low, high Value) (uint64, bool) {
	switch {
	case low.Kind == Int && high.Kind == Int && low.Int <= high.Int:
		return uint64(high.Int) - uint64(low.Int), true
	case low.Kind == Uint && high.Kind == Uint && low.Uint <= high.Uint:
		return high.Uint - low.Uint, true
	}
	return 0, false
}
