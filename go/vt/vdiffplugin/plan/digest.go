// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"
	"strings"

	"vitess.io/vitess/go/sqltypes"
	"vitess.io/vitess/go/vt/sqlparser"

	querypb "vitess.io/vitess/go/vt/proto/query"
)

// Digest says how the rows of a table are compared without their leaving MySQL's side: both sides select the same
// columns in one form, in which equal bytes mean equal values.
type Digest struct {
	Source, Target DigestSide
	// Ranged is true when both sides can be asked for the rows between two keys, and put them in the same order:
	// Key then is what ranges are in. NotRanged says why otherwise; then a table can be read as a whole only.
	Ranged    bool
	NotRanged string
	// BucketKey has the columns that decide on the bucket of a row where the table is not Ranged, nil for all: the
	// bytes of these columns are equal on both sides when the keys are.
	BucketKey []int
	// Proof says what equal digests prove while the workflow runs. A table that is Ranged has ProofAnyTime.
	Proof Proof
}

// DigestSide is what one side is asked for.
type DigestSide struct {
	// Columns are SQL expressions, in the order of Table.Columns.
	Columns []string
	// Key has the names of the columns of Table.Key on this side, and Index the name of an index that has exactly
	// these, in this order. Set when the table is Ranged.
	Key   []string
	Index string
	// Where is Table.SourceFilter or Table.TargetFilter.
	Where string
	// KeyRange is the rule's in_keyrange condition, nil where there is none: the target has none.
	KeyRange *InKeyRange
}

// InKeyRange is an in_keyrange condition of a rule.
type InKeyRange struct {
	// Columns are the inputs of the vindex as indexes in Table.Columns, and Vindex its name, perhaps with a keyspace, or its
	// type. Without any the vindex is the best one of the source's table in its VSchema, which Table.SourceColumn helps
	// to find.
	Columns  []int
	Vindex   string
	KeyRange string
}

// SourceColumn returns the column of the comparison that selects a column of the source as it is, -1 for none.
func (t *Table) SourceColumn(name string) int {
	return slices.IndexFunc(t.Columns, func(c Column) bool { return c.SourceName != "" && strings.EqualFold(c.SourceName, name) })
}

// digest returns how the table can be compared by digests, or why it cannot.
func (b *builder) digest(k *keys) (*Digest, string) {
	if b.grouped() {
		return nil, "the rule groups rows"
	}
	if b.disagree != "" {
		return nil, fmt.Sprintf("MySQL and VReplication may choose other rows by its condition %s", b.disagree)
	}
	if i := slices.IndexFunc(b.cols, func(c *column) bool { return c.Target.Type == sqltypes.TypeJSON }); i >= 0 && b.in.PartialJSON {
		// An event is then applied to what the target has, and leaves another value where that was another one: equal digests
		// at unlike positions prove nothing.
		return nil, fmt.Sprintf("a source writes only parts of column %s to its binary log (binlog_row_value_options)", b.cols[i].Name)
	}
	d := &Digest{}
	for _, c := range b.cols {
		source, target, why := c.digest(b.in)
		if why != "" {
			return nil, fmt.Sprintf("column %s %s", c.Name, why)
		}
		d.Source.Columns = append(d.Source.Columns, sqlparser.String(source))
		d.Target.Columns = append(d.Target.Columns, sqlparser.String(target))
	}
	d.Source.Where, d.Target.Where = conditions(b.filter), conditions(b.targetFilter)
	in, why := b.inKeyRange()
	if why != "" {
		return nil, why
	}
	d.Source.KeyRange = in
	b.setProof(d, k)
	d.NotRanged = b.setRanges(d, k)
	d.Ranged = d.NotRanged == ""
	return d, ""
}

// setRanges sets the keys and indexes that ranges are read by, or says why there are none.
func (b *builder) setRanges(d *Digest, k *keys) string {
	switch {
	case !k.unique:
		return "it has no unique key on both sides"
	case !k.ordered:
		return k.notOrdered
	case b.keyMoves(k):
		return "VReplication writes its rows by another key"
	case !slices.Equal(k.sourceKey, k.key) || !slices.Equal(k.targetKey, k.key):
		return "the sides are not ordered by the same columns"
	}
	var source, target []string
	for _, i := range k.key {
		c := b.cols[i]
		if c.source == "" {
			return fmt.Sprintf("key column %s is computed", c.Name)
		}
		source, target = append(source, c.source), append(target, c.Name)
	}
	d.Source.Key, d.Source.Index = source, b.in.Source.indexOf(source)
	d.Target.Key, d.Target.Index = target, b.in.Target.indexOf(target)
	if d.Source.Index == "" || d.Target.Index == "" {
		return "there is no index of exactly the key's columns on both sides"
	}
	return ""
}

