// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package fence

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"vitess.io/vitess/go/vt/vterrors"

	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/sidecar"

	vtrpcpb "vitess.io/vitess/go/vt/proto/vtrpc"
)

var vdiff1 = &sidecar.VDiff{ID: 1, UUID: "uuid-1", Workflow: "w"}

func quiet(string) {}

// Tests a whole fence: the streams stand still inside it, run to the asked positions and no further,
// and are afterwards as they were, one that a person had stopped included.
func TestDo(t *testing.T) {
	w := newWorld("Running", "Stopped")
	m := w.manager(t)
	err := m.Do(t.Context(), vdiff1, quiet, func(ctx context.Context, f *Fence) error {
		assert.Equal(t, "Stopped,Stopped", w.states())
		assert.Equal(t, 1, w.locks)
		assert.Len(t, w.fences, 1)
		require.NoError(t, f.RunTo(ctx, map[int32]string{1: position(12), 2: position(10)}, time.Second))
		assert.Equal(t, position(12), f.Streams()[0].Pos)
		return nil
	})
	require.NoError(t, err)
	assert.Equal(t, "Running,Stopped", w.states())
	assert.Empty(t, w.streams[0].StopPos)
	assert.Empty(t, w.streams[0].Message)
	assert.Empty(t, w.fences)
	assert.Zero(t, w.locks)
	for _, q := range w.execs {
		assert.False(t, strings.Contains(q, "stop_pos = 'MySQL56") && strings.Contains(q, "id = 2"), "stream 2 was at its position: %s", q)
	}
}

// Tests that the streams come back when the work in the fence fails, panics or is cancelled.
func TestDoRestores(t *testing.T) {
	f := func(name string, fn func(ctx context.Context, cancel context.CancelFunc) error) {
		t.Helper()
		w := newWorld("Running")
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		func() {
			defer func() { _ = recover() }()
			err := w.manager(t).Do(ctx, vdiff1, quiet, func(fctx context.Context, _ *Fence) error {
				return fn(fctx, cancel)
			})
			assert.Error(t, err, name)
		}()
		assert.Equal(t, "Running", w.states(), name)
		assert.Empty(t, w.fences, name)
		assert.Zero(t, w.locks, name)
	}
	f("error", func(context.Context, context.CancelFunc) error { return errors.New("no view") })
	f("panic", func(context.Context, context.CancelFunc) error { panic("oops") })
	f("cancel", func(ctx context.Context, cancel context.CancelFunc) error {
		cancel()
		<-ctx.Done() // the fence's context follows the caller's
		return ctx.Err()
	})
}

// Tests a restart of the streams that fails at first: it is tried again until it succeeds. One that
// never succeeds is an error, and its record stays for Repair.
func TestRestartFails(t *testing.T) {
	w := newWorld("Running")
	failures := 3
	w.failing = func(query string) error {
		if strings.Contains(query, "'Running'") && failures > 0 {
			failures--
			return errors.New("deadlock")
		}
		return nil
	}
	work := func(context.Context, *Fence) error { return nil }
	require.NoError(t, w.manager(t).Do(t.Context(), vdiff1, quiet, work))
	assert.Equal(t, "Running", w.states())

	w.failing = func(query string) error {
		if strings.Contains(query, "'Running'") {
			return vterrors.New(vtrpcpb.Code_UNAVAILABLE, "vreplication engine is closed")
		}
		return nil
	}
	m := w.manager(t)
	require.ErrorContains(t, m.Do(t.Context(), vdiff1, quiet, work), "still stopped")
	assert.Equal(t, "Stopped", w.states())
	require.Len(t, w.fences, 1)
	w.failing = nil
	require.NoError(t, m.Repair(t.Context()))
	assert.Equal(t, "Running", w.states())
	assert.Empty(t, w.fences)
}

