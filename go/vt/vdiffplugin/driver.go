// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package vdiffplugin

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"

	"vitess.io/vitess/go/vt/dbconfigs"
	"vitess.io/vitess/go/vt/log"
	"vitess.io/vitess/go/vt/vterrors"

	tabletmanagerdatapb "vitess.io/vitess/go/vt/proto/tabletmanagerdata"
	vtrpcpb "vitess.io/vitess/go/vt/proto/vtrpc"
)

// diffEngine is what the face needs of an engine.
type diffEngine interface {
	// Open is called when the tablet is PRIMARY, again and again: it changes nothing then. ctx is
	// done as soon as the tablet is not PRIMARY any more, before Close is called.
	Open(ctx context.Context)
	// Close is called when the tablet is not PRIMARY any more or when the process ends. It returns
	// when the engine has come to rest.
	Close()
	// PerformVDiffAction answers a VDiff request.
	PerformVDiffAction(ctx context.Context, req *tabletmanagerdatapb.VDiffRequest) (*tabletmanagerdatapb.VDiffResponse, error)
}

// driver opens and closes an engine as the tablet's type says. It keeps what has to be done, and a
// goroutine that does it: Open and Close are never called at the same time, never under mu, and the
// one who brings the news does not wait. The goroutine ends when nothing is left to be done.
type driver struct {
	base   context.Context
	create func(*dbconfigs.DBConfigs) (diffEngine, error)

	mu       sync.Mutex
	engine   diffEngine // nil before build, and when it failed
	buildErr error
	primary  bool // the tablet is PRIMARY
	ended    bool // the process ends: not opened again

	mustClose bool // Close has to be called, before any Open
	mustOpen  bool // Open has to be called
	openCtx   context.Context
	cancel    context.CancelFunc // of openCtx. nil: Open was not called since the last Close

	idle chan struct{} // closed when the goroutine ends. nil: there is none
}

func newDriver(base context.Context, create func(*dbconfigs.DBConfigs) (diffEngine, error)) *driver {
	return &driver{base: base, create: create}
}

// build makes the engine. A tablet must serve even if its VDiff cannot, so an error is not returned
// to the caller but to those who ask for a VDiff.
func (d *driver) build(dbcfgs *dbconfigs.DBConfigs) {
	d.mu.Lock()
	built := d.engine != nil || d.buildErr != nil
	d.mu.Unlock()
	if built {
		return
	}
	var e diffEngine
	err := vterrors.New(vtrpcpb.Code_INTERNAL, "panic, see the log")
	contain("building the engine", func() { e, err = d.create(dbcfgs) })
	if err != nil {
		log.Error(fmt.Sprintf("VDiff plug-in: cannot build the engine: %v", err))
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if err != nil {
		d.buildErr = err
		return
	}
	d.engine = e
	d.startLocked()
}

// setPrimary says what the tablet is now. It returns at once.
func (d *driver) setPrimary(primary bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.ended {
		return
	}
	d.primary = primary
	d.mustOpen = primary
	if !primary {
		d.closeLocked()
	}
	d.startLocked()
}

// shutdown closes the engine for good and returns when it is closed or ctx is done.
func (d *driver) shutdown(ctx context.Context) error {
	d.mu.Lock()
	d.ended, d.mustOpen = true, false
	d.closeLocked()
	d.startLocked()
	idle := d.idle
	d.mu.Unlock()
	if idle == nil {
		return nil
	}
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// closeLocked ends what Open has started and notes that Close is due.
func (d *driver) closeLocked() {
	if d.cancel != nil {
		d.cancel()
		d.mustClose = true
	}
}

func (d *driver) startLocked() {
	if d.idle != nil || d.engine == nil || !(d.mustClose || d.mustOpen) {
		return
	}
	d.idle = make(chan struct{})
	go d.work()
}

func (d *driver) work() {
	for {
		step := d.next()
		if step == nil {
			return
		}
		step()
	}
}

// next returns the call that is due. When there is none it returns nil, and the goroutine counts as
// ended.
func (d *driver) next() func() {
	d.mu.Lock()
	defer d.mu.Unlock()
	e := d.engine
	switch {
	case d.mustClose:
		d.mustClose = false
		d.openCtx, d.cancel = nil, nil
		return func() { contain("closing the engine", e.Close) }
	case d.mustOpen:
		d.mustOpen = false
		if d.cancel == nil {
			d.openCtx, d.cancel = context.WithCancel(d.base)
		}
		ctx := d.openCtx
		return func() { contain("opening the engine", func() { e.Open(ctx) }) }
	default:
		close(d.idle)
		d.idle = nil
		return nil
	}
}

// contain keeps a panic of the engine away from the tablet.
func contain(what string, f func()) {
	defer func() {
		if x := recover(); x != nil {
			log.Error(fmt.Sprintf("VDiff plug-in: panic while %s: %v\n%s", what, x, debug.Stack()))
		}
	}()
	f()
}

// perform passes a request on to the engine, if the tablet is PRIMARY.
func (d *driver) perform(ctx context.Context, req *tabletmanagerdatapb.VDiffRequest) (*tabletmanagerdatapb.VDiffResponse, error) {
	d.mu.Lock()
	e, buildErr, open := d.engine, d.buildErr, d.primary && !d.ended
	d.mu.Unlock()
	switch {
	case buildErr != nil:
		return nil, vterrors.Wrap(buildErr, "vdiff engine could not be built")
	case e == nil || !open:
		return nil, vterrors.New(vtrpcpb.Code_UNAVAILABLE, "vdiff engine is closed")
	}
	return e.PerformVDiffAction(ctx, req)
}
