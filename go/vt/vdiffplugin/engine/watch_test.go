// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"vitess.io/vitess/go/stats"
	"vitess.io/vitess/go/vt/topo"
	"vitess.io/vitess/go/vt/topo/memorytopo"
	"vitess.io/vitess/go/vt/vterrors"
	"vitess.io/vitess/go/vt/vttablet/tabletmanager/vdiff"

	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/differ"
	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/sidecar"

	topodatapb "vitess.io/vitess/go/vt/proto/topodata"
	vtrpcpb "vitess.io/vitess/go/vt/proto/vtrpc"
	vttimepb "vitess.io/vitess/go/vt/proto/vttime"
)

// TestClaimOf tests what a shard record says of this tablet: a tablet that has just become primary
// must not be stopped by the record of its predecessor.
func TestClaimOf(t *testing.T) {
	f := func(alias *topodatapb.TabletAlias, recordTerm, tabletTerm int64, want claim) {
		t.Helper()
		at := func(s int64) *vttimepb.Time {
			if s == 0 {
				return nil
			}
			return &vttimepb.Time{Seconds: s}
		}
		record := &topodatapb.Shard{PrimaryAlias: alias, PrimaryTermStartTime: at(recordTerm)}
		tablet := &topodatapb.Tablet{Alias: thisAlias, PrimaryTermStartTime: at(tabletTerm)}
		require.Equal(t, want, claimOf(record, tablet))
	}
	f(thisAlias, 0, 0, claimOurs)
	f(thisAlias, 20, 10, claimOurs)
	f(otherAlias, 20, 10, claimOthers)
	f(otherAlias, 10, 10, claimOthers)
	f(otherAlias, 10, 20, claimUnknown)
	f(otherAlias, 0, 20, claimUnknown)
	f(otherAlias, 20, 0, claimOthers)
	f(otherAlias, 0, 0, claimOthers)
	f(nil, 20, 10, claimUnknown)
	f(&topodatapb.TabletAlias{}, 20, 10, claimUnknown)
	require.Equal(t, claimUnknown, claimOf(nil, &topodatapb.Tablet{Alias: thisAlias}))
}

// TestBrokenWatches tests everything that a watch may deliver instead of a record, one after the other
// on every watch that is opened: each is counted, the watch is opened again, nothing panics or runs
// hot, the vdiffs go on, and a record that comes later is still seen.
func TestBrokenWatches(t *testing.T) {
	type answer func() (*topo.WatchShardData, <-chan *topo.WatchShardData, error)
	record := func() *topo.WatchShardData {
		return &topo.WatchShardData{Value: &topodatapb.Shard{PrimaryAlias: thisAlias}}
	}
	then := func(events ...*topo.WatchShardData) answer {
		return func() (*topo.WatchShardData, <-chan *topo.WatchShardData, error) {
			c := make(chan *topo.WatchShardData, len(events))
			for _, e := range events {
				c <- e
			}
			close(c)
			return record(), c, nil
		}
	}
	first := func(current *topo.WatchShardData) answer {
		return func() (*topo.WatchShardData, <-chan *topo.WatchShardData, error) {
			c := make(chan *topo.WatchShardData)
			close(c)
			return current, c, nil
		}
	}
	f := func(what string, counter func() *stats.Counter, a answer) {
		t.Run(what, func(t *testing.T) {
			w := newWorld(t, untilCancelled)
			w.topo.open = func(int) (*topo.WatchShardData, <-chan *topo.WatchShardData, error) { return a() }
			id := w.store.put(pending())
			before := counter().Get()
			w.open()
			w.eventuallyState(id, vdiff.StartedState)
			w.eventually("the watch is opened again and again", func() bool { return w.topo.watchCount() > 4 })
			require.GreaterOrEqual(t, counter().Get(), before+4)
			require.True(t, w.engine.IsOpen())
			require.Equal(t, vdiff.StartedState, w.store.state(id))

			w.topo.mu.Lock()
			w.topo.open = nil
			w.topo.mu.Unlock()
			w.topo.setPrimary(otherAlias, 0)
			w.eventually("fenced", func() bool { return !w.engine.IsOpen() })
		})
	}
	nilEvents := func() *stats.Counter { return globalStats.nilEvents }
	watchErrors := func() *stats.Counter { return globalStats.watchErrors }
	panics := func() *stats.Counter { return globalStats.panics }
	f("nil event", nilEvents, then(nil))
	f("nil event after a good one", nilEvents, then(record(), nil))
	f("nil first event", nilEvents, first(nil))
	f("empty event", nilEvents, then(&topo.WatchShardData{}))
	f("empty first event", nilEvents, first(&topo.WatchShardData{}))
	f("error event", watchErrors, then(&topo.WatchShardData{Err: errors.New("interrupted")}))
	f("error as first event", watchErrors, first(&topo.WatchShardData{Err: errors.New("interrupted")}))
	f("closed channel", watchErrors, then())
	f("nil channel", nilEvents, func() (*topo.WatchShardData, <-chan *topo.WatchShardData, error) { return record(), nil, nil })
	f("nothing at all", nilEvents, func() (*topo.WatchShardData, <-chan *topo.WatchShardData, error) { return nil, nil, nil })
	f("cannot watch", watchErrors, func() (*topo.WatchShardData, <-chan *topo.WatchShardData, error) {
		return nil, nil, topo.NewError(topo.NoNode, "shard")
	})
	f("panic", panics, func() (*topo.WatchShardData, <-chan *topo.WatchShardData, error) { panic("nil server") })
}

