// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package fence

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"vitess.io/vitess/go/vt/topo/memorytopo"
)

// Tests that the lock excludes those who take it by LockName, as switching traffic does, in both
// directions, and that it leaves nothing behind in the topo.
func TestTopoLock(t *testing.T) {
	ts := memorytopo.NewServer(t.Context(), "zone1")
	defer ts.Close()
	lock := TopoLock(ts)
	held, err := lock(t.Context(), "ks/w", "vdiff")
	require.NoError(t, err)
	require.NoError(t, held.Check(t.Context()))
	short := func() context.Context {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		t.Cleanup(cancel)
		return ctx
	}
	_, _, err = ts.LockName(short(), "ks/w", "switch")
	require.Error(t, err)
	_, err = lock(short(), "ks/w", "vdiff")
	require.Error(t, err)
	other, err := lock(short(), "ks/other", "vdiff")
	require.NoError(t, err)
	require.NoError(t, other.Unlock(t.Context()))
	require.NoError(t, held.Unlock(t.Context()))

	_, unlock, err := ts.LockName(t.Context(), "ks/w", "switch")
	require.NoError(t, err)
	_, err = lock(short(), "ks/w", "vdiff")
	require.Error(t, err)
	err = nil
	unlock(&err)
	require.NoError(t, err)
	held, err = lock(t.Context(), "ks/w", "vdiff")
	require.NoError(t, err)
	require.NoError(t, held.Unlock(t.Context()))
	conn, err := ts.ConnForCell(t.Context(), "global")
	require.NoError(t, err)
	_, err = conn.ListDir(t.Context(), "internal/named_locks/ks/w", false)
	assert.Error(t, err, "the directory is gone")
}

// Tests that the bound on the wait for the lock is not one on the lock: the context with which it was
// taken, by which the topo server renews it, lives until it is unlocked, also when the vdiff is
// cancelled meanwhile. A lock that is lost is noticed.
func TestLockOutlivesItsWait(t *testing.T) {
	w := newWorld("Running")
	m := w.manager(t)
	m.cfg.LockWait = 20 * time.Millisecond
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	err := m.Do(ctx, vdiff1, quiet, func(fctx context.Context, f *Fence) error {
		require.NoError(t, letPass(fctx, 3*m.cfg.LockWait))
		require.NoError(t, w.lockCtx.Err(), "the lock is renewed after the wait for it was over")
		require.NoError(t, f.RunTo(fctx, map[int32]string{1: position(10)}, time.Second))
		w.lost = errors.New("lease not found")
		require.ErrorContains(t, f.RunTo(fctx, map[int32]string{1: position(10)}, time.Second), "lease not found")
		cancel()
		<-fctx.Done()
		require.NoError(t, w.lockCtx.Err(), "the lock is renewed while the streams are put back")
		return fctx.Err()
	})
	require.ErrorIs(t, err, context.Canceled)
	require.Error(t, w.lockCtx.Err(), "and not for ever")
	assert.Equal(t, "Running", w.states())
}

// letPass lets time pass: the test is about what a bound in time does not do.
func letPass(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
