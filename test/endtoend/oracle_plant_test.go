// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package endtoend

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"vitess.io/vitess/go/sqltypes"

	"github.com/vttablet-ext/vttablet-ext/test/endtoend/cluster"
)

// plant changes some rows of the target behind replication. What comes of a statement does not matter, it may even fail: the
// truth is found afterwards. The statements are returned for whoever has to look at a disagreement.
func (b *batch) plant(ctx context.Context, t *randomTable) ([]string, error) {
	var log []string
	for range pick(t.r, []int{0, 0, 0, 0, 1, 1, 2, 3, 5}) {
		tablet := pick(t.r, b.targets)
		rows, err := t.read(ctx, b.sessions, tablet, true, b.o.padding)
		if err != nil {
			return nil, err
		}
		done, err := b.execAny(ctx, tablet, t.change(rows, true))
		if err != nil {
			return nil, err
		}
		log = append(log, done...)
	}
	if t.copies() && t.pairedBy() != nil {
		done, err := b.plantCopy(ctx, t)
		return append(log, done...), err
	}
	return log, nil
}

// execAny runs statements that may fail, and returns them with what came of them.
func (b *batch) execAny(ctx context.Context, tablet *cluster.Tablet, sqls []string) ([]string, error) {
	var log []string
	for _, sql := range sqls {
		result, err := b.sessions.exec(ctx, tablet, sql)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		outcome := ""
		if err != nil {
			outcome, _, _ = strings.Cut(err.Error(), " during query")
		} else {
			outcome = fmt.Sprintf("%d rows", result.RowsAffected)
		}
		log = append(log, fmt.Sprintf("%s/%s: %s -- %s", tablet.Keyspace, tablet.Shard, sql, outcome))
	}
	return log, nil
}

// change makes statements of one change of the target, or of a copy of the source.
func (t *randomTable) change(rows []*truthRow, target bool) []string {
	r := t.r
	columns, names := t.written(target)
	table, key := quote(t.source), t.sourceKey
	if target {
		table, key = quote(t.name), t.targetKey
	}
	if len(rows) == 0 || r.IntN(6) == 0 {
		return []string{"insert ignore into " + table + " " + names + " values " + t.newRow(target)}
	}
	row := pick(r, rows)
	where := " where " + t.where1(row, target) + " limit 1"
	switch r.IntN(8) {
	case 0:
		return []string{"delete from " + table + where}
	case 1:
		if key.how == noKey {
			return []string{"insert into " + table + " " + names + " select " + strings.Trim(names, "()") + " from " + table + where}
		}
		return []string{"delete from " + table + where}
	case 2: // two rows swap the values of a column
		c, other := pick(r, columns), pick(r, rows)
		name, elsewhere := quote(c.on(target)), " where "+t.where1(other, target)+" limit 1"
		return []string{
			fmt.Sprintf("set @x = (select %s from %s%s), @y = (select %[1]s from %[2]s%[4]s)", name, table, where, elsewhere),
			fmt.Sprintf("update %s set %s = @y%s", table, name, where), fmt.Sprintf("update %s set %s = @x%s", table, name, elsewhere),
		}
	}
	c := pick(r, columns)
	tweaks := c.kind.tweaks
	if len(key.columns) > 0 && r.IntN(3) == 0 {
		c = pick(r, key.columns)
		tweaks = c.kind.tweaks
		if collatedType.MatchString(c.targetType) && r.IntN(2) == 0 { // another key, which its collation may call equal
			tweaks = caseTweaks
		}
	}
	nullable, columnType := c.sourceNullable, c.sourceType
	if target {
		nullable, columnType = c.targetNullable, c.targetType
	}
	value := c.kind.value(r, columnType)
	switch {
	case nullable && r.IntN(4) == 0:
		value = "null"
	case r.IntN(4) > 0:
		value = strings.ReplaceAll(pick(r, tweaks), "%[1]s", quote(c.on(target)))
	}
	return []string{"update " + table + " set " + quote(c.on(target)) + " = " + c.printed(value) + where}
}

// printed is a value as MySQL prints it where that says less than the value is: a FLOAT, which VReplication copies as it is
// printed. Two keys that print alike could not be told apart.
func (c *randomColumn) printed(value string) string {
	if c.kind.name != "float" || value == "null" {
		return value
	}
	return "concat(cast(" + value + " as float))"
}

// where1 is a condition for one row of a side, or for rows that are all alike.
func (t *randomTable) where1(row *truthRow, target bool) string {
	columns := t.compared()
	of := t.pairedBy()
	if of == nil {
		of = columns
	}
	var conditions []string
	for _, c := range of {
		value, name := row.texts[slices.Index(columns, c)], quote(c.on(target))
		if value.IsNull() {
			conditions = append(conditions, name+" is null")
			continue
		}
		conditions = append(conditions, c.kind.form.sql(name)+" = "+sqltypes.EncodeStringSQL(value.ToString()))
	}
	return strings.Join(conditions, " and ")
}

// show prints rows with the names and types of their columns.
func (t *randomTable) show(rows []*truthRow) string {
	var b strings.Builder
	for _, row := range rows {
		for i, c := range t.compared() {
			form := row.forms[i]
			if form == nullForm {
				form = "NULL"
			}
			if row.raw[i] != "" && row.raw[i] != form {
				form += " (bytes " + row.raw[i] + ")"
			}
			fmt.Fprintf(&b, " %s=%s", quote(c.name), form)
		}
		b.WriteString("\n")
	}
	return b.String()
}

// dump prints the first rows of one side.
func (b *batch) dump(ctx context.Context, t *randomTable, tablet *cluster.Tablet, target bool) string {
	rows, err := t.read(ctx, b.sessions, tablet, target, b.o.padding)
	if err != nil {
		return err.Error()
	}
	const most = 5
	cut := ""
	if len(rows) > most {
		cut = fmt.Sprintf(" ... and %d more\n", len(rows)-most)
		rows = rows[:most]
	}
	return fmt.Sprintf("%s/%s:\n%s%s", tablet.Keyspace, tablet.Shard, t.show(rows), cut)
}
