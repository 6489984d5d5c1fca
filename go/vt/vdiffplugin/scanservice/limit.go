// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package scanservice

import (
	"context"
	"time"

	"vitess.io/vitess/go/vt/vterrors"

	vtrpcpb "vitess.io/vitess/go/vt/proto/vtrpc"
)

// limiter lets a number of calls in at a time and a number of others wait.
type limiter struct {
	slots      chan struct{}
	waiting    chan struct{}
	progressIn time.Duration
}

func newLimiter(running, waiting int, progressIn time.Duration) *limiter {
	return &limiter{slots: make(chan struct{}, running), waiting: make(chan struct{}, waiting), progressIn: progressIn}
}

// acquire returns when there is room for a call, which has to be released. While it waits it calls
// tell, at once and then regularly. It returns an error when too many wait already, or when ctx is done.
func (l *limiter) acquire(ctx context.Context, tell func()) error {
	select {
	case l.slots <- struct{}{}:
		return nil
	default:
	}
	select {
	case l.waiting <- struct{}{}:
	default:
		return vterrors.Errorf(vtrpcpb.Code_RESOURCE_EXHAUSTED, "the tablet serves %d vdiff reads and %d wait", cap(l.slots), cap(l.waiting))
	}
	metrics.waiting.Add(1)
	defer func() {
		metrics.waiting.Add(-1)
		<-l.waiting
	}()
	ticker := time.NewTicker(l.progressIn)
	defer ticker.Stop()
	for {
		tell()
		select {
		case l.slots <- struct{}{}:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
		}
	}
}

func (l *limiter) release() { <-l.slots }