// indexOf returns the name of a unique index of exactly these columns, the primary key before others, "" for none.
func (t *TableSchema) indexOf(columns []string) string {
	name := ""
	for _, index := range t.Unique {
		if !index.Prefix && !index.Invisible && equalNames(index.Columns, columns) && (name == "" || strings.EqualFold(index.Name, "PRIMARY")) {
			name = index.Name
		}
	}
	return name
}

// inKeyRange returns the rule's in_keyrange condition.
func (b *builder) inKeyRange() (in *InKeyRange, why string) {
	if b.rule.sel.Where == nil {
		return nil, ""
	}
	for _, expr := range sqlparser.SplitAndExpression(nil, b.rule.sel.Where.Expr) {
		f, ok := expr.(*sqlparser.FuncExpr)
		if !ok || !f.Name.EqualString(inKeyRange) {
			continue
		}
		if in != nil {
			return nil, "the rule has more than one in_keyrange condition"
		}
		if in, why = b.newInKeyRange(f.Exprs); why != "" {
			return nil, why
		}
	}
	return in, ""
}

func (b *builder) newInKeyRange(args []sqlparser.Expr) (*InKeyRange, string) {
	const malformed = "its in_keyrange condition is not of a form that is known"
	text := func(expr sqlparser.Expr) (string, bool) {
		literal, ok := expr.(*sqlparser.Literal)
		if !ok {
			return "", false
		}
		return literal.Val, true
	}
	in, ok := &InKeyRange{}, false
	switch {
	case len(args) == 1:
		in.KeyRange, ok = text(args[0])
		if !ok {
			return nil, malformed
		}
		return in, ""
	case len(args) < 3:
		return nil, malformed
	}
	if in.KeyRange, ok = text(args[len(args)-1]); !ok {
		return nil, malformed
	}
	if in.Vindex, ok = text(args[len(args)-2]); !ok {
		return nil, malformed
	}
	for _, arg := range args[:len(args)-2] {
		name, ok := arg.(*sqlparser.ColName)
		if !ok {
			return nil, malformed
		}
		i := b.projection(name.Name.String())
		if i < 0 {
			return nil, fmt.Sprintf("rows are filtered by column %s, which is not compared", name.Name.String())
		}
		in.Columns = append(in.Columns, i)
	}
	return in, ""
}

// digest returns what both sides select for a column, or why there is no form in which equal bytes mean equal values
// and equal values have, as a rule, equal bytes.
func (c *column) digest(in Input) (source, target sqlparser.Expr, why string) {
	source, target = c.expr, c.targetExpr(in)
	if _, computed := c.expr.(*sqlparser.FuncExpr); computed {
		return nil, nil, "is computed on the source"
	}
	s, t := c.Source.Type, c.Target.Type
	integers := sqltypes.IsIntegral(s) && sqltypes.IsIntegral(t) && s != sqltypes.Year && t != sqltypes.Year
	differ := fmt.Sprintf("is %s on the source and %s on the target", c.Source.ColumnType, c.Target.ColumnType)
	switch {
	case integers && s == t && !c.constant:
		return source, target, ""
	case integers && sqltypes.IsUnsigned(s) == sqltypes.IsUnsigned(t):
		return widest(source, s), widest(target, t), ""
	case c.constant:
		return nil, nil, differ
	case s == sqltypes.Float32 && t == sqltypes.Float32:
		// The copy phase carries a FLOAT as MySQL prints it, which is fewer digits than it has.
		return asText(source), asText(target), ""
	case hasCharset(s) && hasCharset(t):
		if !sameBytes(c.Source.Charset, c.Target.Charset) {
			return nil, nil, differ
		}
		return source, target, ""
	case isPointInTime(s) && isPointInTime(t), isBytes(s) && isBytes(t):
		return source, target, ""
	case s == t && (!sqltypes.IsDecimal(s) || c.Source.ColumnType == c.Target.ColumnType):
		return source, target, ""
	}
	return nil, nil, differ
}

// widest casts an integer to 64 bits.
func widest(expr sqlparser.Expr, t querypb.Type) sqlparser.Expr {
	as := "signed"
	if sqltypes.IsUnsigned(t) {
		as = "unsigned"
	}
	return &sqlparser.CastExpr{Expr: expr, Type: &sqlparser.ConvertType{Type: as}}
}

func asText(expr sqlparser.Expr) sqlparser.Expr {
	return &sqlparser.CastExpr{Expr: expr, Type: &sqlparser.ConvertType{Type: "char"}}
}

// isPointInTime says whether MySQL sends values of a type in the form that a DATETIME has.
func isPointInTime(t querypb.Type) bool {
	return t == sqltypes.Datetime || t == sqltypes.Timestamp || t == sqltypes.Date
}

// isBytes says whether values of a type are strings of bytes, or text that can be compared with such.
func isBytes(t querypb.Type) bool {
	switch t {
	case sqltypes.Binary, sqltypes.VarBinary, sqltypes.Blob:
		return true
	}
	return false
}
