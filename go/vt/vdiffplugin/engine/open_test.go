// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"vitess.io/vitess/go/vt/vterrors"
	"vitess.io/vitess/go/vt/vttablet/tabletmanager/vdiff"

	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/differ"
	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/sidecar"

	vtrpcpb "vitess.io/vitess/go/vt/proto/vtrpc"
)

// TestOpenOrder tests the order of the open path, as the race that crashed the stock engine on restart
// would break it: many vdiffs to resume, some of which fail once and are retried, and a database that
// is slow, fails, then succeeds, several times over, while metrics are read all the time. What must
// hold at every moment: the engine and the metrics have the same controllers; nothing that runs
// concurrently (a run, a write of a state, a look at the errored vdiffs) exists before an attempt to
// open has read everything; what an attempt that failed has made is gone; the repair comes first.
func TestOpenOrder(t *testing.T) {
	const vdiffs, restarts, failures = 60, 4, 3
	w := newWorld(t, nil, func(c *Config) { c.RetryInterval = 100 * time.Microsecond })
	var (
		mu         sync.Mutex
		violations []string
		repaired   bool // since the last attempt began
		complete   bool // an attempt has read everything
		attempts   int
		failedOnce = make(map[int64]bool)
	)
	violated := func(format string, args ...any) { // with mu
		if len(violations) < 10 {
			violations = append(violations, fmt.Sprintf(format, args...))
		}
	}
	slowly := func(ctx context.Context, d time.Duration) {
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-ctx.Done():
		case <-timer.C:
		}
	}
	w.engine.cfg.Repair = func(ctx context.Context) error {
		mu.Lock()
		defer mu.Unlock()
		repaired = true
		return nil
	}
	w.store.before = func(ctx context.Context, method string) error {
		mu.Lock()
		isComplete := complete
		if !isComplete && method != "VDiffsToRun" {
			violated("%s was called before the open was complete", method)
		}
		mu.Unlock()
		if method != "VDiffsToRun" || isComplete {
			slowly(ctx, rand.N(200*time.Microsecond))
			return nil
		}
		// The read of step 3: slow, and failing the first times.
		slowly(ctx, 10*time.Millisecond)
		mu.Lock()
		defer mu.Unlock()
		attempts++
		if !repaired {
			violated("the vdiffs were read before the repair")
		}
		if engine, metrics := w.ids(); len(engine)+len(metrics) > 0 {
			violated("attempt %d: %d controllers and %d in the metrics while opening", attempts, len(engine), len(metrics))
		}
		repaired = false
		if attempts <= failures {
			return errors.New("the database is away")
		}
		complete = true
		return nil
	}
	release := make(chan struct{})
	w.engine.cfg.Runner = runnerFunc(func(ctx context.Context, v *sidecar.VDiff, obs differ.Observer) error {
		mu.Lock()
		if !complete {
			violated("vdiff %d ran before the open was complete", v.ID)
		}
		fail := v.ID%3 == 0 && !failedOnce[v.ID]
		failedOnce[v.ID] = failedOnce[v.ID] || fail
		mu.Unlock()
		obs.RowsCompared("t1", 1)
		obs.Waiting("its turn")
		if fail {
			return errors.New("lost connection")
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-release:
		}
		w.store.setTable(v.ID, "t1", vdiff.CompletedState, 1)
		return nil
	})
	var ids []int64
	for range vdiffs {
		ids = append(ids, w.store.put(retried()))
	}

	// Readers of metrics, who look for controllers that one map has and the other has not.
	stop := make(chan struct{})
	var readers sync.WaitGroup
	for range 2 {
		readers.Go(func() {
			ticker := time.NewTicker(100 * time.Microsecond)
			defer ticker.Stop()
			for {
				select {
				case <-stop:
					return
				case <-ticker.C:
				}
				engine, metrics := w.ids()
				if !maps.Equal(engine, metrics) {
					mu.Lock()
					violated("the engine has controllers %v, the metrics %v", slices.Sorted(maps.Keys(engine)), slices.Sorted(maps.Keys(metrics)))
					mu.Unlock()
				}
				globalStats.count()
				globalStats.rowsByTable()
				globalStats.phaseTimings()
				globalStats.states()
				w.engine.LiveVDiffs()
			}
		})
	}
	for restart := range restarts {
		mu.Lock()
		complete, repaired, attempts = false, false, 0
		mu.Unlock()
		w.engine.Open(context.Background())
		w.eventually("all vdiffs run", func() bool {
			running := 0
			for _, id := range ids {
				if w.store.state(id) == vdiff.StartedState {
					running++
				}
			}
			engine, _ := w.ids()
			return running == vdiffs && len(engine) == vdiffs
		})
		if restart == restarts-1 {
			close(release)
			for _, id := range ids {
				w.eventuallyState(id, vdiff.CompletedState)
			}
		}
		w.engine.Close()
		w.requireNoControllers()
	}
	close(stop)
	readers.Wait()
	mu.Lock()
	defer mu.Unlock()
	require.Empty(t, violations)
	require.Greater(t, attempts, failures)
}

