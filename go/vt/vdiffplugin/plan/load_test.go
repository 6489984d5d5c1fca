// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package plan

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"vitess.io/vitess/go/mysql/collations"
	"vitess.io/vitess/go/sqltypes"

	querypb "vitess.io/vitess/go/vt/proto/query"
	tabletmanagerdatapb "vitess.io/vitess/go/vt/proto/tabletmanagerdata"
	topodatapb "vitess.io/vitess/go/vt/proto/topodata"
)

// fakeTablet answers like a tablet whose database has the given tables.
type fakeTablet struct {
	tables []*tabletmanagerdatapb.TableDefinition
	// columns and indexes are rows of information_schema, in the order of the queries' select lists.
	columns [][]string
	indexes [][]string
	err     error

	schemaCalls, queryCalls int
	asked                   *tabletmanagerdatapb.GetSchemaRequest
}

func (f *fakeTablet) GetSchema(_ context.Context, _ *topodatapb.Tablet, req *tabletmanagerdatapb.GetSchemaRequest) (*tabletmanagerdatapb.SchemaDefinition, error) {
	f.schemaCalls++
	f.asked = req
	return &tabletmanagerdatapb.SchemaDefinition{TableDefinitions: f.tables}, f.err
}

func (f *fakeTablet) ExecuteFetchAsApp(_ context.Context, _ *topodatapb.Tablet, _ bool, req *tabletmanagerdatapb.ExecuteFetchAsAppRequest) (*querypb.QueryResult, error) {
	f.queryCalls++
	query := string(req.Query)
	switch {
	case strings.Contains(query, "type_cost"): // primary key equivalent
		result := sqltypes.MakeTestResult(sqltypes.MakeTestFields("column_name|index_name", "varchar|varchar"))
		if strings.Contains(query, "'pke'") {
			result = sqltypes.MakeTestResult(result.Fields, "b|u", "a|u")
		}
		return sqltypes.ResultToProto3(result), f.err
	case strings.Contains(query, "information_schema.tables"):
		return sqltypes.ResultToProto3(sqltypes.MakeTestResult(sqltypes.MakeTestFields("table_name", "varchar"), "a", "b")), f.err
	case strings.Contains(query, "information_schema.statistics"):
		return rowsOf(query, f.indexes, "table_name", "index_name", "column_name", "sub_part", "nullable", "is_visible"), f.err
	default:
		return rowsOf(query, f.columns, "table_name", "column_name", "column_type", "character_set_name", "collation_name", "is_nullable", "extra", "row_value_options"), f.err
	}
}

// rowsOf returns the rows of the tables that a query names.
func rowsOf(query string, rows [][]string, names ...string) *querypb.QueryResult {
	result := &sqltypes.Result{}
	for _, name := range names {
		result.Fields = append(result.Fields, &querypb.Field{Name: name, Type: sqltypes.VarChar})
	}
	for _, row := range rows {
		if !strings.Contains(query, "'"+row[0]+"'") {
			continue
		}
		values := make([]sqltypes.Value, len(names)) // those that a row does not have are NULL
		for i, text := range row {
			if values[i] = sqltypes.NewVarChar(text); text == "NULL" {
				values[i] = sqltypes.NULL
			}
		}
		result.Rows = append(result.Rows, values)
	}
	return sqltypes.ResultToProto3(result)
}

func definition(name string, primaryKey []string, fields ...string) *tabletmanagerdatapb.TableDefinition {
	td := &tabletmanagerdatapb.TableDefinition{Name: name, PrimaryKeyColumns: primaryKey, RowCount: 42}
	for _, field := range fields {
		column, columnType, _ := strings.Cut(field, " ")
		td.Columns = append(td.Columns, column)
		td.Fields = append(td.Fields, &querypb.Field{Name: column, Type: querypb.Type(querypb.Type_value[columnType])})
	}
	return td
}

