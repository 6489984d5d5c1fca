// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package vdiffplugin

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"sync"
	"time"

	"vitess.io/vitess/go/vt/dbconfigs"
	"vitess.io/vitess/go/vt/log"
	"vitess.io/vitess/go/vt/servenv"
	"vitess.io/vitess/go/vt/vttablet/tabletmanager"
)

// shutdownWait is how long a shutdown hook waits for the engine. servenv's own limits for its hooks
// (--onterm-timeout, --onclose-timeout) are usually shorter.
const shutdownWait = 30 * time.Second

// Option changes what Install does.
type Option func(*options)

type options struct {
	config Config
	engine func(Deps) (diffEngine, error)
}

// WithConfig makes Install use c instead of what the flags say.
func WithConfig(c Config) Option {
	return func(o *options) { o.config = c }
}

// withEngine makes Install use another engine. For tests.
func withEngine(f func(Deps) (diffEngine, error)) Option {
	return func(o *options) { o.engine = f }
}

// Install makes tm answer VDiff with this project's engine. It is called once, when tm has all its
// fields and before tm.Start. On an error nothing was changed. With --vdiff-plugin=false it does
// nothing: tm keeps the stock engine, which the caller has therefore to give it in any case.
func Install(tm *tabletmanager.TabletManager, opts ...Option) error {
	o := options{config: flagConfig, engine: newEngine}
	for _, opt := range opts {
		opt(&o)
	}
	if tm == nil {
		return failed("there is no TabletManager")
	}
	if !o.config.Enabled {
		log.Info("VDiff plug-in is off, the stock VDiff engine stays (--" + flagEnabled + "=false)")
		return nil
	}
	if err := o.config.Validate(); err != nil {
		return failed(err.Error())
	}
	if err := checkTabletManager(tm); err != nil {
		return err
	}

	var reads *scans
	d := newDriver(tm.BatchCtx, func(dbcfgs *dbconfigs.DBConfigs) (diffEngine, error) {
		reads.open(dbcfgs)
		return o.engine(Deps{
			Context:      tm.BatchCtx,
			Tablet:       tm.Tablet,
			TopoServer:   tm.TopoServer,
			VREngine:     tm.VREngine,
			DBConfigs:    dbcfgs,
			QueryService: tm.QueryServiceControl.QueryService(),
			Env:          tm.Env,
			Config:       o.config,
			Reader:       reads.reader,
			ReadersIdle:  reads.idle,
		})
	})
	if err := replaceService(tm, d); err != nil {
		return err
	}
	reads = newScans(tm, o.config)
	tm.VDiffEngine = nil
	tm.QueryServiceControl = &controller{Controller: tm.QueryServiceControl, driver: d}
	installed.Store(d)

	// Vitess closes the stock engine in OnTerm, for which the process does not wait. It does for
	// OnTermSync: a run may write its last checkpoint and end while MySQL and the topo are there.
	// OnClose comes later, and waits for what OnTermSync had no time for.
	servenv.OnTermSync(func() { shutdown(d, reads) })
	servenv.OnClose(func() { shutdown(d, reads) })
	log.Info("VDiff plug-in is installed")
	return nil
}

func shutdown(d *driver, reads *scans) {
	ctx, cancel := context.WithTimeout(context.Background(), shutdownWait)
	defer cancel()
	var wg sync.WaitGroup
	// At once: gRPC waits for the reads of others, and the engine may wait for one of its own.
	wg.Go(func() {
		if err := reads.end(ctx); err != nil {
			log.Warn("VDiff plug-in: reads for other tablets did not end in time: " + err.Error())
		}
	})
	if err := d.shutdown(ctx); err != nil {
		log.Warn("VDiff plug-in: the engine did not close in time: " + err.Error())
	}
	wg.Wait()
	reads.close()
}

// checkTabletManager returns an error if tm is not in the state that Install needs.
func checkTabletManager(tm *tabletmanager.TabletManager) error {
	if started(tm) {
		return failed("the TabletManager is started already: call Install before Start")
	}
	if _, ok := tm.QueryServiceControl.(*controller); ok {
		return failed("it is already installed in this TabletManager")
	}
	var missing []string
	for _, f := range []struct {
		name  string
		isNil bool
	}{
		{"BatchCtx", tm.BatchCtx == nil},
		{"TopoServer", tm.TopoServer == nil},
		{"DBConfigs", tm.DBConfigs == nil},
		{"QueryServiceControl", isNil(tm.QueryServiceControl)},
		{"VREngine", tm.VREngine == nil},
		{"Env", tm.Env == nil},
	} {
		if f.isNil {
			missing = append(missing, f.name)
		}
	}
	if len(missing) > 0 {
		return failed("the TabletManager has no " + strings.Join(missing, ", ") + ": set every field before Install")
	}
	return nil
}

// started says whether tm.Start was called. The field that tells is not exported; if a later Vitess
// has no such field, the answer is no.
func started(tm *tabletmanager.TabletManager) bool {
	f := reflect.ValueOf(tm).Elem().FieldByName("tmState")
	return f.IsValid() && f.Kind() == reflect.Pointer && !f.IsNil()
}

// isNil sees an interface that holds a nil pointer, too.
func isNil(v any) bool {
	if v == nil {
		return true
	}
	rv := reflect.ValueOf(v)
	return rv.Kind() == reflect.Pointer && rv.IsNil()
}

func failed(why string) error {
	return errors.New("cannot install the VDiff plug-in: " + why)
}
