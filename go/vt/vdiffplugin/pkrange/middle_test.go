// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package pkrange

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestMiddle tests where ranges are cut: with open ends, with ends that are prefixes, when nothing lies between, and at
// the ends of what an integer holds.
func TestMiddle(t *testing.T) {
	signed := func(after, upTo Bound, min, max int64, want Bound) {
		t.Helper()
		got, ok := Middle(Range{After: after, UpTo: upTo}, Value{Int: min}, Value{Int: max})
		require.Equal(t, want, got)
		require.Equal(t, want != nil, ok)
	}
	signed(nil, nil, 1, 100, ints(50))
	signed(ints(50), nil, 1, 100, ints(75))
	signed(nil, ints(50), 1, 100, ints(25))
	signed(ints(50, 7), ints(60, 1), 1, 100, ints(55))
	signed(nil, nil, 5, 5, nil)
	signed(nil, nil, 6, 5, nil)
	signed(nil, nil, 5, 6, ints(5))
	signed(ints(5), ints(6), 0, 0, nil)
	signed(ints(5), ints(7), 0, 0, ints(6))
	signed(ints(5, 1), ints(6), 0, 0, ints(5))
	signed(ints(5, 1), ints(5, 9), 0, 0, nil)
	signed(ints(200), nil, 1, 100, nil)
	signed(nil, nil, math.MinInt64, math.MaxInt64, ints(-1))
	signed(ints(math.MaxInt64-2), ints(math.MaxInt64), 0, 0, ints(math.MaxInt64-1))
	signed(nil, nil, math.MinInt64, math.MinInt64+1, ints(math.MinInt64))

	unsigned := func(min, max uint64, want uint64) {
		t.Helper()
		got, ok := Middle(Range{}, Value{Kind: Uint, Uint: min}, Value{Kind: Uint, Uint: max})
		require.True(t, ok)
		require.Equal(t, Bound{{Kind: Uint, Uint: want}}, got)
	}
	unsigned(0, math.MaxUint64, math.MaxUint64/2)
	unsigned(math.MaxUint64-1, math.MaxUint64, math.MaxUint64-1)

	_, ok := Middle(Range{}, Value{Kind: Int}, Value{Kind: Uint, Uint: 9})
	require.False(t, ok)
	_, ok = Middle(Range{}, Value{Kind: Bytes}, Value{Kind: Bytes, Bytes: []byte("x")})
	require.False(t, ok)
}

// TestSpan tests the number of first values in a range.
func TestSpan(t *testing.T) {
	min, max := Value{Int: 1}, Value{Int: 100}
	require.EqualValues(t, 100, Span(Range{}, min, max))
	require.EqualValues(t, 51, Span(Range{After: ints(50)}, min, max))
	require.EqualValues(t, 1, Span(Range{After: ints(50, 1), UpTo: ints(50, 2)}, min, max))
	require.Zero(t, Span(Range{After: ints(101)}, min, max))
	require.EqualValues(t, math.Pow(2, 64), Span(Range{}, Value{Int: math.MinInt64}, Value{Int: math.MaxInt64}))
	require.Zero(t, Span(Range{}, Value{Kind: Bytes}, Value{Kind: Bytes}))
}

// FuzzMiddle tests on any integers that the middle lies between the ends, so that both parts of a cut are smaller.
func FuzzMiddle(f *testing.F) {
	f.Add(int64(math.MinInt64), int64(math.MaxInt64))
	f.Add(int64(3), int64(4))
	f.Fuzz(func(t *testing.T, low, high int64) {
		got, ok := Middle(Range{After: ints(low), UpTo: ints(high)}, Value{}, Value{})
		require.Equal(t, high > low && uint64(high)-uint64(low) > 1, ok)
		if ok {
			require.Greater(t, got[0].Int, low)
			require.Less(t, got[0].Int, high)
		}
	})
}
