// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package plan

import (
	"strings"

	"vitess.io/vitess/go/sqltypes"
	"vitess.io/vitess/go/vt/sqlparser"
)

// bringToOneCharset makes MySQL convert text to utf8mb4 where the two sides store it in charsets whose
// bytes differ. Every charset of MySQL goes into utf8mb4 without loss, and MySQL knows all of them.
//
// VStreamRows applies the where clause of its query to the values that it has read, converted ones
// included. A column that rows are filtered by, above all the input of a vindex, therefore stays as it
// is: converted, it would let other rows pass than VReplication does.
func (b *builder) bringToOneCharset() {
	filtered, all := b.filteredBy()
	for _, c := range b.cols {
		if all || filtered[strings.ToLower(c.reads())] || !c.differs() || IsUTF8(c.Source.charset()) {
			continue
		}
		for _, other := range b.cols {
			// VStreamRows converts a column for every place where it is selected.
			if other.reads() == c.reads() {
				other.convertSource(b.in)
			}
		}
	}
	for _, c := range b.cols {
		if c.differs() && !filtered[strings.ToLower(c.reads())] {
			c.convertTarget(b.in)
		}
		c.SourceExpr = sqlparser.String(c.expr)
		c.TargetExpr = sqlparser.String(c.targetExpr(b.in))
	}
}

// filteredBy returns the columns of the source, lower case, that the rule's where clause reads; all
// when they are not known because a vindex of the table's VSchema is asked.
func (b *builder) filteredBy() (columns map[string]bool, all bool) {
	columns = make(map[string]bool)
	visit := func(node sqlparser.SQLNode) (bool, error) {
		switch n := node.(type) {
		case *sqlparser.ColName:
			columns[n.Name.Lowered()] = true
		case *sqlparser.FuncExpr:
			all = all || n.Name.EqualString(inKeyRange) && len(n.Exprs) == 1
		}
		return true, nil
	}
	if b.rule.sel.Where != nil {
		// visit returns no error.
		_ = sqlparser.Walk(visit, b.rule.sel.Where)
	}
	for _, c := range b.cols {
		f, ok := c.expr.(*sqlparser.FuncExpr)
		all = all || ok && f.Name.EqualString(keyspaceID)
	}
	return columns, all
}

// differs says whether the same text has different bytes on the two sides.
func (c *column) differs() bool {
	return !sameBytes(c.Source.charset(), c.Target.charset())
}

// charset returns the charset in which values arrive: MySQL prints numbers, dates and JSON in utf8mb4, and converts them when
// they are written into text of another one.
func (t *ColumnType) charset() string {
	switch {
	case hasCharset(t.Type):
		return t.Charset
	case isBytes(t.Type), t.Type == sqltypes.Bit, t.Type == sqltypes.Geometry, t.Type == sqltypes.Vector:
		return "binary"
	}
	return utf8mb4
}

// convertSource makes the source's query convert the column.
func (c *column) convertSource(in Input) {
	if name, ok := c.expr.(*sqlparser.ColName); ok {
		c.expr = &sqlparser.ConvertUsingExpr{Expr: name, Type: utf8mb4}
	}
	c.sourceConverted = true
	c.Source.setUTF8(in)
}

func (c *column) convertTarget(in Input) {
	if !IsUTF8(c.Target.charset()) {
		c.targetConverted = true
		c.Target.setUTF8(in)
	}
}

func (t *ColumnType) setUTF8(in Input) {
	if hasCharset(t.Type) {
		t.Charset = utf8mb4
		t.Collation = in.Collations.DefaultCollationForCharset(utf8mb4)
	}
}

// sameBytes says whether the same text has the same bytes in both charsets.
func sameBytes(a, b string) bool {
	return a == b || a == "binary" || b == "binary" || IsUTF8(a) && IsUTF8(b)
}

// IsUTF8 says whether text of a charset is valid utf8mb4 as it is.
func IsUTF8(charset string) bool {
	switch charset {
	case utf8mb4, "utf8mb3", "utf8", "ascii":
		return true
	}
	return false
}
