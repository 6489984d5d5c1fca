// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package endtoend

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"vitess.io/vitess/go/vt/vttablet/tabletmanager/vdiff"

	"github.com/vttablet-ext/vttablet-ext/test/endtoend/cluster"
)

// TestThrottled stops a vdiff in the middle of the big table and resumes it while the throttler of the source denies it access. It says what it waits
// for, its progress stays where it was and its end moves away, it can be stopped and resumed, and when it is let it completes with every row
// counted once.
func TestThrottled(t *testing.T) {
	b := testBed(t)
	ctx := longContext(t)
	r := stopMidTable(t, ctx, b, bigRows/50) // below one percent clients tell no end
	stop := func() {
		t.Helper()
		_, err := r.w.VDiff(ctx, "stop", r.uuid)
		require.NoError(t, err)
		_, err = r.w.WaitVDiff(ctx, r.uuid, vdiff.StoppedState)
		require.NoError(t, err)
	}
	throttler := func(ctx context.Context, flags ...string) {
		t.Helper()
		_, err := b.c.Vtctl(ctx, slices.Concat([]string{"UpdateThrottlerConfig"}, flags, []string{sourceName})...)
		require.NoError(t, err)
	}
	throttler(ctx, "--enable", "--throttle-app", "vdiff", "--throttle-app-ratio", "1")
	defer throttler(context.WithoutCancel(ctx), "--disable", "--unthrottle-app", "vdiff")
	for _, tablet := range b.c.Shard(sourceName, "0") {
		require.NoError(t, cluster.WaitFor(ctx, "the throttler of "+tablet.Alias+" to deny access", 100*time.Millisecond, func(ctx context.Context) (bool, error) {
			out, err := b.c.Vtctl(ctx, "CheckThrottler", "--app-name", "vdiff", tablet.Alias)
			return err == nil && strings.Contains(out, "APP_DENIED"), nil
		}))
	}

	stopped, err := r.w.VDiffShow(ctx, r.uuid)
	require.NoError(t, err)
	require.Greater(t, stopped.RowsCompared, int64(0))
	for range 2 {
		_, err = r.w.VDiff(ctx, "resume", r.uuid)
		require.NoError(t, err)
		waitsForThrottler(t, ctx, b)
		var first *vdiff.ProgressReport
		require.NoError(t, cluster.WaitFor(ctx, "the end to move away", 200*time.Millisecond, func(ctx context.Context) (bool, error) {
			s, err := r.w.VDiffShow(ctx, r.uuid)
			if err != nil || s.State != vdiff.StartedState || s.Progress == nil {
				return false, err
			}
			assert.Equal(t, stopped.RowsCompared, s.RowsCompared)
			assert.Empty(t, s.Errors)
			if first == nil {
				first = s.Progress
			}
			assert.Equal(t, first.Percentage, s.Progress.Percentage)
			return s.Progress.ETA > first.ETA, nil
		}))
		stop()
	}
	_, err = r.w.VDiff(ctx, "resume", r.uuid)
	require.NoError(t, err)
	throttler(ctx, "--unthrottle-app", "vdiff")
	s, err := r.w.WaitVDiff(ctx, r.uuid, vdiff.CompletedState)
	require.NoError(t, err)
	b.matches(t, s, "b1")
	b.cleanUp(t, b.big)
}

// waitsForThrottler waits until the metrics of the target's primaries say that a vdiff waits for the throttler of a tablet of the source, and has
// been held up.
func waitsForThrottler(t *testing.T, ctx context.Context, b *bed) {
	t.Helper()
	for _, p := range b.big.Primaries() {
		require.NoError(t, cluster.WaitFor(ctx, p.Alias+" to wait for a throttler", 100*time.Millisecond, func(ctx context.Context) (bool, error) {
			vars, err := p.Metrics(ctx)
			if err != nil {
				return false, err
			}
			state, heldUp := fmt.Sprint(vars["VDiffPluginState"]), 0.0
			for _, nanoseconds := range metric(t, ctx, p, "VDiffPluginHeldUpTime") {
				heldUp += nanoseconds
			}
			return heldUp > 0 && strings.Contains(state, "waiting for tablet ") && strings.Contains(state, "vdiff is explicitly denied access"), nil
		}))
	}
}