var testTablet = &topodatapb.Tablet{Alias: &topodatapb.TabletAlias{Cell: "zone1", Uid: 100}, Keyspace: "ks", Shard: "0"}

// TestLoadSchema tests what is taken from GetSchema and information_schema, whatever the case of names.
func TestLoadSchema(t *testing.T) {
	tablet := &fakeTablet{
		tables: []*tabletmanagerdatapb.TableDefinition{
			definition("pk", []string{"id"}, "id INT64", "e ENUM", "g INT32", "n VARCHAR"),
			definition("gone", nil),
			definition("pke", nil, "a INT32", "b INT32"),
			definition("none", nil, "x TEXT", "y BLOB"),
			definition("bin", []string{"v"}, "v VARBINARY", "c BINARY", "t BLOB", "e BINARY", "s BINARY", "b VARBINARY"),
		},
		columns: [][]string{
			{"pk", "id", "bigint", "NULL", "NULL", "NO", "auto_increment"},
			{"pk", "e", "enum('a')", "latin1", "latin1_swedish_ci", "YES", ""},
			{"pk", "g", "int", "NULL", "NULL", "YES", "VIRTUAL GENERATED INVISIBLE"},
			{"pk", "n", "varchar(9)", "utf8mb4", "utf8mb4_new_ci", "YES", "DEFAULT_GENERATED", "PARTIAL_JSON"},
			{"pke", "a", "int", "NULL", "NULL", "NO", ""},
			{"pke", "b", "int", "NULL", "NULL", "NO", "STORED GENERATED"},
			{"none", "x", "text", "utf8mb4", "utf8mb4_0900_ai_ci", "YES", ""},
			{"none", "y", "blob", "NULL", "NULL", "YES", ""},
			{"bin", "v", "varchar(9)", "utf8mb4", "utf8mb4_bin", "NO", ""},
			{"bin", "c", "char(9)", "utf8mb4", "utf8mb4_bin", "NO", ""},
			{"bin", "t", "text", "utf8mb4", "utf8mb4_bin", "NO", ""},
			{"bin", "e", "enum('a')", "utf8mb4", "utf8mb4_bin", "NO", ""},
			{"bin", "s", "set('a')", "utf8mb4", "utf8mb4_bin", "NO", ""},
			{"bin", "b", "varbinary(9)", "NULL", "NULL", "NO", ""},
		},
		indexes: [][]string{
			{"pk", "PRIMARY", "id", "NULL", ""},
			{"pk", "f", "NULL", "NULL", ""},
			{"pk", "n", "n", "NULL", "YES"},
			{"pk", "p", "id", "NULL", ""},
			{"pk", "p", "n", "5", "", "NO"},
			{"pke", "u", "b", "NULL", ""},
			{"pke", "u", "a", "NULL", ""},
		},
	}
	schema, err := LoadSchema(context.Background(), tablet, testEnv, testTablet, []string{"pk", "gone", "pke", "none", "bin"})
	require.NoError(t, err)
	require.Equal(t, []string{"pk", "gone", "pke", "none", "bin"}, tablet.asked.Tables)
	require.Len(t, schema.Tables, 4)

	pk := schema.Tables["pk"]
	require.Equal(t, []string{"id"}, pk.Key)
	require.True(t, pk.KeyUnique)
	require.Equal(t, int64(42), pk.Rows)
	require.Equal(t, []UniqueIndex{{Name: "PRIMARY", Columns: []string{"id"}}, {Name: "p", Columns: []string{"id", "n"}, Prefix: true, Invisible: true}}, pk.Unique)
	require.True(t, pk.PartialJSON)
	require.False(t, schema.Tables["pke"].PartialJSON)
	require.Equal(t, []ColumnSchema{
		{Name: "id", ColumnType: ColumnType{Type: sqltypes.Int64, ColumnType: "bigint", Collation: collations.CollationBinaryID}, AutoIncrement: true},
		{Name: "e", ColumnType: ColumnType{Type: sqltypes.Enum, ColumnType: "enum('a')", Charset: "latin1", Collation: testEnv.LookupByName("latin1_swedish_ci"), Nullable: true, Stored: StoredText{"latin1", "latin1_swedish_ci"}}},
		{Name: "g", ColumnType: ColumnType{Type: sqltypes.Int32, ColumnType: "int", Collation: collations.CollationBinaryID, Nullable: true}, Generated: true, Invisible: true},
		{Name: "n", ColumnType: ColumnType{Type: sqltypes.VarChar, ColumnType: "varchar(9)", Charset: "utf8mb4", Collation: collations.Unknown, Nullable: true, Stored: StoredText{"utf8mb4", "utf8mb4_new_ci"}}},
	}, pk.Columns)

	require.Equal(t, []string{"b", "a"}, schema.Tables["pke"].Key)
	require.True(t, schema.Tables["pke"].KeyUnique)
	require.True(t, schema.Tables["pke"].Columns[1].Generated)
	require.Equal(t, []string{"x", "y"}, schema.Tables["none"].Key)
	require.False(t, schema.Tables["none"].KeyUnique)

	// Text of a _bin collation is text, although its field says otherwise.
	var types []querypb.Type
	for _, column := range schema.Tables["bin"].Columns {
		types = append(types, column.Type)
	}
	require.Equal(t, []querypb.Type{sqltypes.VarChar, sqltypes.Char, sqltypes.Text, sqltypes.Enum, sqltypes.Set, sqltypes.VarBinary}, types)
}

