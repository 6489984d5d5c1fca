// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package plan

import (
	"context"
	"strings"

	"vitess.io/vitess/go/mysql/collations"
	"vitess.io/vitess/go/sqltypes"
	"vitess.io/vitess/go/vt/mysqlctl"
	"vitess.io/vitess/go/vt/schema"
	"vitess.io/vitess/go/vt/sqlparser"
	"vitess.io/vitess/go/vt/topo/topoproto"
	"vitess.io/vitess/go/vt/vterrors"

	querypb "vitess.io/vitess/go/vt/proto/query"
	tabletmanagerdatapb "vitess.io/vitess/go/vt/proto/tabletmanagerdata"
	topodatapb "vitess.io/vitess/go/vt/proto/topodata"
	vtrpcpb "vitess.io/vitess/go/vt/proto/vtrpc"
)

const (
	// batchColumns is how many columns the tables of one query have together, so that an answer stays
	// far below the limit of a gRPC message.
	batchColumns = 5000
	// maxSchemaRows is above what a batch can return: even 64 indexes of 16 columns for each table.
	maxSchemaRows = 10_000_000

	columnsQuery = `select table_name as table_name, column_name as column_name, column_type as column_type,
 character_set_name as character_set_name, collation_name as collation_name, is_nullable as is_nullable, extra as extra,
 (select variable_value from performance_schema.global_variables where variable_name = 'binlog_row_value_options') as row_value_options
 from information_schema.columns where table_schema = %a and table_name in %a`
	namesQuery   = `select table_name as table_name from information_schema.tables where table_schema = %a and table_type = 'BASE TABLE' order by table_name`
	indexesQuery = `select table_name as table_name, index_name as index_name, column_name as column_name,
 sub_part as sub_part, nullable as nullable, is_visible as is_visible
 from information_schema.statistics where table_schema = %a and table_name in %a and non_unique = 0
 order by table_name, index_name, seq_in_index`
)

// SchemaClient is the part of tmclient.TabletManagerClient that LoadSchema needs.
type SchemaClient interface {
	GetSchema(ctx context.Context, tablet *topodatapb.Tablet, request *tabletmanagerdatapb.GetSchemaRequest) (*tabletmanagerdatapb.SchemaDefinition, error)
	ExecuteFetchAsApp(ctx context.Context, tablet *topodatapb.Tablet, usePool bool, req *tabletmanagerdatapb.ExecuteFetchAsAppRequest) (*querypb.QueryResult, error)
}

// LoadSchema reads the schema of the given tables, or of all tables when there are none given, from a
// tablet. Tables that do not exist are absent from the result. It makes a few requests per thousands
// of columns, and one more for each table that has no primary key.
func LoadSchema(ctx context.Context, client SchemaClient, env *collations.Environment, tablet *topodatapb.Tablet, tables []string) (*Schema, error) {
	l := &loader{client: client, env: env, tablet: tablet, dbName: topoproto.TabletDbName(tablet)}
	s, err := l.load(ctx, tables)
	if err != nil {
		return nil, vterrors.Wrapf(err, "schema of tablet %s", topoproto.TabletAliasString(tablet.Alias))
	}
	return s, nil
}

// LoadTableNames reads the names of all tables of a tablet's database, without views.
func LoadTableNames(ctx context.Context, client SchemaClient, tablet *topodatapb.Tablet) ([]string, error) {
	l := &loader{client: client, tablet: tablet, dbName: topoproto.TabletDbName(tablet)}
	query, err := sqlparser.ParseAndBind(namesQuery, sqltypes.StringBindVariable(l.dbName))
	if err != nil {
		return nil, err
	}
	result, err := l.fetch(ctx, query, maxSchemaRows)
	if err != nil {
		return nil, vterrors.Wrapf(err, "tables of tablet %s", topoproto.TabletAliasString(tablet.Alias))
	}
	var names []string
	for _, row := range result.Named().Rows {
		names = append(names, row.AsString("table_name", ""))
	}
	return names, nil
}

