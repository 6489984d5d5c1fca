// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package plan

import (
	"strings"

	querypb "vitess.io/vitess/go/vt/proto/query"
)

// Schema is what plans need to know of the tables of one tablet.
type Schema struct {
	Tables map[string]*TableSchema
}

// TableSchema is one table of a Schema.
type TableSchema struct {
	Name    string
	Columns []ColumnSchema
	// Key has the names of the columns that VStreamRows orders the rows by: the primary key, else the
	// primary key equivalent (a unique index without nullable columns), else every column.
	Key []string
	// KeyUnique is false when Key is only every column for want of anything better.
	KeyUnique bool
	// Unique has the unique indexes that have no nullable column and no expression, the primary key
	// among them.
	Unique []UniqueIndex
	// Rows is MySQL's estimate of the number of rows.
	Rows int64
	// PartialJSON says that the tablet's MySQL may write to its binary log what has changed in a JSON value, and not all of the value.
	PartialJSON bool
}

// ColumnSchema is one column of a TableSchema, in the table's order.
type ColumnSchema struct {
	Name string
	ColumnType
	Generated bool
	Invisible bool
	// AutoIncrement says that MySQL makes a number of a 0 that is inserted. It is nothing to the comparison, nor to its fingerprint.
	AutoIncrement bool `json:"-"`
}

// UniqueIndex is an index that proves its columns to be unique together.
type UniqueIndex struct {
	Name    string
	Columns []string
	// Prefix is true when a column is indexed by its first characters only. The columns are unique all
	// the same, but the index does not give their order.
	Prefix bool
	// Invisible is true when MySQL refuses to be told to use the index.
	Invisible bool
}

// Column returns the position of the column called name, in whatever case, or -1.
func (t *TableSchema) Column(name string) int {
	for i := range t.Columns {
		if strings.EqualFold(t.Columns[i].Name, name) {
			return i
		}
	}
	return -1
}

// prefixed says whether the index that the table's Key comes from holds only the beginning of a column.
func (t *TableSchema) prefixed() bool {
	for _, index := range t.Unique {
		if index.Prefix && equalNames(index.Columns, t.Key) {
			return true
		}
	}
	return false
}

// equalNames compares lists of column names.
func equalNames(a, b []string) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if !strings.EqualFold(a[i], b[i]) {
			return false
		}
	}
	return true
}

// hasCharset says whether the values of a type are text in the column's own charset.
func hasCharset(t querypb.Type) bool {
	switch t {
	case querypb.Type_CHAR, querypb.Type_VARCHAR, querypb.Type_TEXT, querypb.Type_ENUM, querypb.Type_SET:
		return true
	}
	return false
}
