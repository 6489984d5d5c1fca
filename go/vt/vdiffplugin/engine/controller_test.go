// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"vitess.io/vitess/go/mysql/sqlerror"
	"vitess.io/vitess/go/vt/vttablet/tabletmanager/vdiff"

	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/differ"
	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/sidecar"
)

// TestRunOutcomes tests which state and class each outcome of a run is recorded with.
func TestRunOutcomes(t *testing.T) {
	f := func(what string, wantState vdiff.VDiffState, wantClass sidecar.Class, run func(w *world, v *sidecar.VDiff) error) {
		t.Run(what, func(t *testing.T) {
			w := newWorld(t, nil)
			w.engine.cfg.Runner = runnerFunc(func(_ context.Context, v *sidecar.VDiff, _ differ.Observer) error { return run(w, v) })
			id := w.store.put(pending())
			w.open()
			w.eventuallyState(id, wantState)
			if wantClass != "" {
				require.Equal(t, wantClass, w.store.get(id).failure.Class)
			}
		})
	}
	f("completed", vdiff.CompletedState, "", func(w *world, v *sidecar.VDiff) error {
		w.store.setTable(v.ID, "t1", vdiff.CompletedState, 1)
		return nil
	})
	f("incomplete", vdiff.ErrorState, sidecar.Permanent, func(w *world, v *sidecar.VDiff) error {
		w.store.setTable(v.ID, "t1", vdiff.StartedState, 1)
		return nil
	})
	f("marked permanent", vdiff.ErrorState, sidecar.Permanent, func(*world, *sidecar.VDiff) error { return sidecar.AsPermanent(errors.New("no such column")) })
	f("marked transient", vdiff.ErrorState, sidecar.Transient, func(*world, *sidecar.VDiff) error {
		return sidecar.AsTransient(sqlerror.NewSQLError(sqlerror.ERNoSuchTable, "", "not yet"))
	})
	f("unmarked", vdiff.ErrorState, sidecar.Transient, func(*world, *sidecar.VDiff) error { return errors.New("something") })
	f("unmarked of MySQL", vdiff.ErrorState, sidecar.Permanent, func(*world, *sidecar.VDiff) error {
		return sqlerror.NewSQLError(sqlerror.ERNoSuchTable, "", "no such table")
	})
	f("cancelled by nobody", vdiff.ErrorState, sidecar.Transient, func(*world, *sidecar.VDiff) error { return context.Canceled })
}

// TestPanicIsContained tests that a panic in a run errors its vdiff, permanently, with a text that is
// bounded and has no stack, is counted, is not retried, and leaves the other vdiffs alone.
func TestPanicIsContained(t *testing.T) {
	var runs atomic.Int32
	w := newWorld(t, nil)
	bad := w.store.put(retried())
	good := w.store.put(pending())
	complete := w.completing()
	w.engine.cfg.Runner = runnerFunc(func(ctx context.Context, v *sidecar.VDiff, obs differ.Observer) error {
		if v.ID == bad {
			runs.Add(1)
			panic("boom " + strings.Repeat("x", 5000))
		}
		return complete(ctx, v, obs)
	})
	passes := countCalls(w.store, "ErroredVDiffs")
	panics := globalStats.panics.Get()
	w.open()
	w.eventuallyState(bad, vdiff.ErrorState)
	w.eventuallyState(good, vdiff.CompletedState)
	v := w.store.get(bad)
	require.Equal(t, sidecar.Permanent, v.failure.Class)
	require.Contains(t, v.LastError, "panic while comparing: boom")
	require.Less(t, len(v.LastError), 400)
	require.NotContains(t, v.LastError, "goroutine")
	require.Equal(t, panics+1, globalStats.panics.Get())
	seen := passes()
	w.eventually("several looks at what to retry", func() bool { return passes() > seen+5 })
	require.Equal(t, int32(1), runs.Load())
}

// TestPanicInStore tests that a panic while a state is written ends the run and nothing else, and that
// the vdiff is not run again and again.
func TestPanicInStore(t *testing.T) {
	var starts atomic.Int32
	w := newWorld(t, untilCancelled)
	id := w.store.put(pending())
	w.store.before = func(_ context.Context, method string) error {
		if method == "StartVDiff" {
			starts.Add(1)
			panic("nil row")
		}
		return nil
	}
	passes := countCalls(w.store, "ErroredVDiffs")
	w.open()
	w.eventually("several looks at what to retry", func() bool { return passes() > 5 })
	require.Equal(t, int32(1), starts.Load())
	require.NoError(t, w.act(vdiff.StopAction, w.store.get(id).UUID))
	require.Equal(t, vdiff.StoppedState, w.store.state(id))
}

// countCalls counts the calls of a method of the store, from now on.
func countCalls(m *memStore, method string) func() int {
	var n atomic.Int64
	before := m.before
	m.before = func(ctx context.Context, called string) error {
		if called == method {
			n.Add(1)
		}
		if before != nil {
			return before(ctx, called)
		}
		return nil
	}
	return func() int { return int(n.Load()) }
}

// TestDatabaseAway tests that each write of a state waits for a database that is away, says so, and
// succeeds when it is back.
func TestDatabaseAway(t *testing.T) {
	for _, method := range []string{"StartVDiff", "Tables", "CompleteVDiff", "FailVDiff"} {
		t.Run(method, func(t *testing.T) {
			var away atomic.Bool
			away.Store(true)
			w := newWorld(t, nil)
			complete := w.completing()
			w.engine.cfg.Runner = runnerFunc(func(ctx context.Context, v *sidecar.VDiff, obs differ.Observer) error {
				if method == "FailVDiff" {
					return errors.New("failed")
				}
				return complete(ctx, v, obs)
			})
			w.store.before = func(_ context.Context, called string) error {
				if called == method && away.Load() {
					return sqlerror.NewSQLError(sqlerror.CRServerGone, "", "gone")
				}
				return nil
			}
			tries := countCalls(w.store, method)
			id := w.store.put(pending())
			w.open()
			w.eventually("several tries", func() bool { return tries() > 3 })
			w.eventually("the metrics say what it waits for", func() bool {
				live := w.engine.LiveVDiffs()
				return len(live) == 1 && live[0].Waiting == "the database"
			})
			away.Store(false)
			want := vdiff.CompletedState
			if method == "FailVDiff" {
				want = vdiff.ErrorState
			}
			w.eventuallyState(id, want)
		})
	}
}

// TestCloseWritesNothing tests that a run that is ended by Close leaves the state as it was, whatever it
// returns: that it has completed everything, an error, or a panic.
func TestCloseWritesNothing(t *testing.T) {
	f := func(what string, end func() error) {
		t.Run(what, func(t *testing.T) {
			w := newWorld(t, nil)
			w.engine.cfg.Runner = runnerFunc(func(ctx context.Context, v *sidecar.VDiff, obs differ.Observer) error {
				<-ctx.Done()
				w.store.setTable(v.ID, "t1", vdiff.CompletedState, 1)
				return end()
			})
			id := w.store.put(pending())
			completes, fails := countCalls(w.store, "CompleteVDiff"), countCalls(w.store, "FailVDiff")
			w.open()
			w.eventuallyState(id, vdiff.StartedState)
			w.engine.Close()
			require.Equal(t, vdiff.StartedState, w.store.state(id))
			require.Zero(t, completes()+fails())
		})
	}
	f("nil", func() error { return nil })
	f("error", func() error { return sidecar.AsPermanent(errors.New("closed connection")) })
	f("panic", func() error { panic("closed") })
}
