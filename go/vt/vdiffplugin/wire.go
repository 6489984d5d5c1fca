// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package vdiffplugin

import (
	"context"

	"vitess.io/vitess/go/vt/dbconfigs"
	"vitess.io/vitess/go/vt/topo"
	"vitess.io/vitess/go/vt/vtenv"
	"vitess.io/vitess/go/vt/vttablet/queryservice"
	"vitess.io/vitess/go/vt/vttablet/tabletmanager/vreplication"
	"vitess.io/vitess/go/vt/vttablet/tmclient"

	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/differ"
	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/engine"
	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/fence"
	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/scan"
	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/sidecar"

	topodatapb "vitess.io/vitess/go/vt/proto/topodata"
)

// Deps is what an engine is built from. It is complete when TabletManager.Start initializes the
// connection parameters: before the tablet has become PRIMARY.
type Deps struct {
	// Context lives as long as the TabletManager.
	Context context.Context
	// Tablet returns a copy of the tablet's record as it is now.
	Tablet     func() *topodatapb.Tablet
	TopoServer *topo.Server
	VREngine   *vreplication.Engine
	// DBConfigs has the name of the tablet's database.
	DBConfigs *dbconfigs.DBConfigs
	// QueryService is the tablet's own, without the network.
	QueryService queryservice.QueryService
	Env          *vtenv.Environment
	Config       Config
	// Reader returns what reads beside the MySQL of a tablet.
	Reader func(ctx context.Context, uuid string, tablet *topodatapb.Tablet, otherCluster bool) (differ.Reader, error)
	// ReadersIdle says that a vdiff has ended.
	ReadersIdle func()
}

// newEngine makes the engine and everything below it.
func newEngine(d Deps) (diffEngine, error) {
	store := sidecar.NewFromConfigs(d.DBConfigs)
	fences := fence.NewManager(fence.Config{
		Store:        store,
		VReplication: d.VREngine,
		Lock:         fence.TopoLock(d.TopoServer),
		Keyspace:     d.Tablet().Keyspace,
		LockWait:     d.Config.LockWait,
	})
	runner := differ.New(differ.Config{
		Tablet:         d.Tablet,
		TopoServer:     d.TopoServer,
		NewTMClient:    func() tmclient.TabletManagerClient { return tmclient.NewTabletManagerClient() },
		Dialer:         &scan.Dialer{Local: d.Tablet().Alias, LocalService: d.QueryService},
		Fences:         fences,
		Store:          store,
		Env:            d.Env,
		Reader:         d.Reader,
		ReadersIdle:    d.ReadersIdle,
		Concurrency:    d.Config.Concurrency,
		MaxSnapshotAge: d.Config.MaxSnapshotAge,
		RetryInterval:  d.Config.RetryInterval,
		LockWait:       d.Config.LockWait,
		MemoryLimit:    d.Config.MemoryLimit,
	})
	return engine.New(engine.Config{
		Tablet:        d.Tablet,
		Store:         store,
		Runner:        runner,
		Topo:          d.TopoServer,
		Repair:        fences.Repair,
		MaxRetries:    d.Config.MaxRetries,
		RetryInterval: d.Config.RetryInterval,
	}), nil
}
