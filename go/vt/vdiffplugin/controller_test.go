// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package vdiffplugin

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"vitess.io/vitess/go/vt/dbconfigs"
	"vitess.io/vitess/go/vt/mysqlctl"
	"vitess.io/vitess/go/vt/vttablet/tabletserver"

	querypb "vitess.io/vitess/go/vt/proto/query"
	topodatapb "vitess.io/vitess/go/vt/proto/topodata"
)

const (
	primary = topodatapb.TabletType_PRIMARY
	replica = topodatapb.TabletType_REPLICA
)

var noTime time.Time

func testTarget() *querypb.Target {
	return &querypb.Target{Keyspace: "ks", Shard: "-80", TabletType: replica}
}

// recorder is a query service that answers with err and keeps the arguments it got.
type recorder struct {
	tabletserver.Controller
	err      error
	seen     []any
	onCall   func()
	lameduck bool
}

func (r *recorder) InitDBConfig(target *querypb.Target, dbcfgs *dbconfigs.DBConfigs, mysqld mysqlctl.MysqlDaemon) error {
	r.seen = []any{target, dbcfgs, mysqld}
	return r.err
}

func (r *recorder) SetServingType(tabletType topodatapb.TabletType, ts time.Time, serving bool, reason string) error {
	r.seen = []any{tabletType, ts, serving, reason}
	if r.onCall != nil {
		r.onCall()
	}
	return r.err
}

func (r *recorder) EnterLameduck() { r.lameduck = true }

// TestCallThrough checks that the decorated query service gets each call with its arguments, that
// its result comes back, and that an error of it does not keep the news from the engine: the
// tablet's type has changed all the same.
func TestCallThrough(t *testing.T) {
	e := &fakeEngine{}
	r := &recorder{}
	d := newDriver(t.Context(), func(*dbconfigs.DBConfigs) (diffEngine, error) { return e, nil })
	c := &controller{Controller: r, driver: d}
	dbcfgs := &dbconfigs.DBConfigs{}
	now := time.Now()
	boom := errors.New("boom")

	r.err = boom
	assert.Same(t, boom, c.InitDBConfig(testTarget(), dbcfgs, nil))
	assert.Nil(t, d.engine, "an engine was built though the tablet does not start")

	r.err = nil
	target := testTarget()
	require.NoError(t, c.InitDBConfig(target, dbcfgs, nil))
	assert.Equal(t, []any{target, dbcfgs, mysqlctl.MysqlDaemon(nil)}, r.seen)

	r.err = boom
	assert.Same(t, boom, c.SetServingType(primary, now, true, "why"))
	assert.Equal(t, []any{primary, now, true, "why"}, r.seen)
	e.wait(t, "open")

	assert.Same(t, boom, c.SetServingType(replica, now, false, "because"))
	assert.Equal(t, []any{replica, now, false, "because"}, r.seen)
	e.wait(t, "open", "close")

	c.EnterLameduck()
	assert.True(t, r.lameduck)
}

// TestOrderOfNews checks that the engine's context is done before the query service begins to leave
// PRIMARY, and that the engine is not opened before the query service has become PRIMARY.
func TestOrderOfNews(t *testing.T) {
	e := &fakeEngine{}
	r := &recorder{}
	d := newDriver(t.Context(), func(*dbconfigs.DBConfigs) (diffEngine, error) { return e, nil })
	c := &controller{Controller: r, driver: d}
	require.NoError(t, c.InitDBConfig(testTarget(), &dbconfigs.DBConfigs{}, nil))

	r.onCall = func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		assert.False(t, d.primary)
		assert.Nil(t, d.idle)
	}
	require.NoError(t, c.SetServingType(primary, noTime, true, ""))
	e.wait(t, "open")

	r.onCall = func() { assert.Error(t, e.openCtx().Err()) }
	require.NoError(t, c.SetServingType(replica, noTime, true, ""))
	e.wait(t, "open", "close")
}

// TestNotServingPrimary checks that a PRIMARY that does not serve (a reshard target, a demotion that
// has begun) keeps its engine open, and that every other type closes it.
func TestNotServingPrimary(t *testing.T) {
	for _, other := range []topodatapb.TabletType{
		replica, topodatapb.TabletType_RDONLY, topodatapb.TabletType_SPARE, topodatapb.TabletType_DRAINED,
		topodatapb.TabletType_BACKUP, topodatapb.TabletType_RESTORE,
	} {
		t.Run(other.String(), func(t *testing.T) {
			e := &fakeEngine{}
			d := newDriver(t.Context(), func(*dbconfigs.DBConfigs) (diffEngine, error) { return e, nil })
			c := &controller{Controller: &recorder{}, driver: d}
			require.NoError(t, c.InitDBConfig(testTarget(), &dbconfigs.DBConfigs{}, nil))
			require.NoError(t, c.SetServingType(primary, noTime, false, "filtered replication"))
			e.wait(t, "open")
			require.NoError(t, c.SetServingType(primary, noTime, false, "demotion in progress"))
			e.wait(t, "open", "open")
			require.NoError(t, e.openCtx().Err())
			require.NoError(t, c.SetServingType(other, noTime, false, ""))
			e.wait(t, "open", "open", "close")
		})
	}
}

// TestNeverHeldUp checks that a change of the tablet's type returns while the engine hangs in Open or
// in Close.
func TestNeverHeldUp(t *testing.T) {
	free := make(chan struct{})
	e := &fakeEngine{}
	hang := func() { <-free }
	e.onClose = hang
	d := newDriver(t.Context(), func(*dbconfigs.DBConfigs) (diffEngine, error) { return e, nil })
	c := &controller{Controller: &recorder{}, driver: d}
	require.NoError(t, c.InitDBConfig(testTarget(), &dbconfigs.DBConfigs{}, nil))
	require.NoError(t, c.SetServingType(primary, noTime, true, ""))
	e.wait(t, "open")
	require.NoError(t, c.SetServingType(replica, noTime, true, ""))
	e.wait(t, "open", "close") // and hangs there
	require.NoError(t, c.SetServingType(primary, noTime, true, ""))
	require.NoError(t, c.SetServingType(replica, noTime, true, ""))
	require.NoError(t, c.SetServingType(primary, noTime, true, ""))
	assert.Equal(t, []string{"open", "close"}, e.got())
	close(free)
	e.wait(t, "open", "close", "open")
}
