// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package report

import (
	"strings"

	"vitess.io/vitess/go/sqltypes"
	"vitess.io/vitess/go/vt/sqlparser"

	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/plan"
)

// repairMark stands between a statement that reads a row and the one that would make the target's row like the source's. It begins
// a comment: whoever runs the whole text has read the row and changed nothing.
const repairMark = " -- repair of the target: "

// repair returns a statement that makes the target's row equal to the source's, either of which is nil where there is no such
// row. It does nothing to a row that has changed since it was compared: all values that were seen are in its condition. It is "" where
// no such statement can be written: when a value is longer than maxValue, when rows of the target are made of several of the source, or when
// values are not to be shown.
func (b *Builder) repair(source, target []sqltypes.Value, maxValue int) string {
	if !b.options.DebugQuery || b.options.OnlyPKs || b.table.Aggregated {
		return ""
	}
	for i := range b.table.Columns {
		if b.table.Columns[i].TimeZones || source != nil && source[i].Len() > maxValue || target != nil && target[i].Len() > maxValue {
			return ""
		}
	}
	statement := b.statement(source, target)
	if statement == "" || strings.ContainsAny(statement, "\r\n") { // in a name: it would end the comment
		return ""
	}
	return repairMark + statement
}

func (b *Builder) statement(source, target []sqltypes.Value) string {
	table := sqlparser.String(sqlparser.NewIdentifierCS(b.table.Name))
	if target == nil {
		return b.insert(table, source)
	}
	where := b.asSeen(target)
	if where == "" {
		return ""
	}
	if source == nil {
		return "delete from " + table + where
	}
	var set []string
	for i := range b.table.Columns {
		c := &b.table.Columns[i]
		if !c.Generated && !sameValue(source[i], target[i], c) {
			set = append(set, quoted(c.Name)+"="+assigned(source[i], c))
		}
	}
	if len(set) == 0 {
		return ""
	}
	return "update " + table + " set " + strings.Join(set, ", ") + where
}

func (b *Builder) insert(table string, row []sqltypes.Value) string {
	var names, values []string
	for i := range b.table.Columns {
		c := &b.table.Columns[i]
		if c.Generated {
			continue
		}
		value := assigned(row[i], c)
		if c.AutoIncrement && value == "0" {
			return "" // it would get another number
		}
		names, values = append(names, quoted(c.Name)), append(values, value)
	}
	if len(names) == 0 {
		return ""
	}
	return "insert into " + table + " (" + strings.Join(names, ", ") + ") values (" + strings.Join(values, ", ") + ");"
}

// asSeen returns the condition for the target's row as it was seen, the key first, and the end of the statement.
func (b *Builder) asSeen(row []sqltypes.Value) string {
	var where []string
	for _, i := range b.table.Key {
		where = append(where, b.seen(i, row[i]))
	}
	for i := range b.table.Columns {
		if !b.isKey[i] {
			where = append(where, b.seen(i, row[i]))
		}
	}
	if len(where) == 0 {
		return ""
	}
	if b.table.TargetFilter != "" {
		where = append(where, b.table.TargetFilter)
	}
	end := ";"
	if !b.table.KeyUnique {
		end = " limit 1;" // of rows that are the same
	}
	return " where " + strings.Join(where, " and ") + end
}

// seen returns SQL that is true for exactly the value of column i: not for text that is only equal under the collation, except in a
// key, which an index is to find.
func (b *Builder) seen(i int, v sqltypes.Value) string {
	c := &b.table.Columns[i]
	switch {
	case v.IsNull() || b.isKey[i] && b.table.KeyUnique:
		return condition(c.TargetExpr, v, c.Target)
	case c.Target.Type == sqltypes.Float32: // MySQL compares what it has, which is more than it prints
		return "cast(" + c.TargetExpr + " as char)='" + v.ToString() + "'"
	case c.Target.Charset == "" || c.Target.Charset == "binary" || c.Target.Type == sqltypes.TypeJSON || v.Len() == 0:
		return condition(c.TargetExpr, v, c.Target)
	}
	return "cast(" + c.TargetExpr + " as binary)=" + quote(v.Raw(), "")
}

// assigned returns SQL for a value of the source that is to be stored on the target. VReplication writes times in UTC.
func assigned(v sqltypes.Value, c *plan.Column) string {
	switch toTimestamp := c.Target.Type == sqltypes.Timestamp; {
	case v.IsNull():
		return "null"
	case toTimestamp && c.Source.Type == sqltypes.Datetime:
		return quote(inUTC(v.Raw()), "")
	case !toTimestamp && c.Source.Type == sqltypes.Timestamp:
		return quote(v.Raw(), "")
	}
	return literal(v, c.Source)
}

// sameValue says whether the target has the source's value. Equal bytes of two charsets are not the same text.
func sameValue(source, target sqltypes.Value, c *plan.Column) bool {
	return source.IsNull() == target.IsNull() && (source.IsNull() || c.SameBytes()) && string(source.Raw()) == string(target.Raw())
}

func quoted(name string) string { return sqlparser.String(sqlparser.NewIdentifierCI(name)) }
