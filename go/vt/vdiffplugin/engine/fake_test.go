// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"vitess.io/vitess/go/vt/topo"
	"vitess.io/vitess/go/vt/vttablet/tabletmanager/vdiff"

	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/differ"
	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/sidecar"

	tabletmanagerdatapb "vitess.io/vitess/go/vt/proto/tabletmanagerdata"
	topodatapb "vitess.io/vitess/go/vt/proto/topodata"
	vttimepb "vitess.io/vitess/go/vt/proto/vttime"
)

// deadline bounds every wait of these tests. It is long because machines are busy, and never waited
// for in full when all is well.
const deadline = 60 * time.Second

var (
	thisAlias  = &topodatapb.TabletAlias{Cell: "z1", Uid: 100}
	otherAlias = &topodatapb.TabletAlias{Cell: "z1", Uid: 200}
)

// runnerFunc is a differ.Runner.
type runnerFunc func(ctx context.Context, v *sidecar.VDiff, obs differ.Observer) error

func (f runnerFunc) Run(ctx context.Context, v *sidecar.VDiff, obs differ.Observer) error {
	return f(ctx, v, obs)
}

// untilCancelled is a run that never ends by itself.
func untilCancelled(ctx context.Context, _ *sidecar.VDiff, _ differ.Observer) error {
	<-ctx.Done()
	return ctx.Err()
}

// fakeTopo has one shard record. Watches end like those of a *topo.Server: with an error and a closed
// channel, once their context is done.
type fakeTopo struct {
	mu      sync.Mutex
	record  *topodatapb.Shard
	cells   []string
	watches int
	live    []chan *topo.WatchShardData
	// open replaces WatchShard while it is set.
	open func(n int) (*topo.WatchShardData, <-chan *topo.WatchShardData, error)
}

func (f *fakeTopo) GetCellInfoNames(context.Context) ([]string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.cells, nil
}

func (f *fakeTopo) WatchShard(ctx context.Context, _, _ string) (*topo.WatchShardData, <-chan *topo.WatchShardData, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.watches++
	if f.open != nil {
		return f.open(f.watches)
	}
	c := make(chan *topo.WatchShardData, 100)
	f.live = append(f.live, c)
	context.AfterFunc(ctx, func() { f.close(c) })
	return &topo.WatchShardData{Value: f.record}, c, nil
}

func (f *fakeTopo) close(c chan *topo.WatchShardData) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i, live := range f.live {
		if live == c {
			f.live = append(f.live[:i], f.live[i+1:]...)
			close(c)
			return
		}
	}
}

// breakWatches closes the channels of all watches.
func (f *fakeTopo) breakWatches() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range f.live {
		close(c)
	}
	f.live = nil
}

// send sends an event to all watches.
func (f *fakeTopo) send(event *topo.WatchShardData) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range f.live {
		c <- event
	}
}

// setPrimary changes the shard record.
func (f *fakeTopo) setPrimary(alias *topodatapb.TabletAlias, term int64) {
	record := &topodatapb.Shard{PrimaryAlias: alias}
	if term > 0 {
		record.PrimaryTermStartTime = &vttimepb.Time{Seconds: term}
	}
	f.mu.Lock()
	f.record = record
	f.mu.Unlock()
	f.send(&topo.WatchShardData{Value: record})
}

func (f *fakeTopo) watchCount() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.watches
}

// world is an engine with everything around it.
type world struct {
	t      *testing.T
	store  *memStore
	topo   *fakeTopo
	cfg    Config
	engine *Engine

	mu   sync.Mutex
	term int64 // of this tablet as primary
}

