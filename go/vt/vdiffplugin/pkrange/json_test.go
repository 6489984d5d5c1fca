// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package pkrange

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestJSON tests that ranges of all kinds of values come back exactly as they were, and how they are written.
func TestJSON(t *testing.T) {
	f := func(r Range, want string) {
		t.Helper()
		got, err := json.Marshal(r)
		require.NoError(t, err)
		require.Equal(t, want, string(got))
		var back Range
		require.NoError(t, json.Unmarshal(got, &back))
		require.Equal(t, r, back)
	}
	f(Range{}, `[[],[]]`)
	f(Range{After: ints(math.MinInt64, math.MaxInt64)}, `[["i-9223372036854775808","i9223372036854775807"],[]]`)
	f(Range{UpTo: Bound{{Kind: Uint, Uint: math.MaxUint64}}}, `[[],["u18446744073709551615"]]`)
	f(Range{UpTo: Bound{
		{Kind: Decimal, Bytes: []byte("12.5")}, {Kind: Temporal, Bytes: []byte("2026-01-01")}, {Kind: Bytes, Bytes: []byte{0, 255}}, {Kind: Bytes, Bytes: []byte{}},
	}}, `[[],["dMTIuNQ","tMjAyNi0wMS0wMQ","bAP8","b"]]`)

	_, err := json.Marshal(Range{After: Bound{{Kind: 9}}})
	require.ErrorContains(t, err, "unknown kind")
}

// TestJSONGarbage tests that what is no range is refused, whatever a lenient reader would make of it, and that the error
// does not show it.
func TestJSONGarbage(t *testing.T) {
	f := func(data string, want error) {
		t.Helper()
		r := Range{After: ints(1)}
		err := r.UnmarshalJSON([]byte(data))
		require.Equal(t, want, err)
		require.Equal(t, Range{After: ints(1)}, r, "not changed")
	}
	f("", errRange)
	f("null", errRange)
	f("{}", errRange)
	f("[[]]", errRange)
	f("[[],[],[]]", errRange)
	f("[[],[]] x", errRange)
	f("[null,[]]", errBound)
	f("[[],[null]]", errBound)
	f("[[],[1]]", errBound)
	f(`[[],["i1","i1","i1","i1","i1","i1","i1","i1","i1","i1","i1","i1","i1","i1","i1","i1","i1"]]`, errBound)
	for _, value := range []string{"", "i", "x1", "i+1", "i01", "i-0", "i 1", "i1.0", "i9223372036854775808", "u-1", "u18446744073709551616", "b=", "bQQ==", "bQR", "bQ", "b\\nQQ", "dé"} {
		f(`[["`+value+`"],[]]`, errValue)
	}
}
