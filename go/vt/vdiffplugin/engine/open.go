// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"time"

	"vitess.io/vitess/go/vt/log"

	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/sidecar"
)

// supervise is the goroutine of a session.
func (s *session) supervise() {
	defer close(s.done)
	s.waitForPredecessor()
	for {
		p := s.open()
		if p == nil {
			break
		}
		reopen := s.follow(p)
		s.engine.end(s, p)
		if !reopen {
			break
		}
	}
	s.cancel(errClosed)
}

// waitForPredecessor waits without a context: while a run of the session before is left, this one
// must neither begin nor count as ended.
func (s *session) waitForPredecessor() {
	if s.before == nil {
		return
	}
	ticker := time.NewTicker(10 * time.Second)
	defer ticker.Stop()
	for {
		select {
		case <-s.before:
			return
		case <-ticker.C:
			log.Warn("vdiff engine: waiting for a vdiff of the time before that does not end")
		}
	}
}

// end ends p if it has not ended, and returns when nothing of it runs any more.
func (e *Engine) end(s *session, p *period) {
	e.mu.Lock()
	if s.period == p {
		e.endPeriodLocked(s, errClosed)
	}
	e.mu.Unlock()
	p.cancel(errClosed)
	p.wg.Wait()
}

// open makes attempts until one succeeds. It returns nil when the session has ended before.
func (s *session) open() *period {
	pause := newBackoff(s.engine.cfg.OpenBackoff, s.engine.cfg.OpenBackoffMax)
	for try := 1; ; try++ {
		p, err := s.attempt()
		if try == 1 {
			s.firstAttemptEnded()
		}
		if err == nil {
			return p
		}
		if s.ctx.Err() != nil {
			return nil
		}
		globalStats.openRetries.Add(1)
		log.Error(fmt.Sprintf("vdiff engine: attempt %d to open failed, trying again: %v", try, err))
		if !pause.wait(s.ctx) {
			return nil
		}
	}
}

// attempt is one attempt to open. The order of its steps is what keeps restarts safe: see the
// comment of the package. When it fails, nothing of it is left.
func (s *session) attempt() (p *period, err error) {
	e := s.engine
	defer func() {
		if err != nil {
			e.mu.Lock()
			if e.session == s {
				e.endPeriodLocked(s, errReset)
			}
			e.mu.Unlock()
		}
	}()
	defer contain("opening", &err)

	// 1. No controllers and no metrics of the time before.
	e.mu.Lock()
	if e.session != s {
		e.mu.Unlock()
		return nil, errClosed
	}
	old := e.resetLocked(errReset)
	e.mu.Unlock()
	if len(old) > 0 {
		log.Warn(fmt.Sprintf("vdiff engine: %d controllers existed when opening: stopping them", len(old)))
	}
	for _, ct := range old {
		if !ct.ended(s.ctx) {
			return nil, s.ctx.Err()
		}
	}
	// 2. What a crash has left.
	if err := e.cfg.Repair(s.ctx); err != nil {
		return nil, fmt.Errorf("repair: %w", err)
	}
	// 3. The vdiffs to run.
	vdiffs, err := e.cfg.Store.VDiffsToRun(s.ctx)
	if err != nil {
		return nil, err
	}
	// 4. All of this has succeeded.
	return s.begin(vdiffs)
}

// begin makes the controllers, declares the engine open, and starts everything that runs
// concurrently: the retry goroutine last.
func (s *session) begin(vdiffs []*sidecar.VDiff) (*period, error) {
	e := s.engine
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.session != s || s.ctx.Err() != nil {
		return nil, errClosed
	}
	p := &period{}
	p.ctx, p.cancel = context.WithCancelCause(s.ctx)
	for _, v := range vdiffs {
		e.registerLocked(newController(e, p, v))
	}
	s.period, s.fenced = p, false
	for _, ct := range e.controllers {
		ct.startLocked()
	}
	p.wg.Go(func() { e.retryErrored(p) })
	log.Info(fmt.Sprintf("vdiff engine: open, %d vdiffs to run", len(vdiffs)))
	return p, nil
}

func (s *session) firstAttemptEnded() {
	select {
	case <-s.attempted:
	default:
		close(s.attempted)
	}
}

// launch starts a controller for a vdiff that has none that runs. The caller holds the vdiff's slot.
// It does nothing when p has ended: the vdiff is then run by whoever opens next.
func (e *Engine) launch(p *period, v *sidecar.VDiff) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.session == nil || e.session.period != p {
		return
	}
	if before := e.controllers[v.ID]; before != nil && !before.hasEnded() {
		return
	}
	ct := newController(e, p, v)
	e.registerLocked(ct)
	ct.startLocked()
}

// contain turns a panic of its caller into an error. It is deferred.
func contain(what string, err *error) {
	if x := recover(); x != nil {
		*err = panicError(what, x)
	}
}

// panicError counts and logs a panic. The stack is in the log only.
func panicError(what string, x any) error {
	globalStats.panics.Add(1)
	log.Error(fmt.Sprintf("vdiff engine: panic while %s: %v\n%s", what, x, debug.Stack()))
	text := fmt.Sprint(x)
	if len(text) > 200 {
		text = text[:200]
	}
	return fmt.Errorf("panic while %s: %s", what, text)
}

// backoff is a pause that grows by half each time, with jitter so that tablets do not move in step.
type backoff struct {
	first, next, most time.Duration
}

func newBackoff(first, most time.Duration) *backoff {
	return &backoff{first: first, next: first, most: most}
}

// pause returns how long to wait now.
func (b *backoff) pause() time.Duration {
	d := b.next*3/4 + rand.N(b.next/2+1)
	b.next = min(b.next*3/2+1, b.most)
	return d
}

func (b *backoff) reset() { b.next = b.first }

// wait waits. It returns false when ctx is done.
func (b *backoff) wait(ctx context.Context) bool {
	timer := time.NewTimer(b.pause())
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
