// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package differ

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"vitess.io/vitess/go/vt/topo"

	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/sidecar"
	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/verify"

	tabletmanagerdatapb "vitess.io/vitess/go/vt/proto/tabletmanagerdata"
	topodatapb "vitess.io/vitess/go/vt/proto/topodata"
)

// Tests that a panic while the machine is asked is an error, and leaves no lock for which the other workers would wait.
func TestPanicOfTheMachine(t *testing.T) {
	d, _ := streamedDigests(t, &streamedSides{})
	d.machine = nil // whatever is called panics
	for name, call := range map[string]func() error{
		"next":   func() error { _, _, err := d.next(t.Context()); return err },
		"tell":   func() error { d.tell(make([]verify.Task, 1), make([]verify.Outcome, 1)); return nil },
		"failed": func() error { d.countFailed(make([]verify.Task, 1)); return nil },
	} {
		require.ErrorContains(t, contained(call)(), "panic", name)
		require.True(t, d.mu.TryLock(), name)
		d.mu.Unlock()
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
