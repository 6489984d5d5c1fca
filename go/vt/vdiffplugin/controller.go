// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package vdiffplugin

import (
	"time"

	"vitess.io/vitess/go/vt/dbconfigs"
	"vitess.io/vitess/go/vt/mysqlctl"
	"vitess.io/vitess/go/vt/vttablet/tabletserver"

	querypb "vitess.io/vitess/go/vt/proto/query"
	topodatapb "vitess.io/vitess/go/vt/proto/topodata"
)

// controller is a TabletManager's QueryServiceControl as it was, and listens. Every call goes
// through with its arguments and comes back with its result; a method that a later Vitess adds to
// the interface is passed on by the embedding.
//
// Why this tells the engine as much as the stock one is told: a TabletManager changes the state of
// all its engines in one place, in which SetServingType is called exactly once with the tablet's
// type, with serving=false for a PRIMARY that must not serve (a reshard target) and for types that
// never serve (BACKUP, RESTORE, DRAINED). Beyond that it is called while a primary is demoted and
// when a demotion is undone, with the type that the tablet still has.
type controller struct {
	tabletserver.Controller
	driver *driver
}

var _ tabletserver.Controller = (*controller)(nil)

// InitDBConfig is called once by TabletManager.Start, before any SetServingType. From then on
// dbcfgs has the name of the tablet's database.
func (c *controller) InitDBConfig(target *querypb.Target, dbcfgs *dbconfigs.DBConfigs, mysqld mysqlctl.MysqlDaemon) error {
	if err := c.Controller.InitDBConfig(target, dbcfgs, mysqld); err != nil {
		return err
	}
	c.driver.build(dbcfgs)
	return nil
}

// SetServingType tells the engine at once when the tablet is not PRIMARY any more, and after the
// query service knows it when it is PRIMARY: whatever the query service answers, since the type has
// changed anyway. A PRIMARY that is not serving is told here before the VReplication engine opens,
// so an engine that needs that one must be able to try again.
func (c *controller) SetServingType(tabletType topodatapb.TabletType, ptsTimestamp time.Time, serving bool, reason string) error {
	primary := tabletType == topodatapb.TabletType_PRIMARY
	if !primary {
		c.driver.setPrimary(false)
	}
	err := c.Controller.SetServingType(tabletType, ptsTimestamp, serving, reason)
	if primary {
		c.driver.setPrimary(true)
	}
	return err
}
