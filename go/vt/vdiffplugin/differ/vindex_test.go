// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package differ

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"vitess.io/vitess/go/vt/topo"
	"vitess.io/vitess/go/vt/topo/memorytopo"
	"vitess.io/vitess/go/vt/vtenv"

	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/plan"
	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/scan"

	topodatapb "vitess.io/vitess/go/vt/proto/topodata"
	vschemapb "vitess.io/vitess/go/vt/proto/vschema"
)

// Tests where the vindex of an in_keyrange condition is found: by its name in any keyspace, by its type, and through
// the source's table; and the conditions that are left to the row way.
func TestVindexFilter(t *testing.T) {
	ts := memorytopo.NewServer(t.Context(), "zone1")
	defer ts.Close()
	save := func(keyspace string, vschema *vschemapb.Keyspace) {
		require.NoError(t, ts.CreateKeyspace(t.Context(), keyspace, &topodatapb.Keyspace{}))
		require.NoError(t, ts.SaveVSchema(t.Context(), &topo.KeyspaceVSchemaInfo{Name: keyspace, Keyspace: vschema}))
	}
	save("src", &vschemapb.Keyspace{
		Sharded: true,
		Vindexes: map[string]*vschemapb.Vindex{
			"h": {Type: "hash"}, "both": {Type: "xxhash"}, "lookup": {Type: "lookup_unique", Params: map[string]string{"table": "l", "from": "a", "to": "b"}},
		},
		Tables: map[string]*vschemapb.Table{"t": {ColumnVindexes: []*vschemapb.ColumnVindex{{Column: "b", Name: "h"}}}, "u": {ColumnVindexes: []*vschemapb.ColumnVindex{{Column: "z", Name: "h"}}}},
	})
	save("dst", &vschemapb.Keyspace{Sharded: true, Vindexes: map[string]*vschemapb.Vindex{
		"both": {Type: "hash"}, "cfc": {Type: "cfc", Params: map[string]string{"offsets": "[1]"}},
	}})
	r := &run{Config: Config{Env: vtenv.NewTestEnv()}, sourceTopo: ts, sourceKeyspace: "src"}
	table := &plan.Table{Name: "t", SourceName: "t", Columns: []plan.Column{{Name: "a", SourceName: "a"}, {Name: "x", SourceName: "b"}}}
	f := func(in plan.InKeyRange, want scan.VindexFilter) {
		t.Helper()
		got, err := r.newVindexFinder(t.Context()).filter(table, &in)
		require.NoError(t, err)
		assert.Equal(t, want.Type, got.Type)
		assert.Equal(t, want.Params, got.Params)
		assert.Equal(t, want.Columns, got.Columns)
		assert.Equal(t, "-80", got.KeyRange)
	}
	f(plan.InKeyRange{Columns: []int{0}, Vindex: "src.h", KeyRange: "-80"}, scan.VindexFilter{Type: "hash", Columns: []int{0}})
	f(plan.InKeyRange{Columns: []int{0}, Vindex: "h", KeyRange: "-80"}, scan.VindexFilter{Type: "hash", Columns: []int{0}})
	f(plan.InKeyRange{Columns: []int{1}, Vindex: "dst.cfc", KeyRange: "-80"}, scan.VindexFilter{Type: "cfc", Params: map[string]string{"offsets": "[1]"}, Columns: []int{1}})
	f(plan.InKeyRange{Columns: []int{0}, Vindex: "unicode_loose_md5", KeyRange: "-80"}, scan.VindexFilter{Type: "unicode_loose_md5", Columns: []int{0}})
	f(plan.InKeyRange{KeyRange: "-80"}, scan.VindexFilter{Type: "hash", Columns: []int{1}})

	not := func(in plan.InKeyRange, table *plan.Table, why string) {
		t.Helper()
		_, err := r.newVindexFinder(t.Context()).filter(table, &in)
		require.ErrorContains(t, err, why)
	}
	not(plan.InKeyRange{Vindex: "src.none"}, table, "no vindex none")
	not(plan.InKeyRange{Vindex: "both"}, table, "several keyspaces")
	not(plan.InKeyRange{Vindex: "src.lookup"}, table, "not a function of the row alone")
	not(plan.InKeyRange{Vindex: "nonsense"}, table, "nonsense")
	not(plan.InKeyRange{}, &plan.Table{SourceName: "u"}, "column z, which is not compared")
	not(plan.InKeyRange{}, &plan.Table{SourceName: "v"}, "no table v")
}