// newWorld makes a closed engine whose pauses are short. run is what runs vdiffs. At the end of the
// test it closes the engine and checks that no goroutine and no metric is left.
func newWorld(t *testing.T, run runnerFunc, change ...func(*Config)) *world {
	t.Helper()
	ignore := goleak.IgnoreCurrent()
	w := &world{
		t:     t,
		store: newMemStore(),
		topo:  &fakeTopo{record: &topodatapb.Shard{PrimaryAlias: thisAlias}, cells: []string{"z2", "z1"}},
	}
	w.cfg = Config{
		Tablet: func() *topodatapb.Tablet {
			w.mu.Lock()
			defer w.mu.Unlock()
			tablet := &topodatapb.Tablet{Alias: thisAlias, Keyspace: "ks", Shard: "-80"}
			if w.term > 0 {
				tablet.PrimaryTermStartTime = &vttimepb.Time{Seconds: w.term}
			}
			return tablet
		},
		Store:           w.store,
		Runner:          run,
		Topo:            w.topo,
		MaxRetries:      3,
		RetryInterval:   time.Millisecond,
		RetryBackoffMax: 4 * time.Millisecond,
		OpenBackoff:     time.Millisecond,
		OpenBackoffMax:  4 * time.Millisecond,
		WatchBackoff:    time.Millisecond,
		WatchBackoffMax: 4 * time.Millisecond,
		WriteBackoff:    time.Millisecond,
		WriteBackoffMax: 4 * time.Millisecond,
		StopWait:        deadline,
		CloseWait:       deadline,
		FirstOpenWait:   deadline,
	}
	for _, f := range change {
		f(&w.cfg)
	}
	w.engine = New(w.cfg)
	t.Cleanup(func() {
		w.engine.Close()
		w.requireNoControllers()
		goleak.VerifyNone(t, ignore)
	})
	return w
}

// completing returns a run that completes its tables (t1, of 10 rows) at once.
func (w *world) completing() runnerFunc {
	return func(_ context.Context, v *sidecar.VDiff, obs differ.Observer) error {
		obs.RowsCompared("t1", 10)
		w.store.setTable(v.ID, "t1", vdiff.CompletedState, 10)
		return nil
	}
}

// open opens the engine and waits until it is.
func (w *world) open() {
	w.t.Helper()
	w.engine.Open(context.Background())
	w.eventually("the engine is open", w.engine.IsOpen)
}

func (w *world) eventually(what string, ok func() bool) {
	w.t.Helper()
	require.Eventually(w.t, ok, deadline, time.Millisecond, what)
}

func (w *world) eventuallyState(id int64, want vdiff.VDiffState) {
	w.t.Helper()
	w.eventually("vdiff is "+string(want), func() bool { return w.store.state(id) == want })
}

// ids returns the ids of the controllers as the engine and as the metrics have them, at one moment.
func (w *world) ids() (engine, metrics map[int64]*controller) {
	w.engine.mu.Lock()
	defer w.engine.mu.Unlock()
	globalStats.mu.Lock()
	defer globalStats.mu.Unlock()
	engine, metrics = make(map[int64]*controller), make(map[int64]*controller)
	for id, ct := range w.engine.controllers {
		engine[id] = ct
	}
	for id, ct := range globalStats.controllers[w.engine] {
		metrics[id] = ct
	}
	return engine, metrics
}

func (w *world) requireNoControllers() {
	w.t.Helper()
	engine, metrics := w.ids()
	require.Empty(w.t, engine, "controllers of the engine")
	require.Empty(w.t, metrics, "controllers of the metrics")
}

// do performs an action.
func (w *world) do(req *tabletmanagerdatapb.VDiffRequest) (*tabletmanagerdatapb.VDiffResponse, error) {
	ctx, cancel := context.WithTimeout(context.Background(), deadline)
	defer cancel()
	return w.engine.PerformVDiffAction(ctx, req)
}

func (w *world) act(action vdiff.VDiffAction, uuid string) error {
	req := &tabletmanagerdatapb.VDiffRequest{Action: string(action), Keyspace: "ks", Workflow: "wf", VdiffUuid: uuid, ActionArg: uuid}
	_, err := w.do(req)
	return err
}

// pending is a vdiff that is to be run.
func pending() sidecar.VDiff { return sidecar.VDiff{State: vdiff.PendingState} }

// retried is a vdiff that is to be run and retried.
func retried() sidecar.VDiff {
	v := pending()
	v.Options = &tabletmanagerdatapb.VDiffOptions{CoreOptions: &tabletmanagerdatapb.VDiffCoreOptions{AutoRetry: true}}
	return v
}
