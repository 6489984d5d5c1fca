// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"
	"fmt"

	"vitess.io/vitess/go/vt/log"
	"vitess.io/vitess/go/vt/vttablet/tabletmanager/vdiff"

	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/sidecar"
)

// controller is one run of one vdiff. It stays in the maps when it has ended, for its metrics, until
// another run takes its place or the vdiff is deleted.
type controller struct {
	engine *Engine
	period *period
	v      *sidecar.VDiff
	id     int64

	ctx    context.Context
	cancel context.CancelCauseFunc
	done   chan struct{} // closed when the run has ended

	metrics metrics
}

func newController(e *Engine, p *period, v *sidecar.VDiff) *controller {
	own := *v
	own.Options = v.Options.CloneVT()
	setDefaults(&own)
	ct := &controller{engine: e, period: p, v: &own, id: v.ID, done: make(chan struct{})}
	ct.ctx, ct.cancel = context.WithCancelCause(p.ctx)
	ct.metrics.init(v.State)
	return ct
}

// startLocked starts the controller's goroutine.
func (ct *controller) startLocked() {
	ct.period.wg.Go(ct.run)
}

// ended waits until the run has ended. It returns false when ctx is done before.
func (ct *controller) ended(ctx context.Context) bool {
	select {
	case <-ct.done:
		return true
	default:
	}
	select {
	case <-ct.done:
		return true
	case <-ctx.Done():
		return false
	}
}

func (ct *controller) hasEnded() bool {
	select {
	case <-ct.done:
		return true
	default:
		return false
	}
}

// live says whether the controller may still write a state: it is the current one of an engine that
// is open, and nobody has told it to stop.
func (ct *controller) live() bool {
	e := ct.engine
	e.mu.Lock()
	defer e.mu.Unlock()
	return ct.ctx.Err() == nil && e.session != nil && e.session.period == ct.period && e.controllers[ct.id] == ct
}

// run is the controller's goroutine.
func (ct *controller) run() {
	defer close(ct.done)
	defer ct.cancel(errClosed)
	defer func() {
		if x := recover(); x != nil {
			// Not the run, whose panics are contained, but writing its outcome: there is nothing left
			// to write with. The record keeps its state, and the vdiff runs again at the next open.
			ct.metrics.abandon()
			_ = panicError("recording the state of vdiff "+ct.v.UUID, x)
		}
	}()
	err := ct.check()
	if err == nil {
		if !ct.start() {
			return
		}
		err = ct.compare()
	}
	if ct.ctx.Err() != nil {
		// Closed, fenced, stopped or deleted: the state is that of whoever did it. Nothing is written,
		// whatever the run says.
		log.Info(fmt.Sprintf("vdiff %s: ended: %v", ct.v.UUID, context.Cause(ct.ctx)))
		return
	}
	if err == nil {
		err = ct.complete()
	}
	if err != nil {
		ct.fail(err)
	}
}

// check returns why the record cannot be run.
func (ct *controller) check() error {
	switch ct.v.State {
	case vdiff.PendingState, vdiff.StartedState:
	default:
		return sidecar.AsPermanent(fmt.Errorf("the stored state %.20q of the vdiff is not known: delete the vdiff and create it anew, or resume it", string(ct.v.State)))
	}
	if ct.v.OptionsErr != nil {
		return sidecar.AsPermanent(fmt.Errorf("the stored options of the vdiff cannot be read: delete the vdiff and create it anew: %w", ct.v.OptionsErr))
	}
	return nil
}

