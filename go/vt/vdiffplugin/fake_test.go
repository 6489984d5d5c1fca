// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package vdiffplugin

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"vitess.io/vitess/go/vt/dbconfigs"
	"vitess.io/vitess/go/vt/topo"
	"vitess.io/vitess/go/vt/vtenv"
	"vitess.io/vitess/go/vt/vttablet/tabletmanager"
	"vitess.io/vitess/go/vt/vttablet/tabletmanager/vdiff"
	"vitess.io/vitess/go/vt/vttablet/tabletmanager/vreplication"
	"vitess.io/vitess/go/vt/vttablet/tabletservermock"

	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/engine"

	tabletmanagerdatapb "vitess.io/vitess/go/vt/proto/tabletmanagerdata"
)

// fakeEngine writes down the calls it gets.
type fakeEngine struct {
	onOpen    func(ctx context.Context)
	onClose   func()
	onPerform func() error

	mu    sync.Mutex
	calls []string
	ctx   context.Context // of the last Open
	in    int             // calls of Open and Close that have not returned
	twice bool            // there were two of them at a time
	live  []engine.Live
}

func (e *fakeEngine) enter(call string, ctx context.Context) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.calls = append(e.calls, call)
	if ctx != nil {
		e.ctx = ctx
	}
	e.in++
	e.twice = e.twice || e.in > 1
}

func (e *fakeEngine) leave() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.in--
}

func (e *fakeEngine) Open(ctx context.Context) {
	e.enter("open", ctx)
	defer e.leave()
	if e.onOpen != nil {
		e.onOpen(ctx)
	}
}

func (e *fakeEngine) Close() {
	e.enter("close", nil)
	defer e.leave()
	if e.onClose != nil {
		e.onClose()
	}
}

func (e *fakeEngine) PerformVDiffAction(_ context.Context, req *tabletmanagerdatapb.VDiffRequest) (*tabletmanagerdatapb.VDiffResponse, error) {
	if e.onPerform != nil {
		if err := e.onPerform(); err != nil {
			return nil, err
		}
	}
	return &tabletmanagerdatapb.VDiffResponse{VdiffUuid: "answer to " + req.VdiffUuid}, nil
}

func (e *fakeEngine) LiveVDiffs() []engine.Live { return e.live }

func (e *fakeEngine) got() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.calls)
}

func (e *fakeEngine) openCtx() context.Context {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.ctx
}

// wait polls until the engine has had exactly these calls.
func (e *fakeEngine) wait(t *testing.T, want ...string) {
	t.Helper()
	require.Eventually(t, func() bool { return slices.Equal(e.got(), want) }, 10*time.Second, time.Millisecond,
		"want the calls %v", want)
}

// build is what Install gets to make the engine.
func (e *fakeEngine) build(Deps) (diffEngine, error) { return e, nil }

// newTM returns a TabletManager that is complete for Install, and keeps the list of services as it
// was for the tests that follow.
func newTM(t *testing.T) *tabletmanager.TabletManager {
	t.Helper()
	before := slices.Clone(tabletmanager.RegisterTabletManagers)
	t.Cleanup(func() {
		tabletmanager.RegisterTabletManagers = before
		installed.Store(nil)
	})
	env := vtenv.NewTestEnv()
	ts := &topo.Server{}
	return &tabletmanager.TabletManager{
		BatchCtx:            context.Background(),
		Env:                 env,
		TopoServer:          ts,
		DBConfigs:           &dbconfigs.DBConfigs{},
		QueryServiceControl: tabletservermock.NewController(),
		VREngine:            &vreplication.Engine{},
		VDiffEngine:         vdiff.NewEngine(ts, nil, env.CollationEnv(), env.Parser()),
	}
}

// driverOf returns what Install has put into tm.
func driverOf(t *testing.T, tm *tabletmanager.TabletManager) *driver {
	t.Helper()
	c, ok := tm.QueryServiceControl.(*controller)
	require.True(t, ok, "QueryServiceControl is not decorated")
	return c.driver
}
