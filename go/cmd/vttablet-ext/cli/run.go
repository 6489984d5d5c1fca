// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"expvar"
	"fmt"

	"github.com/spf13/cobra"

	"vitess.io/vitess/go/stats"
	"vitess.io/vitess/go/vt/binlog"
	"vitess.io/vitess/go/vt/mysqlctl"
	"vitess.io/vitess/go/vt/servenv"
	"vitess.io/vitess/go/vt/tableacl"
	"vitess.io/vitess/go/vt/tableacl/simpleacl"
	"vitess.io/vitess/go/vt/topo"
	"vitess.io/vitess/go/vt/vtenv"
	"vitess.io/vitess/go/vt/vttablet/tabletmanager"
	"vitess.io/vitess/go/vt/vttablet/tabletmanager/semisyncmonitor"
	"vitess.io/vitess/go/vt/vttablet/tabletmanager/vdiff"
	"vitess.io/vitess/go/vt/vttablet/tabletmanager/vreplication"
	"vitess.io/vitess/go/vt/vttablet/tabletserver"
	"vitess.io/vitess/go/vt/vttablet/tabletserver/tabletenv"

	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin"
)

// run is the life of the process: it makes the tablet, serves, and returns after a signal.
func run(cmd *cobra.Command, _ []string) error {
	servenv.Init()

	// Deferred calls run in reverse: what the context ends must not miss its topo.
	ts := topo.Open()
	defer ts.Close()
	ctx, cancel := context.WithCancel(cmd.Context())
	defer cancel()

	f, err := readFlags(cmd.Flags())
	if err != nil {
		return err
	}
	env, err := vtenv.New(vtenv.Options{
		MySQLServerVersion: servenv.MySQLServerVersion(),
		TruncateUILen:      servenv.TruncateUILen,
		TruncateErrLen:     servenv.TruncateErrLen,
	})
	if err != nil {
		return fmt.Errorf("cannot initialize vtenv: %w", err)
	}
	config, mycnf, err := loadConfig(f, env.CollationEnv())
	if err != nil {
		return err
	}
	if err := startTablet(ctx, f, env, config, mycnf, ts); err != nil {
		return err
	}
	servenv.RunDefault()
	return nil
}

// startTablet makes the query service and the TabletManager, installs the plug-in and starts them.
func startTablet(ctx context.Context, f *tabletFlags, env *vtenv.Environment, config *tabletenv.TabletConfig, mycnf *mysqlctl.Mycnf, ts *topo.Server) error {
	qsc, err := newQueryService(ctx, f, env, config, ts)
	if err != nil {
		return err
	}
	mysqld := mysqlctl.NewMysqld(config.DB)
	servenv.OnClose(mysqld.Close)

	tablet, err := tabletmanager.BuildTabletFromInput(f.alias, int32(servenv.Port()), int32(servenv.GRPCPort()), config.DB, env.CollationEnv())
	if err != nil {
		return fmt.Errorf("cannot make the tablet's record: %w", err)
	}
	cell := f.alias.Cell
	tm := &tabletmanager.TabletManager{
		BatchCtx:            ctx,
		Env:                 env,
		TopoServer:          ts,
		Cnf:                 mycnf,
		MysqlDaemon:         mysqld,
		DBConfigs:           config.DB.Clone(),
		QueryServiceControl: qsc,
		UpdateStream:        binlog.NewUpdateStream(ts, tablet.Keyspace, cell, qsc.SchemaEngine(), env.Parser()),
		VREngine:            vreplication.NewEngine(env, config, ts, cell, mysqld, qsc.LagThrottler()),
		SemiSyncMonitor:     semisyncmonitor.NewMonitor(config, qsc.Exporter()),
		// For --vdiff-plugin=false. Otherwise Install takes it out.
		VDiffEngine: vdiff.NewEngine(ts, tablet, env.CollationEnv(), env.Parser()),
	}
	if err := vdiffplugin.Install(tm); err != nil {
		return err
	}
	servenv.OnRun(func() {
		qsc.Register()
		addStatusParts(tm, qsc)
	})
	if err := tm.Start(tablet, config); err != nil {
		return fmt.Errorf("cannot start the tablet manager: %w", err)
	}
	// The tablet's record in the topo is cleaned when the process ends.
	servenv.OnClose(tm.Close)
	return nil
}

// newQueryService makes the query service with its table ACLs.
func newQueryService(ctx context.Context, f *tabletFlags, env *vtenv.Environment, config *tabletenv.TabletConfig, ts *topo.Server) (*tabletserver.TabletServer, error) {
	switch {
	case f.aclFile != "":
		// An ACL plug-in of a custom build makes itself the default.
		tableacl.Register("simpleacl", &simpleacl.Factory{})
	case f.enforceACL:
		return nil, errors.New("--enforce-tableacl-config is set, so --table-acl-config has to name a file")
	}
	qsc := tabletserver.NewTabletServer(ctx, env, "", config, ts, f.alias, srvTopoCounts())
	servenv.OnClose(qsc.StopService)
	if err := qsc.InitACL(f.aclFile, f.aclReloadInterval); err != nil && f.enforceACL {
		return nil, fmt.Errorf("cannot initialize the table ACL: %w", err)
	}
	return qsc, nil
}

// srvTopoCounts returns the metric TabletSrvTopo. Upstream's command has published it when its
// package was initialized, and a second one of that name is fatal.
func srvTopoCounts() *stats.CountersWithSingleLabel {
	if c, ok := expvar.Get("TabletSrvTopo").(*stats.CountersWithSingleLabel); ok {
		return c
	}
	return stats.NewCountersWithSingleLabel("", "Operations of the tablet's resilient topo client", "type")
}
