// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package vdiffplugin

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"vitess.io/vitess/go/vt/dbconfigs"
	"vitess.io/vitess/go/vt/vterrors"

	tabletmanagerdatapb "vitess.io/vitess/go/vt/proto/tabletmanagerdata"
	vtrpcpb "vitess.io/vitess/go/vt/proto/vtrpc"
)

func driverWith(ctx context.Context, e diffEngine) *driver {
	d := newDriver(ctx, func(*dbconfigs.DBConfigs) (diffEngine, error) { return e, nil })
	d.build(&dbconfigs.DBConfigs{})
	return d
}

// TestOpenInterrupted checks that an engine that is still opening when the tablet stops being PRIMARY
// has its context cancelled, and is closed when it returns.
func TestOpenInterrupted(t *testing.T) {
	e := &fakeEngine{onOpen: func(ctx context.Context) { <-ctx.Done() }}
	d := driverWith(t.Context(), e)
	d.setPrimary(true)
	e.wait(t, "open")
	d.setPrimary(false)
	e.wait(t, "open", "close")
}

// TestReopened checks that an engine is closed between two terms of its tablet even when both changes
// come before it could be told of one, and that its second context is a new one.
func TestReopened(t *testing.T) {
	free := make(chan struct{})
	e := &fakeEngine{onOpen: func(context.Context) { <-free }}
	d := driverWith(t.Context(), e)
	d.setPrimary(true)
	e.wait(t, "open")
	first := e.openCtx()
	d.setPrimary(false)
	d.setPrimary(true)
	close(free)
	e.wait(t, "open", "close", "open")
	assert.Error(t, first.Err())
	assert.NoError(t, e.openCtx().Err())
}

// TestPrimaryBeforeBuild checks that a tablet that is PRIMARY before the engine exists has it opened
// when it does.
func TestPrimaryBeforeBuild(t *testing.T) {
	e := &fakeEngine{}
	d := newDriver(t.Context(), func(*dbconfigs.DBConfigs) (diffEngine, error) { return e, nil })
	d.setPrimary(true)
	d.build(&dbconfigs.DBConfigs{})
	d.build(&dbconfigs.DBConfigs{})
	e.wait(t, "open")
}

// TestNeverPrimary checks that an engine that was never opened is not closed either.
func TestNeverPrimary(t *testing.T) {
	e := &fakeEngine{}
	d := driverWith(t.Context(), e)
	d.setPrimary(false)
	require.NoError(t, d.shutdown(t.Context()))
	assert.Empty(t, e.got())
}

// TestShutdown checks that shutdown waits for Close, gives up when its context is done, may be called
// twice, and that nothing opens the engine afterwards.
func TestShutdown(t *testing.T) {
	free := make(chan struct{})
	e := &fakeEngine{onClose: func() { <-free }}
	d := driverWith(t.Context(), e)
	d.setPrimary(true)
	e.wait(t, "open")

	short, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, d.shutdown(short), context.DeadlineExceeded)
	close(free)
	require.NoError(t, d.shutdown(t.Context()))
	assert.Equal(t, []string{"open", "close"}, e.got())

	d.setPrimary(true)
	d.mu.Lock()
	assert.False(t, d.mustOpen || d.idle != nil, "the engine is opened again")
	d.mu.Unlock()
	require.NoError(t, d.shutdown(t.Context()))
	assert.Equal(t, []string{"open", "close"}, e.got())
	_, err := d.perform(t.Context(), nil)
	assert.EqualError(t, err, "vdiff engine is closed")
}

// TestPerform checks who may ask for a VDiff: only the primary's engine answers, and everyone else is
// told UNAVAILABLE with upstream's words, which vtctld and scripts know.
func TestPerform(t *testing.T) {
	e := &fakeEngine{}
	req := &tabletmanagerdatapb.VDiffRequest{VdiffUuid: "u"}
	closed := func(d *driver) {
		t.Helper()
		_, err := d.perform(t.Context(), req)
		assert.EqualError(t, err, "vdiff engine is closed")
		assert.Equal(t, vtrpcpb.Code_UNAVAILABLE, vterrors.Code(err))
	}
	d := newDriver(t.Context(), func(*dbconfigs.DBConfigs) (diffEngine, error) { return e, nil })
	closed(d)
	d.setPrimary(true)
	closed(d)
	d.build(&dbconfigs.DBConfigs{})
	resp, err := d.perform(t.Context(), req)
	require.NoError(t, err)
	assert.Equal(t, "answer to u", resp.VdiffUuid)
	d.setPrimary(false)
	closed(d)
}

// TestEnginePanics checks that a panic in Open or Close does not reach the tablet and does not keep
// the engine from being told what comes next.
func TestEnginePanics(t *testing.T) {
	e := &fakeEngine{onOpen: func(context.Context) { panic("open") }, onClose: func() { panic("close") }}
	d := driverWith(t.Context(), e)
	d.setPrimary(true)
	e.wait(t, "open")
	d.setPrimary(false)
	e.wait(t, "open", "close")
	d.setPrimary(true)
	e.wait(t, "open", "close", "open")
	require.NoError(t, d.shutdown(t.Context()))
}

// TestStorm changes the type from many goroutines at random: Open and Close never overlap, no Close
// follows a Close, the last word counts, and no goroutine is left.
func TestStorm(t *testing.T) {
	leaks := goleak.IgnoreCurrent()
	e := &fakeEngine{onOpen: func(ctx context.Context) {
		if rand.IntN(4) == 0 {
			select {
			case <-ctx.Done():
			case <-time.After(time.Millisecond):
			}
		}
	}}
	d := driverWith(t.Context(), e)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 500 {
				d.setPrimary(rand.IntN(2) == 0)
			}
		})
	}
	wg.Wait()
	d.setPrimary(true)
	require.Eventually(t, func() bool {
		d.mu.Lock()
		defer d.mu.Unlock()
		return d.idle == nil
	}, 10*time.Second, time.Millisecond)
	calls := e.got()
	require.NotEmpty(t, calls)
	assert.Equal(t, "open", calls[len(calls)-1])
	assert.NoError(t, e.openCtx().Err())

	require.NoError(t, d.shutdown(t.Context()))
	calls = e.got()
	assert.Equal(t, "close", calls[len(calls)-1])
	assert.Error(t, e.openCtx().Err())
	for i := 1; i < len(calls); i++ {
		assert.False(t, calls[i] == "close" && calls[i-1] == "close", "closed twice in a row")
	}
	assert.False(t, e.twice, "Open and Close overlapped")
	goleak.VerifyNone(t, leaks)
}
