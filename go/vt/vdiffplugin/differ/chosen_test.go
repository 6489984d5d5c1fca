// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package differ

import (
	"context"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"vitess.io/vitess/go/mysql/collations"
	"vitess.io/vitess/go/sqltypes"
	"vitess.io/vitess/go/vt/sqlparser"

	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/plan"
	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/rowdiff"
	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/scan"

	binlogdatapb "vitess.io/vitess/go/vt/proto/binlogdata"
	querypb "vitess.io/vitess/go/vt/proto/query"
)

// batches is a source of rows (id, s), a batch for each text; "-" is NULL.
type batches []string

func (b *batches) Next(context.Context) (*scan.Batch, error) {
	if len(*b) == 0 {
		return nil, io.EOF
	}
	var rows []*querypb.Row
	for i, s := range strings.Split((*b)[0], ",") {
		value := sqltypes.NewVarChar(s)
		if s == "-" {
			value = sqltypes.NULL
		}
		rows = append(rows, sqltypes.RowToProto3([]sqltypes.Value{sqltypes.NewInt64(int64(i)), value}))
	}
	*b = (*b)[1:]
	return scan.NewBatch(2, rows), nil
}

// TestChosen tests that rows of either side are chosen by VReplication's comparison of the source's text, where MySQL's is another: a
// row 'x ' is replicated under s <> 'x', so that its loss has to be seen, and a row 'X' is not, whatever the target's collation is.
func TestChosen(t *testing.T) {
	env := collations.MySQL8()
	table := func(collation string) *plan.TableSchema {
		id := plan.ColumnSchema{Name: "id", ColumnType: plan.ColumnType{Type: sqltypes.Int64, ColumnType: "bigint"}}
		s := plan.ColumnSchema{Name: "s", ColumnType: plan.ColumnType{
			Type: sqltypes.VarChar, ColumnType: "varchar(9)", Charset: "utf8mb4", Collation: env.LookupByName(collation), Nullable: true,
		}}
		return &plan.TableSchema{Name: "t", Columns: []plan.ColumnSchema{id, s}, Key: []string{"id"}, KeyUnique: true, Unique: []plan.UniqueIndex{{Name: "PRIMARY", Columns: []string{"id"}}}}
	}
	fields := func(collation string) []*querypb.Field {
		return []*querypb.Field{{Name: "id", Type: sqltypes.Int64}, {Name: "s", Type: sqltypes.VarChar, Charset: uint32(env.LookupByName(collation))}}
	}
	built, err := plan.Build(plan.Input{
		Rule: &binlogdatapb.Rule{Match: "t", Filter: "select * from t where s <> 'x'"}, Source: table("utf8mb4_general_ci"), Target: table("utf8mb4_bin"),
		SourceShards: 1, Parser: sqlparser.NewTestParser(), Collations: env,
	})
	require.NoError(t, err)
	require.Nil(t, built.Digest, "MySQL would choose other rows")

	read := func(rows rowdiff.Source) (got []string) {
		for {
			b, err := rows.Next(t.Context())
			if err == io.EOF {
				return got
			}
			require.NoError(t, err)
			for i := range b.Len() {
				s, ok := b.Row(i).Value(1)
				require.True(t, ok)
				got = append(got, string(s))
			}
			b.Release()
		}
	}
	rows := func() *batches { return &batches{"x,X", "x ,x,a,-,b", "-", "c,X "} }
	want := []string{"x ", "a", "b", "c", "X "}
	source := fields("utf8mb4_general_ci")
	assert.Equal(t, want, read(choose(rows(), built, built.SourceConditions, source, source)))
	assert.Equal(t, want, read(choose(rows(), built, built.TargetConditions, fields("utf8mb4_bin"), source)))
	all := rows()
	assert.Same(t, all, choose(all, built, nil, source, source), "the common path is as short as it was")

	// The rule selects id alone: the text arrives to be judged, and no comparison sees it.
	unselected, err := plan.Build(plan.Input{
		Rule: &binlogdatapb.Rule{Match: "t", Filter: "select id from t where s <> 'x'"}, Source: table("utf8mb4_general_ci"),
		Target:       &plan.TableSchema{Name: "t", Columns: table("utf8mb4_bin").Columns[:1], Key: []string{"id"}, KeyUnique: true, Unique: []plan.UniqueIndex{{Name: "PRIMARY", Columns: []string{"id"}}}},
		SourceShards: 1, Parser: sqlparser.NewTestParser(), Collations: env,
	})
	require.NoError(t, err)
	b, err := choose(rows(), unselected, unselected.SourceConditions, source, source).Next(t.Context())
	require.NoError(t, err)
	require.Equal(t, 3, b.Len())
	for i, id := range []string{"0", "2", "4"} {
		assert.Equal(t, scan.Row{Lengths: []int32{1}, Values: []byte(id)}, b.Row(i))
	}
	b.Release()

	unknown := []*querypb.Field{source[0], {Name: "s", Type: sqltypes.VarChar}}
	_, err = choose(rows(), built, built.SourceConditions, unknown, unknown).Next(t.Context())
	assert.ErrorContains(t, err, "table t: VReplication cannot put its condition s != 'x' to a row")
}
