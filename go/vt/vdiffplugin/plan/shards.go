// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"
	"strings"
)

// Unlike says in what a table of one source shard differs from the same table of another one so that one plan cannot hold for
// both: in a column, or in the columns of a key. It is "" when they are alike; the order of the columns does not matter. Either
// may be nil: the shard has no such table.
func Unlike(a, b *TableSchema) string {
	switch {
	case a == nil && b == nil:
		return ""
	case a == nil || b == nil:
		return "only one of them has the table"
	}
	for i := range a.Columns {
		one := &a.Columns[i]
		n := b.Column(one.Name)
		if n < 0 {
			return fmt.Sprintf("only one of them has column %s", one.Name)
		}
		if x, y := one.describe(), b.Columns[n].describe(); x != y {
			return fmt.Sprintf("column %s is %s and %s", one.Name, x, y)
		}
	}
	for i := range b.Columns {
		if a.Column(b.Columns[i].Name) < 0 {
			return fmt.Sprintf("only one of them has column %s", b.Columns[i].Name)
		}
	}
	if a.KeyUnique != b.KeyUnique || a.KeyUnique && !equalNames(a.Key, b.Key) {
		return fmt.Sprintf("the key is (%s) and (%s)", strings.Join(a.Key, ", "), strings.Join(b.Key, ", "))
	}
	for _, sides := range [][2]*TableSchema{{a, b}, {b, a}} {
		for _, index := range sides[0].Unique {
			same := func(other UniqueIndex) bool {
				return index.Prefix == other.Prefix && equalNames(index.Columns, other.Columns)
			}
			if !slices.ContainsFunc(sides[1].Unique, same) {
				return fmt.Sprintf("only one of them has a unique index of (%s)", strings.Join(index.Columns, ", "))
			}
		}
	}
	return ""
}

// sameName returns the name of a charset or a collation that all versions of MySQL mean by it: older ones say utf8 for utf8mb3.
func sameName(name string) string {
	if rest, ok := strings.CutPrefix(name, "utf8"); ok && (rest == "" || rest[0] == '_') {
		return "utf8mb3" + rest
	}
	return name
}

// describe returns the type of a column with everything that decides how it is compared.
func (c *ColumnSchema) describe() string {
	text := c.declared()
	if c.Charset != "" {
		charset, collation := sameName(c.Charset), sameName(c.Stored.Collation)
		text += " character set " + charset + " collate " + collation
	}
	if c.Generated {
		text += " generated"
	}
	if c.Invisible {
		text += " invisible"
	}
	return text
}
