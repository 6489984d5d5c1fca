// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package load

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestSplit tests that the parts of a sequence hold each of its numbers once, in order, and no part too many.
func TestSplit(t *testing.T) {
	f := func(seq Sequence, most int64, parts int) {
		t.Helper()
		var want, got []int64
		for n := seq.First; n <= seq.Last; n += seq.step() {
			want = append(want, n)
		}
		split := seq.split(most)
		for _, part := range split {
			require.LessOrEqual(t, part.Len(), most)
			for n := part.First; n <= part.Last; n += part.step() {
				got = append(got, n)
			}
		}
		require.Equal(t, want, got)
		require.Equal(t, int64(len(want)), seq.Len())
		require.Len(t, split, parts)
	}
	f(Sequence{First: 1, Last: 0}, 10, 0)
	f(Sequence{First: 1, Last: 1}, 10, 1)
	f(Sequence{First: 1, Last: 10}, 10, 1)
	f(Sequence{First: 1, Last: 11}, 10, 2)
	f(Sequence{First: 2, Last: 20, Step: 2}, 3, 4)
	f(Sequence{First: 1, Last: 20, Step: 2}, 3, 4)
	f(Sequence{First: -5, Last: 20, Step: 7}, 1, 4)
}

// TestInsert tests the statement that makes the rows of a part.
func TestInsert(t *testing.T) {
	table := Table{Name: "t", Values: "n, n * 2"}
	require.Equal(t,
		"insert into t with recursive seq (n) as (select 3 union all select n + 2 from seq where n + 2 <= 9) select n, n * 2 from seq",
		table.insert(Sequence{First: 3, Last: 9, Step: 2}))
}
