// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package differ

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"vitess.io/vitess/go/vt/topo"

	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/sidecar"
	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/verify"

	tabletmanagerdatapb "vitess.io/vitess/go/vt/proto/tabletmanagerdata"
	topodatapb "vitess.io/vitess/go/vt/proto/topodata"
)

// Tests that a panic while the machine is asked is an error of the run, and that no worker waits for a lock that the panic has left.
func TestPanicOfTheMachine(t *testing.T) {
	d, _ := streamedDigests(t, &streamedSides{})
	d.machine = nil // whatever is called panics
	g, ctx := errgroup.WithContext(t.Context())
	for range 2 {
		g.Go(contained(func() error { return d.worker(ctx) }))
	}
	g.Go(contained(func() error { d.tell(nil, nil); _ = d.countFailed(make([]verify.Task, 1)); return nil }))
	ended := make(chan error, 1)
	go func() { ended <- g.Wait() }()
	select {
	case err := <-ended:
		require.ErrorContains(t, err, "panic")
	case <-time.After(time.Minute):
		t.Fatal("a worker waits for ever")
	}
}

// Tests a workflow that was deleted and created anew while its vdiff ran: its streams have other ids, and the vdiff is tried again.
func TestStreamsOfAnotherWorkflow(t *testing.T) {
	r := &run{
		v:      &sidecar.VDiff{Workflow: "w", Options: &tabletmanagerdatapb.VDiffOptions{CoreOptions: &tabletmanagerdatapb.VDiffCoreOptions{}}},
		shards: []source{{streamID: 1, shard: "0"}}, sourceTopo: &topo.Server{}, obs: silentObserver{},
	}
	picked := &tablets{sources: map[int32]*topodatapb.Tablet{1: {Alias: &topodatapb.TabletAlias{Cell: "a", Uid: 1}}}}
	err := r.waitForSources(t.Context(), []*sidecar.Stream{{ID: 2, Workflow: "w", Pos: gtids + "5"}}, picked)
	require.ErrorContains(t, err, "the streams of workflow w changed")
	class, _ := sidecar.ClassOf(err)
	assert.Equal(t, sidecar.Transient, class)
}
