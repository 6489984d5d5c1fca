// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package endtoend

import (
	"fmt"
	"slices"
	"strings"
)

// setFilter gives the rule a select list of its own, with other names and fewer columns, and a condition.
func (t *randomTable) setFilter() {
	r := t.r
	for i, c := range t.columns {
		inKey := slices.Contains(t.sourceKey.columns, c)
		switch {
		case c.computed != "":
			c.targetComputed = false // VReplication fills it by its name, which it cannot
		case r.IntN(3) == 0:
			c.name = fmt.Sprintf("renamed %d", i)
		case !inKey && r.IntN(8) == 0:
			c.dropped = true
		}
	}
	if !slices.ContainsFunc(t.columns, func(c *randomColumn) bool { return !c.dropped }) {
		t.columns[0].dropped = false
	}
	t.source = t.name + "_s"
	if r.IntN(3) > 0 {
		c := t.newColumn(allKinds[0])
		c.source, c.name, c.sourceType, c.targetType = "flt", "flt", "int", "int"
		c.sourceNullable, c.targetNullable, c.invisible = false, false, false
		c.dropped = r.IntN(2) == 0
		t.where = pick(r, []string{"%s < 50", "%s in (1, 2, 3, 4, 5)", "%s = 3", "%s <> 2", "%s between 20 and 260", "%s is not null", "%s >= 10"})
		t.columns, t.filtered = append(t.columns, c), c
		if r.IntN(3) == 0 {
			t.filterText(c)
		}
	}
}

// filterText makes the condition one on text. MySQL pads it with spaces where its collation says so, VReplication does not.
func (t *randomTable) filterText(c *randomColumn) {
	c.kind = allKinds[slices.IndexFunc(allKinds, func(k *kind) bool { return k.name == "text" })]
	charset, collation, _ := strings.Cut(pick(t.r, []string{"utf8mb4 utf8mb4_general_ci", "utf8mb4 utf8mb4_bin", "utf8mb4 utf8mb4_unicode_ci", "latin1 latin1_swedish_ci", "utf8mb4 utf8mb4_0900_ai_ci"}), " ")
	c.sourceType = collated("varchar(20)", charset, collation)
	c.targetType = c.sourceType
	c.values = []string{"'a'", "'a '", "'A'", "'A  '", "'b'", "'b '", "'B'", "'x'", "''", "' '"}
	condition := pick(t.r, [][2]string{{"%s <> 'a'", "concat(%s, '.') <> 'a.'"}, {"%s = 'a'", "concat(%s, '.') = 'a.'"}, {"%s in ('a', 'B')", "concat(%s, '.') in ('a.', 'B.')"}, {"%s <> ''", "concat(%s, '.') <> '.'"}})
	t.where, t.chosen = condition[0], condition[1]
}

// condition is what is true of the rows of one side that the workflow is about, "" for all rows. Text is compared as the source has it.
func (t *randomTable) condition(target bool) string {
	if t.where == "" || target && t.filtered.dropped {
		return ""
	}
	where, column := t.where, quote(t.filtered.on(target))
	if t.chosen != "" {
		where = t.chosen
		if target && t.filtered.targetType != t.filtered.sourceType {
			m := collatedType.FindStringSubmatch(t.filtered.sourceType)
			column = "convert(" + column + " using " + m[1] + ") collate " + m[2]
		}
	}
	return fmt.Sprintf(where, column)
}

// expression is the rule's query of a table with names or a filter of its own.
func (t *randomTable) expression() string {
	var columns, groups []string
	for _, c := range t.compared() {
		switch {
		case c.aggregate == countOf:
			columns = append(columns, "count(*) as "+quote(c.name))
			continue
		case c.aggregate == sumOf:
			columns = append(columns, "sum("+quote(c.source)+") as "+quote(c.name))
			continue
		case c.source == c.name:
			columns = append(columns, quote(c.source))
		default:
			columns = append(columns, quote(c.source)+" as "+quote(c.name))
		}
		groups = append(groups, quote(c.name))
	}
	query := "select " + strings.Join(columns, ", ") + " from " + quote(t.source)
	if t.where != "" {
		query += " where " + fmt.Sprintf(t.where, quote(t.filtered.source))
	}
	if t.rollup {
		query += " group by " + strings.Join(groups, ", ")
	}
	return query
}
