// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package endtoend

import (
	"math/big"
	"slices"
	"strconv"
)

// A rule with group by makes one row of the target of all rows of a group: of those that the target's key calls equal.

// aggregate is how the value of a column comes from the rows of a group; "" for a column that they are grouped by.
type aggregate string

const (
	countOf aggregate = "count"
	sumOf   aggregate = "sum"
)

// setRollup makes the rule group rows by some of the columns that a key may have. Other columns stay on the source.
func (t *randomTable) setRollup() {
	r := t.r
	t.rollup = true
	for _, c := range t.columns {
		c.dropped, c.targetComputed = true, false
	}
	mayGroup := slices.DeleteFunc(slices.Clone(t.columns), func(c *randomColumn) bool {
		return !c.kind.inKey || c.kind.prefix > 0 || c.computed != "" || c == t.filtered
	})
	for _, c := range mayGroup[:min(len(mayGroup), 1+r.IntN(2))] {
		c.dropped, c.sourceNullable, c.targetNullable, c.invisible = false, false, false, false
	}
	if len(mayGroup) == 0 {
		t.addPlain("grp", "int")
	}
	t.sourceKey = tableKey{how: noKey}
	if r.IntN(2) == 0 {
		id := t.addPlain("rid", "bigint")
		id.dropped, t.sourceKey = true, tableKey{primaryKey, []*randomColumn{id}}
	}
	count, sum := t.addPlain("amount 1", "int"), t.addPlain("amount 2", "int")
	count.name, count.targetType, count.aggregate = "cnt", "bigint", countOf
	sum.name, sum.targetType, sum.aggregate, sum.sourceNullable, sum.targetNullable = "total", "decimal(30)", sumOf, true, true
	switch r.IntN(4) {
	case 0:
		count.dropped = true
	case 1:
		sum.dropped = true
	}
}

// setGroups makes the key of the target of all columns that rows are grouped by, and lets few values occur in them.
func (t *randomTable) setGroups() {
	t.targetKey = tableKey{how: primaryKey}
	for _, c := range t.columns {
		if c.dropped || c.aggregate != "" {
			continue
		}
		t.targetKey.columns = append(t.targetKey.columns, c)
		for range 8 {
			c.values = append(c.values, c.kind.value(t.r, c.sourceType))
		}
	}
}

// add adds up the rows of the source, each group where its first row is.
func (t *randomTable) add(source []*truthRow) []*truthRow {
	var groups []*truthRow
	members := map[string][]*truthRow{}
	for _, row := range source {
		if members[row.key] == nil {
			groups = append(groups, row)
		}
		members[row.key] = append(members[row.key], row)
	}
	columns := t.compared()
	for i, first := range groups {
		group := *first
		group.forms, group.members = slices.Clone(first.forms), members[first.key]
		for n, c := range columns {
			switch c.aggregate {
			case countOf:
				group.forms[n] = strconv.Itoa(len(group.members))
			case sumOf:
				group.forms[n] = sumForms(group.members, n)
			}
		}
		groups[i] = &group
	}
	return groups
}

// sumForms adds up a column of integers without those that are NULL, which is NULL where all are.
func sumForms(rows []*truthRow, column int) string {
	sum, form := new(big.Int), nullForm
	for _, row := range rows {
		if n, ok := new(big.Int).SetString(row.forms[column], 10); ok {
			form = sum.Add(sum, n).String()
		}
	}
	return form
}

// same says whether two rows that are a pair are equal. Of rows that were added up only the sums are compared: their keys are those of any
// row of the group. VReplication adds NULL as if it were zero.
func (t *randomTable) same(source, target *truthRow) bool {
	if !t.rollup {
		return source.equal(target)
	}
	for i, c := range t.compared() {
		if c.aggregate != "" && orZero(source.forms[i]) != orZero(target.forms[i]) {
			return false
		}
	}
	return true
}

func orZero(form string) string {
	if form == nullForm {
		return "0"
	}
	return form
}

// leftover says whether a row of the target may be what VReplication leaves of a group that has no rows any more. It counts as matching.
func (t *randomTable) leftover(row *truthRow) bool {
	if !t.rollup {
		return false
	}
	for i, c := range t.compared() {
		if c.aggregate != "" && orZero(row.forms[i]) != "0" {
			return false
		}
	}
	return true
}
