// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package vdiffplugin

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"vitess.io/vitess/go/mysql/fakesqldb"
	"vitess.io/vitess/go/sqltypes"
	"vitess.io/vitess/go/vt/mysqlctl"
	"vitess.io/vitess/go/vt/servenv"
	"vitess.io/vitess/go/vt/topo"
	"vitess.io/vitess/go/vt/topo/memorytopo"
	"vitess.io/vitess/go/vt/vttablet/tabletmanager"
	"vitess.io/vitess/go/vt/vttablet/tabletmanager/semisyncmonitor"
	"vitess.io/vitess/go/vt/vttablet/tabletservermock"

	// The TabletManager makes a client of other tablets when it starts.
	_ "vitess.io/vitess/go/vt/vttablet/grpctmclient"

	topodatapb "vitess.io/vitess/go/vt/proto/topodata"
)

// startTM completes tm with a topo and a fake MySQL, installs e, and starts it as a replica.
func startTM(t *testing.T, ts *topo.Server, tm *tabletmanager.TabletManager, e *fakeEngine) {
	t.Helper()
	db := fakesqldb.New(t)
	db.AddQueryPattern("SET @@.*", &sqltypes.Result{})
	t.Cleanup(db.Close)
	mysqld := mysqlctl.NewFakeMysqlDaemon(db)
	mysqld.MysqlPort.Store(3306)
	tm.TopoServer = ts
	tm.MysqlDaemon = mysqld
	tm.SemiSyncMonitor = semisyncmonitor.CreateTestSemiSyncMonitor(db, servenv.NewExporter("VDiffPluginTest", ""))

	require.NoError(t, Install(tm, withEngine(e.build)))
	require.NoError(t, tm.Start(&topodatapb.Tablet{
		Alias:    &topodatapb.TabletAlias{Cell: "zone1", Uid: 100},
		Hostname: "localhost",
		PortMap:  map[string]int32{"vt": 1, "grpc": 2},
		Keyspace: "ks",
		Shard:    "0",
		Type:     replica,
	}, nil))
	t.Cleanup(tm.Stop)
}

// drain keeps the mock query service from blocking: it reports each change on a channel.
func drain(t *testing.T, qsc *tabletservermock.Controller) {
	done := make(chan struct{})
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-qsc.StateChanges:
			case <-qsc.BroadcastData:
			case <-done:
				return
			}
		}
	}()
	t.Cleanup(func() {
		close(done)
		<-stopped
	})
}

// TestTabletLife runs a real TabletManager through the types of a tablet's life and checks that its
// state changes reach the engine: it is what the claim rests on that a TabletManager without a
// VDiffEngine tells enough. It also checks that Install after Start is refused.
func TestTabletLife(t *testing.T) {
	// Cleanups run in reverse: the TabletManager stops first.
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	ts := memorytopo.NewServer(ctx, "zone1")
	t.Cleanup(ts.Close)
	tm := newTM(t)
	drain(t, tm.QueryServiceControl.(*tabletservermock.Controller))
	e := &fakeEngine{}
	startTM(t, ts, tm, e)
	d := driverOf(t, tm)
	assert.Empty(t, e.got(), "a replica has opened its engine")
	require.NotNil(t, d.engine)
	assert.Equal(t, "vt_ks", tm.DBConfigs.DBName)

	require.ErrorContains(t, Install(tm), "started already")

	// The TabletManager tells its type now and then, too: only changes count.
	change := func(to topodatapb.TabletType, want ...string) {
		t.Helper()
		require.NoError(t, tm.ChangeType(ctx, to, false))
		require.Eventually(t, func() bool { return slices.Equal(slices.Compact(e.got()), want) }, 10*time.Second, time.Millisecond,
			"want the calls %v", want)
	}
	change(primary, "open")
	// The keyspace's serving graph is built in the background when the first tablet starts.
	require.Eventually(t, func() bool { return tm.RefreshState(ctx) == nil }, 10*time.Second, time.Millisecond)
	n := len(e.got())
	require.NoError(t, tm.RefreshState(ctx))
	require.Eventually(t, func() bool { return len(e.got()) > n }, 10*time.Second, time.Millisecond, "a refresh tells nothing")
	change(replica, "open", "close")
	change(topodatapb.TabletType_DRAINED, "open", "close")
	change(replica, "open", "close")
	change(primary, "open", "close", "open")
	require.NoError(t, d.shutdown(ctx))
	change(replica, "open", "close", "open", "close")
	change(primary, "open", "close", "open", "close")
}
