// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"vitess.io/vitess/go/mysql/collations"
	"vitess.io/vitess/go/sqltypes"
	"vitess.io/vitess/go/vt/sqlparser"
)

var (
	testParser = sqlparser.NewTestParser()
	testEnv    = collations.MySQL8()
)

// parseTable makes the schema that LoadSchema would of a create table statement whose indexes and
// charsets are spelled out. Text has utf8mb4_0900_ai_ci unless it says otherwise.
func parseTable(t *testing.T, ddl string) *TableSchema {
	t.Helper()
	statement, err := testParser.Parse(ddl)
	require.NoError(t, err, ddl)
	create := statement.(*sqlparser.CreateTable)
	table := &TableSchema{Name: create.Table.Name.String(), Rows: 100}
	var primary []string
	for _, def := range create.TableSpec.Columns {
		column := ColumnSchema{Name: def.Name.String()}
		column.Type = def.Type.SQLType()
		column.ColumnType.ColumnType = describe(def.Type)
		options := def.Type.Options
		column.Generated = options.As != nil
		column.Nullable = options.Null == nil || *options.Null
		column.Collation = collations.CollationBinaryID
		if options.KeyOpt == sqlparser.ColKeyPrimary {
			primary = []string{column.Name}
		}
		if hasCharset(column.Type) {
			column.Charset = strings.ToLower(def.Type.Charset.Name)
			if column.Charset == "" {
				column.Charset = "utf8mb4"
			}
			column.Collation = testEnv.DefaultCollationForCharset(column.Charset)
			if options.Collate != "" {
				column.Collation = testEnv.LookupByName(options.Collate)
			}
			column.Stored = StoredText{Charset: column.Charset, Collation: testEnv.LookupName(column.Collation)}
		}
		table.Columns = append(table.Columns, column)
	}
	if primary != nil {
		table.Unique = append(table.Unique, UniqueIndex{Name: "PRIMARY", Columns: primary})
	}
	for _, index := range create.TableSpec.Indexes {
		if !index.Info.IsUnique() {
			continue
		}
		unique := UniqueIndex{Name: index.Info.Name.String()}
		for _, part := range index.Columns {
			unique.Columns = append(unique.Columns, part.Column.String())
			unique.Prefix = unique.Prefix || part.Length != nil
		}
		if index.Info.Type == sqlparser.IndexTypePrimary {
			unique.Name, primary = "PRIMARY", unique.Columns
		}
		table.Unique = append(table.Unique, unique)
	}
	for _, name := range primary {
		table.Columns[table.Column(name)].Nullable = false
	}
	table.Unique = slices.DeleteFunc(table.Unique, func(u UniqueIndex) bool {
		return slices.ContainsFunc(u.Columns, func(name string) bool { return table.Columns[table.Column(name)].Nullable })
	})
	table.Key, table.KeyUnique = primary, true
	if primary == nil && len(table.Unique) > 0 {
		table.Key = table.Unique[0].Columns
	}
	if table.Key == nil {
		table.KeyUnique = false
		for _, column := range table.Columns {
			table.Key = append(table.Key, column.Name)
		}
	}
	return table
}

// describe returns a type as information_schema shows it.
func describe(t *sqlparser.ColumnType) string {
	text := strings.ToLower(t.Type)
	switch {
	case len(t.EnumValues) > 0:
		text += "(" + strings.Join(t.EnumValues, ",") + ")"
	case t.Length != nil && t.Scale != nil:
		text += fmt.Sprintf("(%d,%d)", *t.Length, *t.Scale)
	case t.Length != nil:
		text += fmt.Sprintf("(%d)", *t.Length)
	}
	if t.Unsigned {
		text += " unsigned"
	}
	return text
}

// TestColumn tests that columns are found in any case.
func TestColumn(t *testing.T) {
	table := parseTable(t, "create table t(id bigint primary key, Name varchar(10))")
	f := func(name string, want int) {
		t.Helper()
		require.Equal(t, want, table.Column(name))
	}
	f("id", 0)
	f("NAME", 1)
	f("nam", -1)
	f("", -1)
	require.Equal(t, sqltypes.Int64, table.Columns[0].Type)
}
