// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"
	"expvar"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"vitess.io/vitess/go/vt/vttablet/tabletmanager/vdiff"

	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/differ"
	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/sidecar"

	tabletmanagerdatapb "vitess.io/vitess/go/vt/proto/tabletmanagerdata"
)

// TestMetricsArePublished tests that every metric is published under the name that the documentation
// has, and that several engines in one process share them.
func TestMetricsArePublished(t *testing.T) {
	newWorld(t, untilCancelled)
	newWorld(t, untilCancelled)
	for _, name := range []string{
		"Count", "ErrorCountTotal", "RestartedTableDiffsCount", "RowsComparedTotal", "RowsCompared", "Errors", "PhaseTimings",
		"HeldUpTime", "NilEvents", "WatchErrors", "OpenRetries", "Panics", "State",
	} {
		require.NotNil(t, expvar.Get("VDiffPlugin"+name), name)
	}
}

// TestMetricsOfVDiffs tests what the metrics say of vdiffs: rows as the record has them plus those of the
// run, each once (case 28), errors of all runs, timings and what is waited for; with as many labels as are
// declared, also when names have dots.
func TestMetricsOfVDiffs(t *testing.T) {
	w := newWorld(t, nil)
	hold := make(chan struct{})
	w.engine.cfg.Runner = runnerFunc(func(ctx context.Context, v *sidecar.VDiff, obs differ.Observer) error {
		if v.Workflow == "bad" {
			return sidecar.AsPermanent(errors.New("table a.b: no such column x.y"))
		}
		obs.RowsCompared("t.1", 20000)
		obs.RowsCompared("t.1", 9000)
		obs.TableAt("t2", 0)
		obs.RowsCompared("t2", 5)
		obs.Phase("t.1", "compare", 2*time.Second)
		obs.Phase("t.1", "compare", time.Second)
		obs.TableRestarted("t.1")
		obs.Waiting("the lock of workflow ks/w.f")
		select {
		case <-hold:
		case <-ctx.Done():
			return ctx.Err()
		}
		w.store.setTable(v.ID, "t.1", vdiff.CompletedState, 30000)
		w.store.setTable(v.ID, "t2", vdiff.CompletedState, 5)
		return nil
	})
	id := w.store.put(sidecar.VDiff{State: vdiff.StartedState, Workflow: "w.f", Keyspace: "ks"},
		sidecar.Table{Name: "t.1", RowsCompared: 1000, State: vdiff.StartedState, LastPK: []byte("key")},
		sidecar.Table{Name: "t2", RowsCompared: 777, State: vdiff.StartedState}, // without a key: compared from its first row
		sidecar.Table{Name: "t3", RowsCompared: 3, State: vdiff.CompletedState})
	bad := w.store.put(sidecar.VDiff{State: vdiff.PendingState, Workflow: "bad", Keyspace: "ks"})
	uuid, badUUID := w.store.get(id).UUID, w.store.get(bad).UUID
	failed := globalStats.errors.Get()
	total, restarted := globalStats.rowsCompared.Get(), globalStats.restartedTables.Counts()["t.1"]
	w.open()
	w.eventually("it waits", func() bool { return strings.Contains(globalStats.states()["w_f."+uuid], "waiting") })
	w.eventuallyState(bad, vdiff.ErrorState)

	require.Equal(t, int64(2), globalStats.count())
	require.Equal(t, map[string]int64{"w_f." + uuid + ".t_1": 30000, "w_f." + uuid + ".t2": 5, "w_f." + uuid + ".t3": 3}, globalStats.rowsByTable())
	require.Equal(t, total+29005, globalStats.rowsCompared.Get())
	require.Equal(t, map[string]int64{"w_f." + uuid + ".t_1.compare": 3e9}, globalStats.phaseTimings())
	require.Equal(t, map[string]int64{"bad." + badUUID + ".table a_b: no such column x_y": 1}, globalStats.errorsByText())
	require.Equal(t, "started, waiting for the lock of workflow ks/w.f", globalStats.states()["w_f."+uuid])
	w.eventually("the error is shown", func() bool { return globalStats.states()["bad."+badUUID] == "error" })
	require.Equal(t, restarted+1, globalStats.restartedTables.Counts()["t.1"], "one label: nothing to tell apart")

	live := w.engine.LiveVDiffs()
	require.Len(t, live, 2)
	require.Equal(t, "bad", live[0].Workflow)
	require.Contains(t, live[0].LastError, "no such column")
	require.Equal(t, int64(30008), live[1].RowsCompared)

	require.Equal(t, failed+1, globalStats.errors.Get())
	_, err := w.do(&tabletmanagerdatapb.VDiffRequest{Action: "resume", Keyspace: "ks", Workflow: "bad", VdiffUuid: badUUID})
	require.NoError(t, err)
	w.eventually("the second error is counted", func() bool {
		return globalStats.errorsByText()["bad."+badUUID+".table a_b: no such column x_y"] == 2
	})
	require.Equal(t, failed+2, globalStats.errors.Get())

	close(hold)
	w.eventually("completed", func() bool { return globalStats.states()["w_f."+uuid] == "completed" })
	require.Equal(t, int64(30000), globalStats.rowsByTable()["w_f."+uuid+".t_1"], "kept until it is deleted or the engine closes")
	w.engine.Close()
	require.Empty(t, globalStats.rowsByTable())
	require.Empty(t, globalStats.states())
}

// TestManyErrors tests that a vdiff that fails for ever in other words does not grow its metrics for ever.
func TestManyErrors(t *testing.T) {
	var m metrics
	m.init(vdiff.PendingState)
	for i := range 1000 {
		m.addError(strings.Repeat("é", i))
	}
	require.LessOrEqual(t, len(m.errors), maxErrorLabels)
	for text := range m.errors {
		require.LessOrEqual(t, len(text), maxErrorLabel)
	}
}

// TestSlots tests that a slot has one holder at a time, is waited for with a context, and that slots of
// other vdiffs are free meanwhile.
func TestSlots(t *testing.T) {
	var s slots
	ctx := context.Background()
	release, err := s.take(ctx, "a")
	require.NoError(t, err)
	_, ok := s.try("a")
	require.False(t, ok)
	other, ok := s.try("b")
	require.True(t, ok)
	other()

	short, cancel := context.WithTimeout(ctx, time.Millisecond)
	defer cancel()
	_, err = s.take(short, "a")
	require.ErrorIs(t, err, context.DeadlineExceeded)

	held, most := 0, 0
	done := make(chan struct{})
	for range 10 {
		go func() {
			defer func() { done <- struct{}{} }()
			free, err := s.take(ctx, "a")
			if err != nil {
				t.Error(err)
				return
			}
			held++ // guarded by the slot
			most = max(most, held)
			held--
			free()
		}()
	}
	release()
	for range 10 {
		<-done
	}
	require.Equal(t, 1, most)
	require.Empty(t, s.held)
}
