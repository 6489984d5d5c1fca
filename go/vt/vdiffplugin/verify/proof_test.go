// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package verify

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestProof tests which buckets are done by a comparison, for each Proof: of a table whose events add rows none that was read at unlike
// positions, and of one whose events move rows none unless all are equal at once.
func TestProof(t *testing.T) {
	f := func(proof Proof, o Outcome, wantLeft ...int) {
		t.Helper()
		m := New(Config{Workers: 1, Tries: 3, RetryAfter: time.Second})
		require.NoError(t, m.Add(Table{ID: "t", Rows: 100, Buckets: 3, Proof: proof}))
		now, reads := time.Duration(0), 0
		for ; !m.Done(); now += 10 * time.Second {
			for _, task := range m.Next(now) {
				reads++
				m.Compared(task.ID, o, now)
				m.check()
			}
			require.Less(t, reads, 10)
		}
		assert.Equal(t, wantLeft, m.LeftBuckets("t"), fmt.Sprint(proof, o))
		if verified := 3 - len(wantLeft); verified > 0 {
			assert.Equal(t, int64(verified), m.Stats("t").Rows)
		} else {
			assert.Zero(t, m.Stats("t").Rows)
		}
	}
	equal := func(same bool) Outcome {
		return Outcome{Equal: true, SamePosition: same, EqualBuckets: []bool{true, true, true}, BucketRows: []int64{1, 1, 1}}
	}
	part := func(same bool) Outcome {
		return Outcome{SamePosition: same, EqualBuckets: []bool{true, false, true}, BucketRows: []int64{1, 1, 1}}
	}
	f(AnyTime, equal(false))
	f(AnyTime, part(false), 1)
	f(AnyTime, part(true), 1)

	f(SamePosition, equal(true))
	f(SamePosition, equal(false), 0, 1, 2)
	f(SamePosition, part(false), 0, 1, 2)
	f(SamePosition, part(true), 1)

	f(AtOnce, equal(true))
	f(AtOnce, equal(false), 0, 1, 2)
	f(AtOnce, part(false), 0, 1, 2)
	f(AtOnce, part(true), 0, 1, 2)

	// Ranges are read at unlike positions.
	m := New(Config{})
	require.ErrorContains(t, m.Add(Table{ID: "t", Proof: SamePosition}), "in ranges")
	require.ErrorContains(t, m.Add(Table{ID: "t", Proof: AtOnce}), "in ranges")
}
