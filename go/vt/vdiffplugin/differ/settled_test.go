// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package differ

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"vitess.io/vitess/go/vt/vttablet/tabletmanager/vdiff"

	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/sidecar"

	binlogdatapb "vitess.io/vitess/go/vt/proto/binlogdata"
)

// Tests what is made of two sides that do not fit together when a vdiff begins, in which no table was compared before: they are looked at once
// more when the streams have come to where the sources stood. What was different only for a moment is no error, what
// may pass is one that is tried again, and only what a second look confirms is permanent.
func TestSettled(t *testing.T) {
	behind := strings.Replace(sourceGTIDs, "1-10", "1-9", 1)
	f := func(name string, wantErr string, want sidecar.Class, change func(r *run, store *recordStore, c *schemaClient)) {
		t.Helper()
		r, store := runOfTable(t, []string{"id"}, []string{"id", "x1"})
		r.v.Options.CoreOptions.TimeoutSeconds = 1
		for _, table := range []string{"t", "other"} {
			store.tables = append(store.tables, &sidecar.Table{Name: table, State: vdiff.PendingState})
		}
		c := r.tmc.(*schemaClient)
		change(r, store, c)
		jobs, failed, err := r.plan(t.Context())
		require.NoError(t, err, name)
		if wantErr == "" {
			assert.Empty(t, failed, name)
			assert.Len(t, jobs, 2, name)
			return
		}
		assert.Len(t, jobs, 1, name)
		require.Len(t, failed, 1, name)
		assert.Equal(t, "t", failed[0].table, name)
		assert.ErrorContains(t, failed[0].err, wantErr, name)
		class, _ := sidecar.ClassOf(failed[0].err)
		assert.Equal(t, want, class, name)
	}
	const lacks = "columns that the target table does not have"
	f("they stay so", lacks, sidecar.Permanent, func(*run, *recordStore, *schemaClient) {})
	f("added on the target first, between the two looks", "", "", func(_ *run, _ *recordStore, c *schemaClient) {
		c.looked = func() { c.columns["0"]["t"] = []string{"id", "x1"} }
	})
	f("dropped on the source first", "", "", func(_ *run, _ *recordStore, c *schemaClient) {
		c.looked = func() { c.columns["-80"]["t"] = []string{"id"} }
	})
	f("by the streams, when they come to it", "", "", func(_ *run, store *recordStore, c *schemaClient) {
		store.streams[0].Pos = behind
		store.reads = func(n int) {
			if n == 3 {
				store.streams[0].Pos = sourceGTIDs
				c.columns["0"]["t"] = []string{"id", "x1"}
			}
		}
	})
	f("the streams do not come to it", lacks, sidecar.Transient, func(_ *run, store *recordStore, _ *schemaClient) {
		store.streams[0].Pos = behind
	})
	f("the streams stand still", lacks, sidecar.Transient, func(r *run, store *recordStore, _ *schemaClient) {
		r.v.Options.CoreOptions.TimeoutSeconds = 3600
		store.streams[0].Pos, store.streams[0].State = behind, "Stopped"
	})
	f("there is no stream any more", lacks, sidecar.Transient, func(_ *run, store *recordStore, _ *schemaClient) {
		store.streams = nil
	})
	f("another change of it", "x2", sidecar.Transient, func(_ *run, _ *recordStore, c *schemaClient) {
		c.looked = func() { c.columns["0"]["t"], c.columns["-80"]["t"] = []string{"id", "x1"}, []string{"id", "x1", "x2"} }
	})
	f("it is missing", "the target does not have it", sidecar.Permanent, func(r *run, _ *recordStore, c *schemaClient) {
		delete(c.columns["0"], "t")
	})
	f("it was missing for a moment", "", "", func(r *run, _ *recordStore, c *schemaClient) {
		delete(c.columns["0"], "t")
		c.looked = func() { c.columns["0"]["t"] = []string{"id", "x1"} }
	})
	f("it is missing since", "the target does not have it", sidecar.Transient, func(r *run, _ *recordStore, c *schemaClient) {
		r.filter.Rules[1] = &binlogdatapb.Rule{Match: "other"}
		c.looked = func() { delete(c.columns["0"], "t") }
	})
}