// Tests the repair of what a dead process left, in every state that a stream of a fence can be in,
// and that nothing else is touched: a stream that a person has stopped since, or switched traffic of.
func TestRepair(t *testing.T) {
	f := func(name, before, state, message, stopPos, want string) {
		t.Helper()
		w := newWorld(state)
		w.streams[0].Message, w.streams[0].StopPos = message, stopPos
		w.fences = []*sidecar.Fence{{VDiffID: 7, UUID: "dead", Workflow: "w", Streams: []sidecar.StreamState{{ID: 1, State: before}}}}
		require.NoError(t, w.manager(t).Repair(t.Context()), name)
		assert.Equal(t, want, w.states(), name)
		assert.Empty(t, w.fences, name)
		if want == before {
			assert.Empty(t, w.streams[0].StopPos, name)
		}
	}
	f("stopped", "Running", "Stopped", "vdiff dead stopped this stream for a moment", "", "Running")
	f("on its way", "Running", "Running", "vdiff dead runs this stream to the position of its snapshot", position(20), "Running")
	f("arrived", "Running", "Stopped", "Stopped at position x", position(10), "Running")
	f("stopped by a person before", "Stopped", "Stopped", "Stopped at position x", position(10), "Stopped")
	f("not touched yet", "Running", "Running", "", "", "Running")
	f("stopped by a person since", "Running", "Stopped", "", "", "Stopped")
	f("switched since", "Running", "Stopped", "FROZEN", "", "Stopped")

	// Our own message without a record, which somebody deleted.
	w := newWorld("Stopped")
	w.streams[0].Message = "vdiff dead stopped this stream for a moment"
	require.NoError(t, w.manager(t).Repair(t.Context()))
	assert.Equal(t, "Running", w.states())

	// A stream that stopped for a reason of its own while a fence ran it is not run past that.
	for _, message := range []string{"Stopped at DDL alter table t", "something broke"} {
		w = newWorld("Stopped")
		if message == "something broke" {
			w.streams[0].State = "Error"
		}
		state := w.states()
		w.streams[0].Message, w.streams[0].StopPos = message, position(20)
		w.fences = []*sidecar.Fence{{VDiffID: 7, UUID: "dead", Workflow: "w", Streams: []sidecar.StreamState{{ID: 1, State: "Running"}}}}
		require.NoError(t, w.manager(t).Repair(t.Context()))
		assert.Equal(t, state, w.states())
		assert.Equal(t, message, w.streams[0].Message)
		assert.Empty(t, w.streams[0].StopPos)
	}

	// The stock engine leaves no record, only its message.
	w = newWorld("Stopped", "Running", "Stopped")
	w.streams[0].Message = "for vdiff"
	w.streams[1].Message, w.streams[1].StopPos, w.stuck = "synchronizing for vdiff", position(20), true
	require.NoError(t, w.manager(t).Repair(t.Context()))
	assert.Equal(t, "Running,Running,Stopped", w.states())
	assert.Empty(t, w.streams[1].StopPos)
}

// Tests that a fence which is going on is not repaired, and that a new one first repairs an old one
// of the same vdiff and of the same workflow.
func TestRepairAndLiveFences(t *testing.T) {
	w := newWorld("Running")
	m := w.manager(t)
	err := m.Do(t.Context(), vdiff1, quiet, func(ctx context.Context, _ *Fence) error {
		require.NoError(t, m.Repair(ctx))
		assert.Equal(t, "Stopped", w.states())
		return nil
	})
	require.NoError(t, err)

	w = newWorld("Stopped")
	w.streams[0].StopPos = position(10)
	w.fences = []*sidecar.Fence{{VDiffID: 1, UUID: "uuid-1", Workflow: "w", Streams: []sidecar.StreamState{{ID: 1, State: "Running"}}}}
	require.NoError(t, w.manager(t).Do(t.Context(), vdiff1, quiet, func(context.Context, *Fence) error { return nil }))
	assert.Equal(t, "Running", w.states())
	assert.Empty(t, w.fences)
}

