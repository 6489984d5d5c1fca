// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package differ

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/plan"
	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/sidecar"
	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/verify"

	tabletmanagerdatapb "vitess.io/vitess/go/vt/proto/tabletmanagerdata"
)

// Tests that what is equal of a table whose events are not idempotent is no proof while its workflow runs: the machine is told, buckets
// of a multiset are left for the fence, and a table whose rows move from key to key is compared as a whole.
func TestProof(t *testing.T) {
	f := func(proof plan.Proof, same bool, wantDone, wantRows bool, wantBuckets int) {
		t.Helper()
		r := &run{v: &sidecar.VDiff{Options: &tabletmanagerdatapb.VDiffOptions{CoreOptions: &tabletmanagerdatapb.VDiffCoreOptions{}}}}
		job := r.newJob(&plan.Table{Name: "t", Digest: &plan.Digest{Proof: proof}}, &sidecar.Table{Name: "t"})
		table := &digestTable{job: job, id: "t"}
		d := &digests{r: r, machine: verify.New(verify.Config{Tries: 1}), tables: map[verify.TableID]*digestTable{"t": table}}
		require.NoError(t, d.machine.Add(table.forMachine()))
		tasks := d.machine.Next(0)
		require.Len(t, tasks, 1)
		d.machine.Compared(tasks[0].ID, verify.Outcome{Equal: true, SamePosition: same}, 0)
		require.True(t, d.machine.Finished("t"))
		assert.Equal(t, wantDone, d.machine.Stats("t").Verified == buckets)
		left, rows := d.left()
		assert.Equal(t, wantRows, len(rows) == 1)
		if !wantRows {
			require.Len(t, left, 1)
			assert.Len(t, left[0].buckets.Wanted, wantBuckets)
		}
	}
	f(plan.ProofAnyTime, false, true, false, 0)
	f(plan.ProofSamePosition, false, false, false, buckets)
	f(plan.ProofSamePosition, true, true, false, 0)
	f(plan.ProofAtOnce, false, false, true, 0)
}

// Tests that a table whose rows move from key to key has no checkpoints, and that one of its record, made by whomever, is not used.
func TestKeyMoves(t *testing.T) {
	r := &run{v: &sidecar.VDiff{Options: &tabletmanagerdatapb.VDiffOptions{CoreOptions: &tabletmanagerdatapb.VDiffCoreOptions{}}}}
	table := &plan.Table{Name: "t", Ordered: true, KeyUnique: true, Mergeable: true, KeyMoves: true}
	j := r.newJob(table, &sidecar.Table{Name: "t", LastPK: []byte("x"), RowsCompared: 7, Report: []byte(`{"ProcessedRows": 7, "MatchingRows": 7}`)})
	assert.False(t, j.checkpoints())
	assert.Nil(t, j.lastPK)
	assert.Zero(t, j.processed())
}
