// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"vitess.io/vitess/go/mysql/sqlerror"
	"vitess.io/vitess/go/vt/vttablet/tabletmanager/vdiff"

	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/differ"
	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/sidecar"
)

// TestSchedule tests at which look at the errored vdiffs each of them is retried: at once after the
// first failure, then after pauses that double up to the bound, and never when its error is permanent
// or came back too often.
func TestSchedule(t *testing.T) {
	cfg := Config{MaxRetries: 6, RetryInterval: 30 * time.Second, RetryBackoffMax: 4 * time.Minute}
	// retriedAt plays the looks of an hour at a vdiff whose failures are never counted further.
	retriedAt := func(class sidecar.Class, attempt int) (at []time.Duration) {
		v := &sidecar.Errored{VDiff: &sidecar.VDiff{ID: 1}, Failure: sidecar.Failure{Class: class, Attempt: attempt}}
		s := make(schedule)
		begin := time.Unix(1000000, 0)
		for elapsed := time.Duration(0); elapsed < 20*time.Minute && len(at) == 0; elapsed += cfg.RetryInterval {
			if len(s.take([]*sidecar.Errored{v}, begin.Add(elapsed), cfg)) > 0 {
				at = append(at, elapsed)
			}
		}
		return at
	}
	f := func(class sidecar.Class, attempt int, want ...time.Duration) {
		t.Helper()
		require.Equal(t, want, retriedAt(class, attempt))
	}
	f(sidecar.Transient, 0, 0) // left by the stock engine
	f(sidecar.Transient, 1, 0)
	f(sidecar.Transient, 2, 30*time.Second)
	f(sidecar.Transient, 3, time.Minute)
	f(sidecar.Transient, 4, 2*time.Minute)
	f(sidecar.Transient, 5, 4*time.Minute)
	f(sidecar.Transient, 6, 4*time.Minute)
	f(sidecar.Transient, 7)
	f(sidecar.Permanent, 1)
	f("", 1)

	cfg.MaxRetries = 0
	f(sidecar.Transient, 0)
	f(sidecar.Transient, 1)
}

// TestScheduleForgets tests that a vdiff that is not errored any more leaves nothing behind, so that
// its next failure is timed anew, and that one whose retry did not happen is tried again.
func TestScheduleForgets(t *testing.T) {
	cfg := Config{MaxRetries: 6, RetryInterval: 30 * time.Second, RetryBackoffMax: 4 * time.Minute}
	v := []*sidecar.Errored{{VDiff: &sidecar.VDiff{ID: 1}, Failure: sidecar.Failure{Class: sidecar.Transient, Attempt: 2}}}
	s := make(schedule)
	now := time.Unix(1000000, 0)
	require.Empty(t, s.take(v, now, cfg))
	require.Len(t, s.take(v, now.Add(30*time.Second), cfg), 1)
	require.Len(t, s.take(v, now.Add(60*time.Second), cfg), 1)
	require.Empty(t, s.take(nil, now, cfg))
	require.Empty(t, s)
	require.Empty(t, s.take(v, now.Add(90*time.Second), cfg))
}

// TestRetryUntilItWorks tests that a vdiff with transient errors is retried until it completes, that
// progress makes the count begin anew, so that there may be more failures than retries in a row, and
// that tables that are completed stay so.
func TestRetryUntilItWorks(t *testing.T) {
	const failures = 12 // with MaxRetries 3
	w := newWorld(t, nil)
	var runs atomic.Int64
	w.engine.cfg.Runner = runnerFunc(func(_ context.Context, v *sidecar.VDiff, _ differ.Observer) error {
		n := runs.Add(1)
		require.Equal(t, n > 1, w.store.get(v.ID).tables["done"] != nil)
		w.store.setTable(v.ID, "done", vdiff.CompletedState, 5)
		if n > failures {
			w.store.setTable(v.ID, "t1", vdiff.CompletedState, n)
			return nil
		}
		w.store.setTable(v.ID, "t1", vdiff.StartedState, n/2) // progress every other time
		return sqlerror.NewSQLError(sqlerror.CRServerLost, "", "lost")
	})
	id := w.store.put(retried())
	w.open()
	w.eventuallyState(id, vdiff.CompletedState)
	require.Equal(t, int64(failures+1), runs.Load())
	require.Equal(t, vdiff.CompletedState, w.store.get(id).tables["done"].State)
}

// TestRetryGivesUp tests that a vdiff that fails without progress is retried MaxRetries times, stays
// errored then, with a line in its log, and that a person can resume it, with as many retries again.
func TestRetryGivesUp(t *testing.T) {
	var runs atomic.Int64
	w := newWorld(t, func(context.Context, *sidecar.VDiff, differ.Observer) error {
		runs.Add(1)
		return errors.New("always")
	})
	passes := countCalls(w.store, "ErroredVDiffs")
	id := w.store.put(retried())
	w.open()
	settled := func(want int64) {
		t.Helper()
		w.eventually("it gave up", func() bool { return runs.Load() == want && w.store.state(id) == vdiff.ErrorState })
		seen := passes()
		w.eventually("several looks", func() bool { return passes() > seen+10 })
		require.Equal(t, want, runs.Load())
	}
	settled(4)
	require.Equal(t, 4, w.store.get(id).failure.Attempt)
	require.Contains(t, w.store.get(id).log, "gave up after 4 attempts")
	require.Equal(t, vdiff.ErrorState, w.store.state(id))

	require.NoError(t, w.act(vdiff.ResumeAction, w.store.get(id).UUID))
	settled(8)

	// A restart does not make it try again either.
	w.engine.Close()
	w.open()
	settled(8)
}