// Tests that streams which a fence has left stopped are restored while the next fence of the workflow waits for the lock, which somebody
// else may have for long.
func TestRepairWhileLocked(t *testing.T) {
	w := newWorld(stateStopped)
	m := w.manager(t)
	w.streams[0].Message = fmt.Sprintf(messageStopped, "uuid-1")
	w.fences = []*sidecar.Fence{{VDiffID: 1, UUID: "uuid-1", Workflow: "w", Streams: []sidecar.StreamState{{ID: 1, State: stateRunning}}}}
	m.cfg.Lock = func(context.Context, string, string) (HeldLock, error) {
		return nil, errors.New("traffic is being switched")
	}
	ctx, cancel := context.WithCancel(t.Context())
	waits, ended := make(chan struct{}), make(chan error, 1)
	var once sync.Once
	go func() {
		ended <- m.Do(ctx, vdiff1, func(string) { once.Do(func() { close(waits) }) }, func(context.Context, *Fence) error { return nil })
	}()
	<-waits
	require.NoError(t, m.Repair(ctx))
	assert.Equal(t, "Running", w.states())
	assert.Empty(t, w.fences)
	cancel()
	require.ErrorIs(t, <-ended, context.Canceled)
}

// Tests the workflows that cannot be fenced, and whether another try can help.
func TestCheck(t *testing.T) {
	f := func(class sidecar.Class, change func(w *world)) {
		t.Helper()
		w := newWorld("Running")
		change(w)
		err := w.manager(t).Do(t.Context(), vdiff1, quiet, func(context.Context, *Fence) error {
			t.Error("the fence was entered")
			return nil
		})
		got, ok := sidecar.ClassOf(err)
		assert.True(t, ok)
		assert.Equal(t, class, got)
		assert.Empty(t, w.execs)
	}
	f(sidecar.Permanent, func(w *world) { w.streams = nil })
	f(sidecar.Permanent, func(w *world) { w.streams[0].State, w.streams[0].Message = "Stopped", "FROZEN" })
	f(sidecar.Transient, func(w *world) { w.streams[0].State = "Error" })
	f(sidecar.Transient, func(w *world) { w.streams[0].Copying = true })
	f(sidecar.Transient, func(w *world) { w.streams[0].Pos = "" })
}

// Tests that a stream which does not get to its position ends the fence: after the bound, with what
// VReplication says of the stream, or at once when it has stopped on its way.
func TestRunToFails(t *testing.T) {
	w := newWorld("Running", "Running")
	w.stuck = true
	w.failed = "unknown column x1"
	err := w.manager(t).Do(t.Context(), vdiff1, quiet, func(ctx context.Context, f *Fence) error {
		return f.RunTo(ctx, map[int32]string{1: position(20), 2: position(10)}, 100*time.Millisecond)
	})
	require.ErrorContains(t, err, "--filtered-replication-wait-time")
	require.ErrorContains(t, err, "(stream 1 is Running: unknown column x1)")
	assert.Equal(t, "Running,Running", w.states())

	w = newWorld("Running")
	w.stuck = true
	err = w.manager(t).Do(t.Context(), vdiff1, quiet, func(ctx context.Context, f *Fence) error {
		return f.RunTo(ctx, map[int32]string{1: position(20)}, 100*time.Millisecond)
	})
	require.ErrorContains(t, err, "(stream 1 is Running)")

	w = newWorld("Running")
	w.broken = "table is gone"
	err = w.manager(t).Do(t.Context(), vdiff1, quiet, func(ctx context.Context, f *Fence) error {
		return f.RunTo(ctx, map[int32]string{1: position(20)}, 10*time.Second)
	})
	require.ErrorContains(t, err, "table is gone")
	w.broken = ""
	require.NoError(t, w.manager(t).Repair(t.Context()))
}