// TestOpenFails tests that an open that cannot succeed, because of the repair or of the read or of a
// panic in them, is tried again and again, answers actions with a clear error, has nothing running,
// and is ended by Close; and that it succeeds when the cause is gone.
func TestOpenFails(t *testing.T) {
	f := func(what string, break_ func(w *world, broken *atomic.Bool)) {
		t.Run(what, func(t *testing.T) {
			w := newWorld(t, nil, func(c *Config) { c.FirstOpenWait = 10 * time.Millisecond })
			w.engine.cfg.Runner = w.completing()
			var broken atomic.Bool
			broken.Store(true)
			break_(w, &broken)
			id := w.store.put(pending())
			retries := globalStats.openRetries.Get()
			w.engine.Open(context.Background())
			w.eventually("several attempts", func() bool { return globalStats.openRetries.Get() > retries+3 })
			require.False(t, w.engine.IsOpen())
			w.requireNoControllers()
			err := w.act(vdiff.StopAction, "00000000-0000-4000-8000-000000000001")
			require.ErrorContains(t, err, "vdiff engine is still trying to open")
			require.Equal(t, vtrpcpb.Code_UNAVAILABLE, vterrors.Code(err))

			w.engine.Close()
			require.ErrorContains(t, w.act(vdiff.StopAction, "00000000-0000-4000-8000-000000000001"), "vdiff engine is closed")
			require.Equal(t, vdiff.PendingState, w.store.state(id))

			w.engine.Open(context.Background())
			broken.Store(false)
			w.eventuallyState(id, vdiff.CompletedState)
		})
	}
	f("repair", func(w *world, broken *atomic.Bool) {
		w.engine.cfg.Repair = func(context.Context) error {
			if broken.Load() {
				return errors.New("cannot restart a stream")
			}
			return nil
		}
	})
	f("read", func(w *world, broken *atomic.Bool) {
		w.store.before = func(_ context.Context, method string) error {
			if method == "VDiffsToRun" && broken.Load() {
				return errors.New("no connection")
			}
			return nil
		}
	})
	f("panic", func(w *world, broken *atomic.Bool) {
		w.engine.cfg.Repair = func(context.Context) error {
			if broken.Load() {
				panic("nil map")
			}
			return nil
		}
	})
}

// TestCloseWhileOpening tests that Close interrupts an attempt that hangs in the database, at once.
func TestCloseWhileOpening(t *testing.T) {
	w := newWorld(t, nil)
	entered := make(chan struct{}, 10)
	w.store.before = func(ctx context.Context, method string) error {
		entered <- struct{}{}
		<-ctx.Done()
		return ctx.Err()
	}
	for range 3 {
		w.engine.Open(context.Background())
		<-entered
		w.engine.Close()
		require.False(t, w.engine.IsOpen())
	}
}