// start makes the vdiff started. It returns false when it is not to be run any more.
func (ct *controller) start() bool {
	log.Info(fmt.Sprintf("vdiff %s of workflow %s: starting (was %s)", ct.v.UUID, ct.v.Workflow, ct.v.State))
	started := false
	err := ct.write("start", func(ctx context.Context) (err error) {
		started, err = ct.engine.cfg.Store.StartVDiff(ctx, ct.id)
		return err
	})
	if err == nil {
		// The metrics begin with the rows that the records have, so that they are right after a restart.
		// Where a table does not go on from there, the run says so when it gets to it.
		err = ct.write("read the tables", func(ctx context.Context) error {
			tables, err := ct.engine.cfg.Store.Tables(ctx, ct.id)
			for _, t := range tables {
				ct.metrics.setRows(t.Name, t.RowsCompared)
			}
			return err
		})
	}
	switch {
	case err != nil:
		return false
	case !started:
		log.Info(fmt.Sprintf("vdiff %s: not to be run any more", ct.v.UUID))
		return false
	}
	ct.v.State = vdiff.StartedState
	ct.metrics.setState(vdiff.StartedState)
	ct.metrics.begin()
	return true
}

// compare runs the vdiff. A panic becomes an error that is not retried: it would come back.
func (ct *controller) compare() (err error) {
	defer func() {
		ct.metrics.setWaiting("")
		if x := recover(); x != nil {
			err = sidecar.AsPermanent(panicError("comparing", x))
		}
	}()
	return ct.engine.cfg.Runner.Run(ct.ctx, ct.v, ct)
}

// complete makes the vdiff completed. It returns an error when it is not complete at all.
func (ct *controller) complete() error {
	completed, incomplete := false, error(nil)
	err := ct.write("complete", func(ctx context.Context) (err error) {
		completed, err = ct.engine.cfg.Store.CompleteVDiff(ctx, ct.id)
		if errors.Is(err, sidecar.ErrIncomplete) {
			incomplete, err = err, nil
		}
		return err
	})
	switch {
	case incomplete != nil:
		return sidecar.AsPermanent(incomplete)
	case err == nil && completed:
		ct.metrics.setState(vdiff.CompletedState)
		log.Info(fmt.Sprintf("vdiff %s of workflow %s: completed", ct.v.UUID, ct.v.Workflow))
	}
	return nil
}

// fail records the error of the vdiff.
func (ct *controller) fail(cause error) {
	class := sidecar.Classify(cause)
	log.Error(fmt.Sprintf("vdiff %s of workflow %s: %s error: %v", ct.v.UUID, ct.v.Workflow, class, cause))
	globalStats.errors.Add(1)
	ct.metrics.addError(cause.Error())
	var failure *sidecar.Failure
	err := ct.write("record the error of", func(ctx context.Context) (err error) {
		failure, err = ct.engine.cfg.Store.FailVDiff(ctx, ct.id, cause.Error(), class, sidecar.TablesOf(cause), ct.engine.cfg.MaxRetries)
		return err
	})
	if err != nil || failure == nil {
		return
	}
	ct.metrics.setState(vdiff.ErrorState)
	if failure.Class == sidecar.Transient && failure.Attempt > ct.engine.cfg.MaxRetries {
		log.Error(fmt.Sprintf("vdiff %s of workflow %s: gave up after %d attempts without progress", ct.v.UUID, ct.v.Workflow, failure.Attempt))
	}
}

// write tries f until it succeeds. A database that is away is waited for, since there is nothing else
// that a controller could do. It returns an error when the controller may not write any more.
func (ct *controller) write(what string, f func(context.Context) error) error {
	pause := newBackoff(ct.engine.cfg.WriteBackoff, ct.engine.cfg.WriteBackoffMax)
	for {
		if !ct.live() {
			return errClosed
		}
		err := f(ct.ctx)
		if err == nil {
			ct.metrics.setWaiting("")
			return nil
		}
		if ct.ctx.Err() != nil {
			return err
		}
		log.Warn(fmt.Sprintf("vdiff %s: could not %s the vdiff, trying again: %v", ct.v.UUID, what, err))
		ct.metrics.setWaiting("the database")
		if !pause.wait(ct.ctx) {
			return ct.ctx.Err()
		}
	}
}
