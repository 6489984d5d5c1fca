// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package verify

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestModel tests the protocol on a model, in thousands of random interleavings of writes, replication, reads and retries: every
// fault that lasts is left for the fence, whatever its kind, unless it came after its row was read; and without faults
// only what is written to is left.
func TestModel(t *testing.T) {
	faults, lasting, left := 0, 0, 0
	seeds(*roundsFlag, func(seed uint64) {
		w := newModel(seed, seed%2 == 0, false)
		w.run()
		if what := w.verdict(); what != "" {
			require.Fail(t, what, "rerun with -seed=%d", seed)
		}
		faults += len(w.faulted)
		left += len(w.m.Left("t")) + len(w.m.LeftBuckets("t"))
		for key := range w.keys {
			if !slices.Equal(w.target[key], w.want(key)) {
				lasting++
			}
		}
	})
	t.Logf("%d rows with faults, %d of them to the end; %d ranges left", faults, lasting, left)
}

// TestModelQuiet tests that without faults, and with nothing written while the vdiff runs, all is verified although the
// target lags; where equal positions are needed, that it does not.
func TestModelQuiet(t *testing.T) {
	seeds(*roundsFlag/10, func(seed uint64) {
		w := newModel(seed, false, false)
		for range 10 {
			w.write()
		}
		lagging := func() bool { return w.applied != [shards]int{len(w.sources[0].events), len(w.sources[1].events)} }
		for lagging() && (w.kind != AnyTime || w.IntN(20) > 0) {
			w.apply()
		}
		for w.step = 1; !w.m.Done(); w.step++ {
			if w.start(); len(w.reads) > 0 && w.advance(w.reads[0]) {
				w.reads = w.reads[1:]
			}
			w.apply()
		}
		for w.apply() {
		}
		require.Empty(t, w.verdict(), "rerun with -seed=%d", seed)
		require.Empty(t, w.m.Left("t"), "rerun with -seed=%d", seed)
		require.Empty(t, w.m.LeftBuckets("t"), "rerun with -seed=%d", seed)
	})
}

// TestModelSourceFirst tests that the model can tell right from wrong: with the sources read before the target it shows faults
// that are missed.
func TestModelSourceFirst(t *testing.T) {
	missed := 0
	seeds(*roundsFlag/2, func(seed uint64) {
		w := newModel(seed, true, true)
		w.run()
		if w.verdict() != "" {
			missed++
		}
	})
	t.Logf("missed in %d rounds", missed)
	if *seedFlag == 0 {
		require.NotZero(t, missed)
	}
}

// TestModelProof tests that the model can tell events that set rows from such that add or move them: a machine that is told less than what
// the events need misses faults.
func TestModelProof(t *testing.T) {
	f := func(kind, told Proof) {
		t.Helper()
		missed := 0
		seeds(*roundsFlag*2, func(seed uint64) {
			w := newModelOf(seed, true, false, 4, kind, told)
			w.run()
			if w.verdict() != "" {
				missed++
			}
		})
		t.Logf("missed in %d rounds", missed)
		switch {
		case kind == told:
			require.Zero(t, missed)
		case *seedFlag == 0:
			require.NotZero(t, missed)
		}
	}
	f(SamePosition, AnyTime)
	f(SamePosition, SamePosition)
	f(AtOnce, AnyTime)
	f(AtOnce, SamePosition)
	f(AtOnce, AtOnce)
}