// loader is one LoadSchema.
type loader struct {
	client SchemaClient
	env    *collations.Environment
	tablet *topodatapb.Tablet
	dbName string
}

func (l *loader) load(ctx context.Context, tables []string) (*Schema, error) {
	def, err := l.client.GetSchema(ctx, l.tablet, &tabletmanagerdatapb.GetSchemaRequest{
		Tables:        tables,
		ExcludeTables: []string{"/" + schema.GCTableNameExpression + "/"},
	})
	if err != nil {
		return nil, err
	}
	s := &Schema{Tables: make(map[string]*TableSchema, len(def.TableDefinitions))}
	var names []string
	columns := 0
	for i, td := range def.TableDefinitions {
		if len(td.Fields) > 0 { // none: dropped while it was being read
			s.Tables[td.Name] = newTableSchema(td)
			names = append(names, td.Name)
			columns += len(td.Fields)
		}
		if len(names) > 0 && (columns >= batchColumns || i == len(def.TableDefinitions)-1) {
			if err := l.describe(ctx, s, names); err != nil {
				return nil, err
			}
			names, columns = nil, 0
		}
	}
	for _, td := range def.TableDefinitions {
		if t := s.Tables[td.Name]; t != nil {
			if err := l.setKey(ctx, t, td.PrimaryKeyColumns); err != nil {
				return nil, err
			}
		}
	}
	return s, nil
}

// newTableSchema takes what GetSchema knows.
func newTableSchema(td *tabletmanagerdatapb.TableDefinition) *TableSchema {
	t := &TableSchema{Name: td.Name, Rows: int64(td.RowCount), Columns: make([]ColumnSchema, len(td.Fields))}
	for i, field := range td.Fields {
		t.Columns[i] = ColumnSchema{Name: field.Name, ColumnType: ColumnType{Type: field.Type}}
	}
	return t
}

// describe adds what information_schema knows of a batch of tables.
func (l *loader) describe(ctx context.Context, s *Schema, names []string) error {
	rows, err := l.query(ctx, columnsQuery, names)
	if err != nil {
		return vterrors.Wrap(err, "columns")
	}
	for _, row := range rows {
		t := s.Tables[row.AsString("table_name", "")]
		if t == nil {
			continue
		}
		if i := t.Column(row.AsString("column_name", "")); i >= 0 {
			l.setColumn(&t.Columns[i], row)
		}
		t.PartialJSON = strings.Contains(strings.ToUpper(row.AsString("row_value_options", "")), "PARTIAL_JSON")
	}
	for _, name := range names {
		for _, column := range s.Tables[name].Columns {
			if column.ColumnType.ColumnType == "" {
				// A new table shows up in information_schema a moment before its columns do.
				return vterrors.Errorf(vtrpcpb.Code_UNAVAILABLE, "column %s of table %s is not in information_schema.columns yet", column.Name, name)
			}
		}
	}
	rows, err = l.query(ctx, indexesQuery, names)
	if err != nil {
		return vterrors.Wrap(err, "indexes")
	}
	setIndexes(s, rows)
	return nil
}

func (l *loader) setColumn(c *ColumnSchema, row sqltypes.RowNamedValues) {
	c.ColumnType.ColumnType = row.AsString("column_type", "")
	c.Nullable = strings.EqualFold(row.AsString("is_nullable", ""), "YES")
	extra := strings.ToLower(row.AsString("extra", ""))
	c.Generated = strings.Contains(extra, "virtual generated") || strings.Contains(extra, "stored generated")
	c.Invisible = strings.Contains(extra, "invisible")
	c.AutoIncrement = strings.Contains(extra, "auto_increment")
	c.Charset = strings.ToLower(row.AsString("character_set_name", ""))
	if c.Charset == "" {
		c.Collation = collations.CollationBinaryID
		return
	}
	c.Type = textType(c.Type, c.ColumnType.ColumnType)
	c.Stored = StoredText{Charset: c.Charset, Collation: strings.ToLower(row.AsString("collation_name", ""))}
	c.Collation = l.env.LookupByName(c.Stored.Collation)
}