// TestFencing tests that when another primary takes over, all runs end at once, nothing at all is
// written from then on, whatever the runs return, actions are refused, and nothing runs again although
// the states still say so.
func TestFencing(t *testing.T) {
	w := newWorld(t, nil)
	var fenced atomic.Bool
	var written atomic.Int64
	w.store.before = func(_ context.Context, method string) error {
		switch method {
		case "StartVDiff", "CompleteVDiff", "FailVDiff", "StopVDiff", "RetryVDiff", "ResumeVDiff", "CreateVDiff", "DeleteVDiff":
			if fenced.Load() {
				written.Add(1)
			}
		}
		return nil
	}
	w.engine.cfg.Runner = runnerFunc(func(ctx context.Context, v *sidecar.VDiff, obs differ.Observer) error {
		<-ctx.Done()
		fenced.Store(true)
		switch v.ID % 3 {
		case 0:
			w.store.setTable(v.ID, "t1", vdiff.CompletedState, 1)
			return nil
		case 1:
			return sidecar.AsPermanent(errors.New("read only"))
		}
		panic("closed")
	})
	var ids []int64
	for range 9 {
		ids = append(ids, w.store.put(retried()))
	}
	w.open()
	for _, id := range ids {
		w.eventuallyState(id, vdiff.StartedState)
	}
	w.topo.setPrimary(otherAlias, 0)
	w.eventually("fenced", func() bool { return !w.engine.IsOpen() })
	w.eventually("all runs have ended", func() bool { w.engine.mu.Lock(); defer w.engine.mu.Unlock(); return w.engine.session.fenced })
	w.requireNoControllers()
	err := w.act(vdiff.StopAction, w.store.get(ids[0]).UUID)
	require.Equal(t, vtrpcpb.Code_UNAVAILABLE, vterrors.Code(err))
	require.ErrorContains(t, err, "another tablet is the primary")
	w.engine.Close()
	require.Zero(t, written.Load())
	for _, id := range ids {
		require.Equal(t, vdiff.StartedState, w.store.state(id))
	}
}

// TestFencingDuringWrite tests that a write of a state that hangs in the database when another primary
// takes over is interrupted and not tried again.
func TestFencingDuringWrite(t *testing.T) {
	w := newWorld(t, nil)
	w.engine.cfg.Runner = w.completing()
	hanging := make(chan struct{}, 10)
	w.store.before = func(ctx context.Context, method string) error {
		if method == "CompleteVDiff" {
			hanging <- struct{}{}
			<-ctx.Done()
			return ctx.Err()
		}
		return nil
	}
	id := w.store.put(pending())
	w.open()
	<-hanging
	w.topo.setPrimary(otherAlias, 0)
	w.eventually("fenced", func() bool { return !w.engine.IsOpen() })
	w.engine.Close()
	require.Empty(t, hanging)
	require.Equal(t, vdiff.StartedState, w.store.state(id))
}

// TestReopenByRecord tests that a fenced engine opens again when the shard record names this tablet.
func TestReopenByRecord(t *testing.T) {
	w := newWorld(t, untilCancelled)
	id := w.store.put(pending())
	w.open()
	w.eventuallyState(id, vdiff.StartedState)
	for range 3 {
		w.topo.setPrimary(otherAlias, 0)
		w.eventually("fenced", func() bool { return !w.engine.IsOpen() })
		w.topo.breakWatches() // it is still seen after the watch was opened again
		w.topo.setPrimary(thisAlias, 0)
		w.eventually("open", w.engine.IsOpen)
		w.eventually("it runs", func() bool { engine, metrics := w.ids(); return len(engine) == 1 && len(metrics) == 1 })
	}
}

// TestReopenByOpen tests that a fenced engine opens when Open is called because this tablet has a new
// term, although the record still names the predecessor, and that an Open without a new term does not
// open it.
func TestReopenByOpen(t *testing.T) {
	w := newWorld(t, untilCancelled)
	w.term = 10
	id := w.store.put(pending())
	w.open()
	w.eventuallyState(id, vdiff.StartedState)
	w.topo.setPrimary(otherAlias, 20)
	w.eventually("fenced", func() bool { return !w.engine.IsOpen() })

	w.engine.Open(context.Background())
	w.topo.breakWatches()
	watches := w.topo.watchCount()
	w.eventually("the watch goes on", func() bool { return w.topo.watchCount() > watches })
	require.False(t, w.engine.IsOpen())

	w.mu.Lock()
	w.term = 30
	w.mu.Unlock()
	w.open()
	w.eventually("it runs", func() bool { engine, _ := w.ids(); return len(engine) == 1 })
	watches = w.topo.watchCount()
	w.topo.breakWatches()
	w.eventually("the old record is read again", func() bool { return w.topo.watchCount() > watches })
	require.True(t, w.engine.IsOpen())
}

// TestRealTopo tests the watch on a real topo server: another primary in the shard record fences, and
// no goroutine is left.
func TestRealTopo(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	w := newWorld(t, untilCancelled)
	ts := memorytopo.NewServer(ctx, "z1")
	require.NoError(t, ts.CreateKeyspace(ctx, "ks", &topodatapb.Keyspace{}))
	require.NoError(t, ts.CreateShard(ctx, "ks", "-80"))
	set := func(alias *topodatapb.TabletAlias) {
		_, err := ts.UpdateShardFields(ctx, "ks", "-80", func(si *topo.ShardInfo) error {
			si.PrimaryAlias = alias
			return nil
		})
		require.NoError(t, err)
	}
	set(thisAlias)
	w.engine.cfg.Topo = ts
	id := w.store.put(pending())
	w.open()
	w.eventuallyState(id, vdiff.StartedState)
	set(otherAlias)
	w.eventually("fenced", func() bool { return !w.engine.IsOpen() })
	set(thisAlias)
	w.eventually("open", w.engine.IsOpen)
	w.engine.Close()
	ts.Close()
}
