// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"time"
)

// WaitFor calls done every so often until it says true, returns an error, or the context ends. It calls it
// at once at first. what names the thing waited for, in the error.
func WaitFor(ctx context.Context, what string, every time.Duration, done func(context.Context) (bool, error)) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	started := time.Now()
	for {
		ok, err := done(ctx)
		if err != nil {
			return fmt.Errorf("waiting for %s: %w", what, err)
		}
		if ok {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s: gave up after %v: %w", what, time.Since(started).Round(time.Millisecond), ctx.Err())
		case <-tick.C:
		}
	}
}