// TestNotRetried tests that permanent errors, and errors of vdiffs that are created without
// --auto-retry, are not retried.
func TestNotRetried(t *testing.T) {
	var permanentRuns, plainRuns atomic.Int64
	w := newWorld(t, nil)
	passes := countCalls(w.store, "ErroredVDiffs")
	permanent, plain := w.store.put(retried()), w.store.put(pending())
	w.engine.cfg.Runner = runnerFunc(func(_ context.Context, v *sidecar.VDiff, _ differ.Observer) error {
		if v.ID == permanent {
			permanentRuns.Add(1)
			return sidecar.AsPermanent(errors.New("no such table"))
		}
		plainRuns.Add(1)
		return errors.New("transient")
	})
	w.open()
	w.eventuallyState(permanent, vdiff.ErrorState)
	w.eventuallyState(plain, vdiff.ErrorState)
	seen := passes()
	w.eventually("several looks", func() bool { return passes() > seen+10 })
	require.Equal(t, int64(1), permanentRuns.Load())
	require.Equal(t, int64(1), plainRuns.Load())
}

// TestLeftByStock tests that an errored vdiff that the stock engine has left, without any class, is
// retried when Vitess calls its error ephemeral and left alone otherwise.
func TestLeftByStock(t *testing.T) {
	w := newWorld(t, nil)
	w.engine.cfg.Runner = w.completing()
	passes := countCalls(w.store, "ErroredVDiffs")
	ephemeral, other := retried(), retried()
	ephemeral.State, ephemeral.LastError = vdiff.ErrorState, "vttablet: rpc error: code = Canceled desc = context canceled"
	other.State, other.LastError = vdiff.ErrorState, "Unknown column 'c' (errno 1054) (sqlstate 42S22)"
	id, otherID := w.store.put(ephemeral), w.store.put(other)
	w.open()
	w.eventuallyState(id, vdiff.CompletedState)
	seen := passes()
	w.eventually("several looks", func() bool { return passes() > seen+10 })
	require.Equal(t, vdiff.ErrorState, w.store.state(otherID))
}

// TestForgottenVDiffs tests that a vdiff that is pending without anything running it, because the
// answer to its creation was lost, is run after a while; and that errors of the database while looking
// for it do not end the retry goroutine.
func TestForgottenVDiffs(t *testing.T) {
	var n atomic.Int64
	w := newWorld(t, nil)
	w.engine.cfg.Runner = w.completing()
	w.store.before = func(_ context.Context, method string) error {
		switch {
		case method == "ErroredVDiffs" && n.Add(1)%3 == 0:
			return errors.New("away")
		case method == "ErroredVDiffs" && n.Load()%3 == 1:
			panic("odd row")
		}
		return nil
	}
	w.open()
	id := w.store.put(pending())
	w.eventuallyState(id, vdiff.CompletedState)
}

// TestRepairAgain tests that stopped streams are repaired while the engine is open too, and that a
// repair that fails then keeps nothing from being retried.
func TestRepairAgain(t *testing.T) {
	var repairs, failing atomic.Int64
	w := newWorld(t, nil, func(c *Config) {
		c.Repair = func(context.Context) error {
			repairs.Add(1)
			if failing.Load() > 0 {
				return errors.New("not yet")
			}
			return nil
		}
	})
	w.engine.cfg.Runner = w.completing()
	w.open()
	failing.Store(1)
	seen := repairs.Load()
	w.eventually("several repairs", func() bool { return repairs.Load() > seen+3 })
	id := w.store.put(pending())
	w.eventuallyState(id, vdiff.CompletedState)
}

// TestRepairDoesNotWaitForRetries tests that stopped streams are repaired soon, however long a vdiff waits for its retry.
func TestRepairDoesNotWaitForRetries(t *testing.T) {
	var repairs atomic.Int64
	w := newWorld(t, nil, func(c *Config) {
		c.RetryInterval, c.RepairInterval = time.Hour, time.Millisecond
		c.Repair = func(context.Context) error {
			if repairs.Add(1) == 3 {
				panic("odd record")
			}
			return nil
		}
	})
	w.open()
	w.eventually("several repairs", func() bool { return repairs.Load() > 5 })

	for retry, want := range map[time.Duration]time.Duration{time.Hour: 30 * time.Second, time.Second: time.Second, 0: 30 * time.Second} {
		c := Config{RetryInterval: retry}
		c.setDefaults()
		require.Equal(t, want, c.RepairInterval)
	}
}