// TestOpenContextEnds tests that an engine whose context ends, without a Close, stops its runs, answers
// as a closed one, and opens again when it is told to.
func TestOpenContextEnds(t *testing.T) {
	w := newWorld(t, untilCancelled)
	id := w.store.put(pending())
	ctx, cancel := context.WithCancel(context.Background())
	w.engine.Open(ctx)
	w.eventuallyState(id, vdiff.StartedState)
	cancel()
	w.eventually("the period has ended", func() bool { return !w.engine.IsOpen() })
	require.ErrorContains(t, w.act(vdiff.ShowAction, vdiff.AllActionArg), "closed")
	w.open()
	require.NoError(t, w.act(vdiff.ShowAction, vdiff.AllActionArg))
}

// TestOpenWaitsForRuns tests that after a Close that did not wait for a run that ignores its context,
// the next open does not begin before that run has ended: two runs of one vdiff must not overlap.
func TestOpenWaitsForRuns(t *testing.T) {
	release := make(chan struct{})
	var running, most atomic.Int32
	w := newWorld(t, func(ctx context.Context, v *sidecar.VDiff, obs differ.Observer) error {
		most.Store(max(most.Load(), running.Add(1)))
		defer running.Add(-1)
		<-release
		<-ctx.Done()
		return ctx.Err()
	}, func(c *Config) { c.CloseWait = time.Millisecond; c.FirstOpenWait = time.Millisecond })
	id := w.store.put(pending())
	w.open()
	w.eventually("it runs", func() bool { return running.Load() == 1 })
	w.engine.Close()
	w.engine.Open(context.Background())
	require.ErrorContains(t, w.act(vdiff.ShowAction, vdiff.AllActionArg), "still trying to open")
	require.False(t, w.engine.IsOpen())
	close(release)
	w.eventually("open", w.engine.IsOpen)
	w.eventually("it runs again", func() bool { return running.Load() == 1 })
	require.Equal(t, vdiff.StartedState, w.store.state(id))
	require.Equal(t, int32(1), most.Load())
	w.engine.Close()
	w.eventually("the session has ended", func() bool {
		select {
		case <-w.engine.ended:
			return true
		default:
			return false
		}
	})
}

// TestOpenCloseStorm tests that Open and Close may be called by many at any time, with actions between
// them, and that afterwards the engine still opens and completes what is left.
func TestOpenCloseStorm(t *testing.T) {
	w := newWorld(t, nil, func(c *Config) { c.FirstOpenWait = time.Millisecond })
	w.engine.cfg.Runner = w.completing()
	var ids []int64
	for range 20 {
		ids = append(ids, w.store.put(retried()))
	}
	var storm sync.WaitGroup
	for i := range 8 {
		storm.Go(func() {
			for range 40 {
				switch (i + rand.IntN(3)) % 4 {
				case 0, 1:
					w.engine.Open(context.Background())
				case 2:
					w.engine.Close()
				case 3:
					_ = w.act(vdiff.ShowAction, vdiff.AllActionArg)
					_ = w.act(vdiff.StopAction, w.store.get(ids[0]).UUID)
				}
			}
		})
	}
	storm.Wait()
	w.open()
	for _, id := range ids[1:] {
		w.eventuallyState(id, vdiff.CompletedState)
	}
}

// TestGarbageRecords tests that vdiffs whose records cannot be run become errored, permanently and with
// a text that says what to do, while the others run.
func TestGarbageRecords(t *testing.T) {
	w := newWorld(t, nil)
	w.engine.cfg.Runner = w.completing()
	good := w.store.put(pending())
	options := retried()
	options.OptionsErr = errors.New("stored options: json: cannot unmarshal string")
	badOptions := w.store.put(options)
	badState := w.store.put(sidecar.VDiff{State: "nonsense"})
	noState := w.store.put(sidecar.VDiff{State: vdiff.UnknownState})
	good2 := w.store.put(pending())
	w.open()
	for _, id := range []int64{good, good2} {
		w.eventuallyState(id, vdiff.CompletedState)
	}
	for id, text := range map[int64]string{badOptions: "options", badState: "nonsense", noState: "state"} {
		w.eventuallyState(id, vdiff.ErrorState)
		v := w.store.get(id)
		require.Equal(t, sidecar.Permanent, v.failure.Class)
		require.Contains(t, v.LastError, text)
		require.Contains(t, v.LastError, "delete the vdiff and create it anew")
	}
}
