// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"vitess.io/vitess/go/vt/log"
	"vitess.io/vitess/go/vt/topo/topoproto"
	"vitess.io/vitess/go/vt/vterrors"
	"vitess.io/vitess/go/vt/vttablet/tabletmanager/vdiff"

	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/sidecar"

	tabletmanagerdatapb "vitess.io/vitess/go/vt/proto/tabletmanagerdata"
	vtrpcpb "vitess.io/vitess/go/vt/proto/vtrpc"
)

// action is one request that is being answered.
type action struct {
	*Engine
	period *period
	req    *tabletmanagerdatapb.VDiffRequest
}

// PerformVDiffAction answers a VDiff request of vtctld.
func (e *Engine) PerformVDiffAction(ctx context.Context, req *tabletmanagerdatapb.VDiffRequest) (resp *tabletmanagerdatapb.VDiffResponse, err error) {
	defer func() {
		if err != nil {
			globalStats.errors.Add(1)
			resp = nil
		}
	}()
	if req == nil {
		return nil, invalid("nil vdiff request")
	}
	p, err := e.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer p.wg.Done()
	callerCtx := ctx
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	detach := context.AfterFunc(p.ctx, func() { cancel(context.Cause(p.ctx)) })
	defer detach()

	a := &action{Engine: e, period: p, req: req}
	resp, err = a.perform(ctx)
	if err != nil && p.ctx.Err() != nil && callerCtx.Err() == nil {
		// What the interrupted action says of it would only puzzle.
		err = vterrors.Errorf(vtrpcpb.Code_UNAVAILABLE, "%v, during the vdiff action %s", context.Cause(p.ctx), req.Action)
	}
	return resp, err
}

func (a *action) perform(ctx context.Context) (resp *tabletmanagerdatapb.VDiffResponse, err error) {
	defer func() {
		if x := recover(); x != nil {
			err = vterrors.Wrap(panicError("performing the vdiff action "+a.req.Action, x), "internal error")
		}
	}()
	switch act := vdiff.VDiffAction(a.req.Action); act {
	case vdiff.CreateAction:
		return a.create(ctx)
	case vdiff.ShowAction:
		return a.show(ctx)
	case vdiff.StopAction:
		return a.stop(ctx)
	case vdiff.ResumeAction:
		return a.resume(ctx)
	case vdiff.DeleteAction:
		return a.delete(ctx)
	default:
		return nil, invalid("action %s not supported, use one of %v", act, vdiff.Actions)
	}
}

// enter returns the period, whose wg has the caller then. While the first attempt to open is still
// being made the caller waits a little: usually it takes no time.
func (e *Engine) enter(ctx context.Context) (*period, error) {
	limit := time.NewTimer(e.cfg.FirstOpenWait)
	defer limit.Stop()
	for {
		p, s, err := e.tryEnter()
		if err == nil || s == nil {
			return p, err
		}
		select {
		case <-s.attempted:
			p, _, err := e.tryEnter()
			return p, err
		case <-s.done: // closed, and perhaps another session has begun
		case <-limit.C:
			return nil, err
		case <-ctx.Done():
			return nil, err
		}
	}
}

// tryEnter returns the session too when the engine is about to open.
func (e *Engine) tryEnter() (*period, *session, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	s := e.session
	switch {
	case s == nil || s.ctx.Err() != nil:
		return nil, nil, vterrors.New(vtrpcpb.Code_UNAVAILABLE, errClosed.Error())
	case s.period != nil:
		s.period.wg.Add(1)
		return s.period, nil, nil
	case s.fenced:
		return nil, nil, vterrors.Errorf(vtrpcpb.Code_UNAVAILABLE, "%v: %v", errClosed, errFenced)
	default:
		return nil, s, vterrors.New(vtrpcpb.Code_UNAVAILABLE, "vdiff engine is still trying to open")
	}
}

// tablet is this tablet's alias, for messages.
func (a *action) tablet() string {
	return topoproto.TabletAliasString(a.cfg.Tablet().Alias)
}

// uuidOf returns a UUID in the form in which it is stored.
func uuidOf(what, text string) (string, error) {
	if text == "" {
		return "", invalid("%s is missing: give the UUID of the vdiff", what)
	}
	parsed, err := uuid.Parse(text)
	if err != nil {
		return "", invalid("%s %q is not a UUID: %v", what, text, err)
	}
	return parsed.String(), nil
}

// needWorkflow checks that a request says which workflow it is about.
func (a *action) needWorkflow() error {
	switch {
	case a.req.Keyspace == "":
		return invalid("the %s action needs the keyspace of the workflow", a.req.Action)
	case a.req.Workflow == "":
		return invalid("the %s action needs the name of the workflow", a.req.Action)
	}
	return nil
}

// halt records that a vdiff is stopped, and only then tells its run: however long that takes to end,
// it stays stopped. It returns the run, nil if there is none.
func (a *action) halt(ctx context.Context, v *sidecar.VDiff, cause error) (*controller, error) {
	stopped, err := a.cfg.Store.StopVDiff(ctx, v.ID)
	if err != nil {
		return nil, err
	}
	ct := a.controller(v.ID)
	if ct == nil {
		return nil, nil
	}
	ct.cancel(cause)
	if stopped {
		ct.metrics.setState(vdiff.StoppedState)
	}
	return ct, nil
}

// waitForEnd waits for a run, but not for ever. ct may be nil.
func (a *action) waitForEnd(ctx context.Context, ct *controller) bool {
	if ct == nil {
		return true
	}
	if ct.ended(ctx) {
		return true
	}
	log.Warn(fmt.Sprintf("vdiff %s: told to end, but it has not yet", ct.v.UUID))
	return false
}
