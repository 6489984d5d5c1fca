// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package differ

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"vitess.io/vitess/go/sqltypes"
	"vitess.io/vitess/go/vt/topo"
	"vitess.io/vitess/go/vt/topo/memorytopo"
	"vitess.io/vitess/go/vt/vtenv"
	"vitess.io/vitess/go/vt/vttablet/tmclient"

	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/plan"
	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/sidecar"

	querypb "vitess.io/vitess/go/vt/proto/query"
	tabletmanagerdatapb "vitess.io/vitess/go/vt/proto/tabletmanagerdata"
	topodatapb "vitess.io/vitess/go/vt/proto/topodata"
)

// schemaClient answers for tablets whose tables t and u have the given columns, all of type int.
type schemaClient struct {
	tmclient.TabletManagerClient
	columns map[string]map[string][]string // by shard and table
	looked  func()                         // called when the position of a source is asked for, if set
}

// sourceGTIDs is what the sources of a schemaClient have executed.
const sourceGTIDs = "MySQL56/3e11fa47-71ca-11e1-9e33-c80aa9429562:1-10"

func (c *schemaClient) PrimaryPosition(context.Context, *topodatapb.Tablet) (string, error) {
	if c.looked != nil {
		c.looked()
	}
	return sourceGTIDs, nil
}

func (c *schemaClient) GetSchema(_ context.Context, tablet *topodatapb.Tablet, _ *tabletmanagerdatapb.GetSchemaRequest) (*tabletmanagerdatapb.SchemaDefinition, error) {
	def := &tabletmanagerdatapb.SchemaDefinition{}
	for table, columns := range c.columns[tablet.Shard] {
		td := &tabletmanagerdatapb.TableDefinition{Name: table, PrimaryKeyColumns: columns[:1]}
		for _, name := range columns {
			td.Fields = append(td.Fields, &querypb.Field{Name: name, Type: sqltypes.Int32})
		}
		def.TableDefinitions = append(def.TableDefinitions, td)
	}
	return def, nil
}

func (c *schemaClient) ExecuteFetchAsApp(_ context.Context, tablet *topodatapb.Tablet, _ bool, req *tabletmanagerdatapb.ExecuteFetchAsAppRequest) (*querypb.QueryResult, error) {
	var rows []string
	if strings.Contains(string(req.Query), "information_schema.tables") {
		for table := range c.columns[tablet.Shard] {
			rows = append(rows, table+"||")
		}
	}
	if strings.Contains(string(req.Query), "information_schema.columns") {
		for table, columns := range c.columns[tablet.Shard] {
			for _, name := range columns {
				rows = append(rows, table+"|"+name+"|int")
			}
		}
	}
	return sqltypes.ResultToProto3(sqltypes.MakeTestResult(sqltypes.MakeTestFields("table_name|column_name|column_type", "varchar|varchar|varchar"), rows...)), nil
}

// topoOfShards is a topo with the given shards of keyspace ks, of which tablet i+1 is the primary.
func topoOfShards(t *testing.T, shards ...string) *topo.Server {
	t.Helper()
	ctx := t.Context()
	ts := memorytopo.NewServer(ctx, "a")
	t.Cleanup(ts.Close)
	require.NoError(t, ts.CreateKeyspace(ctx, "ks", &topodatapb.Keyspace{}))
	for i, shard := range shards {
		alias := &topodatapb.TabletAlias{Cell: "a", Uid: uint32(i + 1)}
		require.NoError(t, ts.CreateShard(ctx, "ks", shard))
		require.NoError(t, ts.CreateTablet(ctx, &topodatapb.Tablet{Alias: alias, Keyspace: "ks", Shard: shard}))
		_, err := ts.UpdateShardFields(ctx, "ks", shard, func(si *topo.ShardInfo) error {
			si.PrimaryAlias = alias
			return nil
		})
		require.NoError(t, err)
	}
	return ts
}

// Tests that the schema of every source shard is looked at: a table that has a column more on one of them gets an error that is tried
// again and says where, whichever shard comes first, and the other tables get none.
func TestSourceSchemas(t *testing.T) {
	ctx := t.Context()
	ts := topoOfShards(t, "-80", "80-")
	narrow := map[string][]string{"t": {"id", "v"}, "u": {"id"}}
	wide := map[string][]string{"t": {"id", "v", "c"}, "u": {"id"}}
	f := func(first, second map[string][]string, want string) {
		t.Helper()
		r := &run{
			Config: Config{Env: vtenv.NewTestEnv()}, sourceTopo: ts, sourceKeyspace: "ks", shards: []source{{1, "-80"}, {2, "80-"}, {3, "80-"}},
			tmc: &schemaClient{columns: map[string]map[string][]string{"-80": first, "80-": second}},
		}
		s, err := r.sourceSchemas(ctx, []plan.Selection{{SourceName: "t"}, {SourceName: "u"}})
		require.NoError(t, err)
		assert.Equal(t, []string{"-80", "80-"}, s.names)
		require.NoError(t, s.unlike("u"))
		require.NoError(t, s.unlike("nowhere"))
		if want == "" {
			require.NoError(t, s.unlike("t"))
			return
		}
		err = s.unlike("t")
		require.ErrorContains(t, err, want)
		class, _ := sidecar.ClassOf(err)
		assert.Equal(t, sidecar.Transient, class)
	}
	f(wide, wide, "")
	f(narrow, wide, "source table t is not the same on the source shards -80 and 80-: only one of them has column c")
	f(wide, narrow, "only one of them has column c")
	f(wide, map[string][]string{"u": {"id"}}, "only one of them has the table")
}