// textType returns the type of a column that has a charset. MySQL's protocol flags text of a _bin
// collation as binary, and Vitess then takes it, ENUM and SET included, for a binary string.
func textType(t querypb.Type, columnType string) querypb.Type {
	columnType = strings.ToLower(columnType)
	switch {
	case strings.HasPrefix(columnType, "enum("):
		return querypb.Type_ENUM
	case strings.HasPrefix(columnType, "set("):
		return querypb.Type_SET
	case t == querypb.Type_VARBINARY:
		return querypb.Type_VARCHAR
	case t == querypb.Type_BINARY:
		return querypb.Type_CHAR
	case t == querypb.Type_BLOB:
		return querypb.Type_TEXT
	}
	return t
}

// setIndexes fills Unique from rows that are ordered by table, index and position.
func setIndexes(s *Schema, rows []sqltypes.RowNamedValues) {
	for start := 0; start < len(rows); {
		table, index := rows[start].AsString("table_name", ""), rows[start].AsString("index_name", "")
		unique, usable := UniqueIndex{Name: index}, true
		end := start
		for ; end < len(rows) && rows[end].AsString("table_name", "") == table && rows[end].AsString("index_name", "") == index; end++ {
			row := rows[end]
			column := row.AsString("column_name", "")
			if column == "" || strings.EqualFold(row.AsString("nullable", ""), "YES") {
				usable = false
			}
			unique.Prefix = unique.Prefix || !row["sub_part"].IsNull()
			unique.Invisible = strings.EqualFold(row.AsString("is_visible", ""), "NO")
			unique.Columns = append(unique.Columns, column)
		}
		start = end
		t := s.Tables[table]
		if t == nil || !usable {
			continue
		}
		t.Unique = append(t.Unique, unique)
	}
}

// setKey sets the columns that VStreamRows orders by.
func (l *loader) setKey(ctx context.Context, t *TableSchema, primaryKey []string) error {
	t.Key, t.KeyUnique = primaryKey, true
	if len(t.Key) > 0 {
		return nil
	}
	exec := func(query string, maxRows int, _ bool) (*sqltypes.Result, error) {
		return l.fetch(ctx, query, maxRows)
	}
	// The same function that VStreamRows calls: what it picks among several indexes is its own affair.
	key, _, err := mysqlctl.GetPrimaryKeyEquivalentColumns(ctx, exec, l.dbName, t.Name)
	if err != nil {
		return vterrors.Wrapf(err, "primary key equivalent of table %s", t.Name)
	}
	if t.Key = key; len(t.Key) > 0 {
		return nil
	}
	t.KeyUnique = false
	for _, column := range t.Columns {
		t.Key = append(t.Key, column.Name)
	}
	return nil
}

// query binds the database and the tables to a query of information_schema.
func (l *loader) query(ctx context.Context, query string, names []string) ([]sqltypes.RowNamedValues, error) {
	tables, err := sqltypes.BuildBindVariable(names)
	if err != nil {
		return nil, err
	}
	bound, err := sqlparser.ParseAndBind(query, sqltypes.StringBindVariable(l.dbName), tables)
	if err != nil {
		return nil, err
	}
	result, err := l.fetch(ctx, bound, maxSchemaRows)
	if err != nil {
		return nil, err
	}
	return result.Named().Rows, nil
}

func (l *loader) fetch(ctx context.Context, query string, maxRows int) (*sqltypes.Result, error) {
	result, err := l.client.ExecuteFetchAsApp(ctx, l.tablet, false, &tabletmanagerdatapb.ExecuteFetchAsAppRequest{
		Query:   []byte(query),
		MaxRows: uint64(maxRows),
	})
	if err != nil {
		return nil, err
	}
	return sqltypes.Proto3ToResult(result), nil
}
