// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package vdiffplugin

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"vitess.io/vitess/go/vt/vttablet/tabletmanager"
	"vitess.io/vitess/go/vt/vttablet/tabletserver"
	"vitess.io/vitess/go/vt/vttablet/tabletservermock"
)

// stockAt returns the places of the stock services in the list, and of ours.
func stockAt() (stock, ours []int) {
	for i, f := range tabletmanager.RegisterTabletManagers {
		if isStock(f) {
			stock = append(stock, i)
		}
		if isOurs(f) {
			ours = append(ours, i)
		}
	}
	return stock, ours
}

// TestInstall checks what Install changes: no stock engine, a decorated query service, and the stock
// service replaced by ours in its place, with every other entry kept in order.
func TestInstall(t *testing.T) {
	tm := newTM(t)
	var called []string
	other := func(what string) tabletmanager.RegisterTabletManager {
		return func(*tabletmanager.TabletManager) { called = append(called, what) }
	}
	list := append([]tabletmanager.RegisterTabletManager{other("first")}, tabletmanager.RegisterTabletManagers...)
	tabletmanager.RegisterTabletManagers = append(list, other("last"))
	stock, ours := stockAt()
	require.Len(t, stock, 1, "package grpctmserver has registered its service")
	require.Empty(t, ours)
	n := len(tabletmanager.RegisterTabletManagers)

	require.NoError(t, Install(tm, withEngine((&fakeEngine{}).build)))

	assert.Nil(t, tm.VDiffEngine)
	_ = driverOf(t, tm)
	after, ours := stockAt()
	assert.Empty(t, after)
	assert.Equal(t, stock, ours)
	require.Len(t, tabletmanager.RegisterTabletManagers, n)
	for i, f := range tabletmanager.RegisterTabletManagers {
		if i != ours[0] {
			f(tm)
		}
	}
	assert.Equal(t, []string{"first", "last"}, called)
}

// TestInstallOff checks that --vdiff-plugin=false leaves everything as it was, even where the other
// flags are wrong.
func TestInstallOff(t *testing.T) {
	tm := newTM(t)
	engine, qsc := tm.VDiffEngine, tm.QueryServiceControl
	require.NoError(t, Install(tm, WithConfig(Config{Enabled: false, Concurrency: -1})))
	assert.Same(t, engine, tm.VDiffEngine)
	assert.Same(t, qsc, tm.QueryServiceControl)
	stock, ours := stockAt()
	assert.Len(t, stock, 1)
	assert.Empty(t, ours)
}

// TestInstallRefuses checks each condition that Install has: a clear error, and nothing changed.
func TestInstallRefuses(t *testing.T) {
	f := func(spoil func(*tabletmanager.TabletManager), want string, opts ...Option) {
		t.Helper()
		t.Run(want, func(t *testing.T) {
			tm := newTM(t)
			spoil(tm)
			engine, qsc := tm.VDiffEngine, tm.QueryServiceControl
			stock, ours := stockAt()

			err := Install(tm, append(opts, withEngine((&fakeEngine{}).build))...)

			require.ErrorContains(t, err, want)
			assert.ErrorContains(t, err, "cannot install the VDiff plug-in")
			assert.Same(t, engine, tm.VDiffEngine)
			assert.Equal(t, qsc, tm.QueryServiceControl)
			stockAfter, oursAfter := stockAt()
			assert.Equal(t, stock, stockAfter)
			assert.Equal(t, ours, oursAfter)
		})
	}
	ok := func(*tabletmanager.TabletManager) {}
	bad := DefaultConfig()
	bad.Concurrency = 0
	f(ok, "--vdiff-plugin-concurrency", WithConfig(bad))
	f(func(tm *tabletmanager.TabletManager) {
		tm.QueryServiceControl = nil
		tm.VREngine = nil
	}, "has no QueryServiceControl, VREngine")
	f(func(tm *tabletmanager.TabletManager) { tm.QueryServiceControl = (*tabletserver.TabletServer)(nil) }, "has no QueryServiceControl")
	f(func(tm *tabletmanager.TabletManager) { tm.BatchCtx = nil }, "has no BatchCtx")
	f(func(tm *tabletmanager.TabletManager) { tm.TopoServer = nil }, "has no TopoServer")
	f(func(tm *tabletmanager.TabletManager) { tm.DBConfigs = nil }, "has no DBConfigs")
	f(func(tm *tabletmanager.TabletManager) { tm.Env = nil }, "has no Env")
	f(func(*tabletmanager.TabletManager) { tabletmanager.RegisterTabletManagers = nil }, "no TabletManager service of package grpctmserver among the 0")
	f(func(*tabletmanager.TabletManager) {
		list := tabletmanager.RegisterTabletManagers
		tabletmanager.RegisterTabletManagers = append(list[:len(list):len(list)], list[0])
	}, "more than one TabletManager service")
	f(func(tm *tabletmanager.TabletManager) {
		require.NoError(t, Install(tm, withEngine((&fakeEngine{}).build)))
	}, "already installed in this TabletManager")
	f(func(*tabletmanager.TabletManager) {
		require.NoError(t, Install(newTM(t), withEngine((&fakeEngine{}).build)))
	}, "already installed in another TabletManager")

	require.ErrorContains(t, Install(nil), "there is no TabletManager")
}

// TestInstallBuildError checks that an engine that cannot be built, or whose building panics, leaves
// a tablet that starts: InitDBConfig succeeds, and who asks for a VDiff is told.
func TestInstallBuildError(t *testing.T) {
	f := func(build func(Deps) (diffEngine, error), want string) {
		t.Helper()
		t.Run(want, func(t *testing.T) {
			tm := newTM(t)
			require.NoError(t, Install(tm, withEngine(build)))
			require.NoError(t, tm.QueryServiceControl.InitDBConfig(testTarget(), tm.DBConfigs, nil))
			require.NoError(t, tm.QueryServiceControl.SetServingType(primary, noTime, true, ""))
			_, err := driverOf(t, tm).perform(t.Context(), nil)
			require.ErrorContains(t, err, want)
			assert.Contains(t, driverOf(t, tm).status().Engine, "could not be built")
		})
	}
	f(func(Deps) (diffEngine, error) { return nil, errors.New("no such thing") }, "vdiff engine could not be built: no such thing")
	f(func(Deps) (diffEngine, error) { panic("oops") }, "vdiff engine could not be built: panic")
}

// TestDeps checks that the engine gets what the TabletManager has, and the connection parameters of
// InitDBConfig.
func TestDeps(t *testing.T) {
	tm := newTM(t)
	qsc := tm.QueryServiceControl.(*tabletservermock.Controller)
	c := DefaultConfig()
	c.Concurrency = 9
	var got Deps
	require.NoError(t, Install(tm, WithConfig(c), withEngine(func(d Deps) (diffEngine, error) {
		got = d
		return &fakeEngine{}, nil
	})))
	dbcfgs := tm.DBConfigs.Clone()
	dbcfgs.DBName = "vt_ks"
	require.NoError(t, tm.QueryServiceControl.InitDBConfig(testTarget(), dbcfgs, nil))
	assert.Same(t, dbcfgs, got.DBConfigs)
	assert.Same(t, tm.TopoServer, got.TopoServer)
	assert.Same(t, tm.VREngine, got.VREngine)
	assert.Same(t, tm.Env, got.Env)
	assert.Equal(t, tm.BatchCtx, got.Context)
	assert.Equal(t, qsc.QueryService(), got.QueryService)
	assert.NotNil(t, got.Tablet)
	assert.Equal(t, c, got.Config)
}