// TestLoadSchemaCalls tests that the number of requests does not grow with the number of tables.
func TestLoadSchemaCalls(t *testing.T) {
	tablet := &fakeTablet{}
	for i := range 1000 {
		name := fmt.Sprintf("t%d", i)
		td := definition(name, []string{"c0"})
		for n := range 10 {
			column := fmt.Sprintf("c%d", n)
			td.Fields = append(td.Fields, &querypb.Field{Name: column, Type: sqltypes.Int64})
			tablet.columns = append(tablet.columns, []string{name, column, "bigint", "NULL", "NULL", "NO", ""})
		}
		tablet.tables = append(tablet.tables, td)
	}
	schema, err := LoadSchema(context.Background(), tablet, testEnv, testTablet, nil)
	require.NoError(t, err)
	require.Len(t, schema.Tables, 1000)
	require.Equal(t, 1, tablet.schemaCalls)
	require.Equal(t, 4, tablet.queryCalls)
}

// TestLoadSchemaErrors tests that a schema is complete or an error that names the tablet.
func TestLoadSchemaErrors(t *testing.T) {
	tablet := &fakeTablet{tables: []*tabletmanagerdatapb.TableDefinition{definition("new", []string{"id"}, "id INT64")}}
	_, err := LoadSchema(context.Background(), tablet, testEnv, testTablet, nil)
	require.ErrorContains(t, err, "tablet zone1-0000000100: column id of table new is not in information_schema")
	tablet.err = errors.New("no connection")
	_, err = LoadSchema(context.Background(), tablet, testEnv, testTablet, nil)
	require.ErrorContains(t, err, "no connection")
}

// Tests that the names of a database's tables are read, and that an error says of which tablet it is.
func TestLoadTableNames(t *testing.T) {
	tablet := &topodatapb.Tablet{Alias: &topodatapb.TabletAlias{Cell: "zone1", Uid: 7}, Keyspace: "ks"}
	names, err := LoadTableNames(t.Context(), &fakeTablet{}, tablet)
	require.NoError(t, err)
	require.Equal(t, []string{"a", "b"}, names)
	_, err = LoadTableNames(t.Context(), &fakeTablet{err: errors.New("it is away")}, tablet)
	require.ErrorContains(t, err, "tables of tablet zone1-0000000007: it is away")
}
