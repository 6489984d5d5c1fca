// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package scanservice

import (
	"context"
	"time"

	"vitess.io/vitess/go/vt/vttablet/tabletserver/throttle"
	"vitess.io/vitess/go/vt/vttablet/tabletserver/throttle/base"
)

// ThrottlerApp is the name under which the tablet throttler knows these reads: operators throttle or
// exempt it, or give it metrics of its own, as any other app.
const ThrottlerApp = "vdiff"

// throttleInterval is the time between two questions to a throttler that said no.
const throttleInterval = 250 * time.Millisecond

// Throttle says whether a read may go on, and why not.
type Throttle func(ctx context.Context) (reason string, ok bool)

// TabletThrottle asks the tablet's throttler; check is CheckThrottler of its tabletserver.Controller. A throttler
// that is disabled, or not open, lets everything pass.
func TabletThrottle(check func(ctx context.Context, appName string, flags *throttle.CheckFlags) *throttle.CheckResult) Throttle {
	return func(ctx context.Context) (string, bool) {
		result := check(ctx, ThrottlerApp, &throttle.CheckFlags{Scope: base.UndefinedScope})
		if result == nil {
			return "", true
		}
		if !result.IsOK() {
			return result.Summary(), false
		}
		// The result as a whole is that of the default metric; an app may be checked for others.
		for name, m := range result.Metrics {
			if !m.IsOK() {
				return ThrottlerApp + " is denied access due to " + m.Scope + "/" + name + ": " + m.Message, false
			}
		}
		return "", true
	}
}

// wait returns when the throttler lets a read pass. It calls tell with the reason each time that it does not.
func (t Throttle) wait(ctx context.Context, tell func(reason string)) error {
	if t == nil {
		return ctx.Err()
	}
	var since time.Time
	defer func() {
		if !since.IsZero() {
			metrics.throttled.Add(time.Since(since))
		}
	}()
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		reason, ok := t(ctx)
		if ok {
			return nil
		}
		if since.IsZero() {
			since = time.Now()
		}
		tell(reason)
		timer := time.NewTimer(throttleInterval)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
		}
	}
}
