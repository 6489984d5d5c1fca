// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"encoding/hex"
	"strings"

	"vitess.io/vitess/go/sqltypes"
	"vitess.io/vitess/go/vt/sqlparser"

	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/plan"
)

// query returns a statement for a person to read the row on its own side, "" when there is none: the
// row has no column to find it by, or a key value is longer than maxValue.
func (b *Builder) query(s side, row []sqltypes.Value, maxValue int) string {
	var columns, where []string
	for i := range b.table.Columns {
		column := &b.table.Columns[i]
		expr := s.expr(column)
		if b.options.OnlyPKs && !b.isKey[i] || !inMySQL(expr) {
			continue
		}
		name := sqlparser.String(sqlparser.NewIdentifierCI(column.Name))
		if expr != name {
			columns = append(columns, expr+" as "+name)
		} else {
			columns = append(columns, expr)
		}
	}
	for _, i := range b.table.Key {
		column := &b.table.Columns[i]
		if expr := s.expr(column); inMySQL(expr) && expr != "1" {
			if row[i].Len() > maxValue {
				return ""
			}
			where = append(where, condition(expr, row[i], s.typeOf(column)))
		}
	}
	if len(columns) == 0 || len(where) == 0 {
		return ""
	}
	if filter := s.filter(b.table); filter != "" {
		where = append(where, filter)
	}
	table := sqlparser.String(sqlparser.NewIdentifierCS(s.table(b.table)))
	return "select " + strings.Join(columns, ", ") + " from " + table + " where " + strings.Join(where, " and ") + ";"
}

// inMySQL says whether MySQL can compute an expression, or only VStreamRows.
func inMySQL(expr string) bool { return expr != "keyspace_id()" }

// condition returns SQL that is true for the rows which have the value.
func condition(expr string, v sqltypes.Value, t plan.ColumnType) string {
	if v.IsNull() {
		return expr + " is null"
	}
	return expr + "=" + literal(v, t)
}

// literal returns SQL for a value, which means the same in every session.
func literal(v sqltypes.Value, t plan.ColumnType) string {
	if !v.IsQuoted() && v.Type() != sqltypes.Bit {
		return v.ToString()
	}
	text, ok := utf8Of(v, t)
	switch {
	case !ok && v.Len() == 0:
		return "''"
	case !ok && t.Charset != "":
		return "_" + t.Charset + " 0x" + hex.EncodeToString(v.Raw())
	case !ok:
		return "0x" + hex.EncodeToString(v.Raw())
	case v.Type() == sqltypes.TypeJSON:
		return "cast(" + quote(text, "_utf8mb4 ") + " as json)"
	case t.Type == sqltypes.Timestamp:
		return quote(inUTC(text), "")
	}
	return quote(text, "_utf8mb4 ")
}

// quote returns SQL for a string: in quotes where it means the same whatever the session's charset is, and whether a backslash escapes or
// not; else in hex behind an introducer.
func quote(text []byte, introducer string) string {
	for _, c := range text {
		if c < ' ' || c > '~' || c == '\\' {
			return introducer + "0x" + hex.EncodeToString(text)
		}
	}
	return "'" + strings.ReplaceAll(string(text), "'", "''") + "'"
}

// inUTC returns a time as it was read, in UTC, with its zone, which MySQL takes in TIMESTAMP since 8.0.19: without one it is a time of the
// session's. A zero date is the same in all zones.
func inUTC(text []byte) []byte {
	if bytes.HasPrefix(text, []byte("0000-00-00")) {
		return text
	}
	return append(bytes.Clone(text), "+00:00"...)
}
