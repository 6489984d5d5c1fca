// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package plan

import (
	"strings"

	"vitess.io/vitess/go/sqltypes"
	"vitess.io/vitess/go/vt/sqlparser"
)

// column is a column of the comparison while the plan is being made.
type column struct {
	Column
	// expr is what the source selects.
	expr sqlparser.Expr
	// source is the column of the source whose values these are, one for one; "" when there is none.
	source string
	// constant is true when every row of the source has the same value here.
	constant bool
	// sourceConverted and targetConverted say that the side's query converts the column to utf8mb4.
	sourceConverted bool
	targetConverted bool
}

// setColumns fills b.cols from the rule's select list.
func (b *builder) setColumns() error {
	set := b.setListedColumns
	if b.rule.star {
		set = b.setStarColumns
	}
	if err := set(); err != nil {
		return err
	}
	if err := b.checkShared(); err != nil {
		return err
	}
	b.bringToOneCharset()
	return nil
}

// setStarColumns takes the columns that VReplication writes for a select *: those of the source. They
// come in the target's order. A column that only the target has is filled by MySQL and is nobody's
// difference; a column that only the source has makes VReplication fail.
func (b *builder) setStarColumns() error {
	var missing []string
	for _, c := range b.in.Source.Columns {
		if b.in.Target.Column(c.Name) < 0 {
			missing = append(missing, c.Name)
		}
	}
	if len(missing) > 0 {
		return unfit("table %s: the source table %s has columns that the target table does not have, so that VReplication cannot write its rows: %s: add them to the target or drop them from the source",
			b.in.Target.Name, b.in.Source.Name, strings.Join(missing, ", "))
	}
	for _, target := range b.in.Target.Columns {
		i := b.in.Source.Column(target.Name)
		if i < 0 {
			continue
		}
		source := b.in.Source.Columns[i]
		c := b.addColumn(target, sqlparser.NewColName(source.Name), source.ColumnType)
		c.source = source.Name
		// VReplication converts only the columns that it finds itself to be DATETIME on the source,
		// which it does for select * and for nothing else.
		c.TimeZones = source.Type == sqltypes.Datetime && b.in.SourceTimeZone != "" && b.in.TargetTimeZone != ""
	}
	if len(b.cols) == 0 {
		return unfit("table %s: it has no column in common with the source table %s", b.in.Target.Name, b.in.Source.Name)
	}
	return nil
}

func (b *builder) addColumn(target ColumnSchema, expr sqlparser.Expr, source ColumnType) *column {
	c := &column{Column: Column{Name: target.Name, Source: source, Target: target.ColumnType, Generated: target.Generated, AutoIncrement: target.AutoIncrement}, expr: expr}
	b.cols = append(b.cols, c)
	return c
}

// setListedColumns takes the columns of an explicit select list.
func (b *builder) setListedColumns() error {
	table := b.in.Target.Name
	seen := make(map[string]bool)
	for _, selectExpr := range b.rule.sel.GetColumns() {
		aliased, ok := selectExpr.(*sqlparser.AliasedExpr)
		if !ok {
			return unsupported("table %s: the workflow's rule selects %s, which cannot be compared", table, sqlparser.String(selectExpr))
		}
		name := aliased.As.String()
		if name == "" {
			plain, ok := aliased.Expr.(*sqlparser.ColName)
			if !ok {
				return invalid("table %s: the workflow's rule selects %s without an alias", table, sqlparser.String(selectExpr))
			}
			name = plain.Name.String()
		}
		i := b.in.Target.Column(name)
		if i < 0 {
			return unfit("table %s: the workflow's rule fills column %s, which the target table does not have", table, name)
		}
		if lower := strings.ToLower(name); seen[lower] {
			return invalid("table %s: the workflow's rule fills column %s twice", table, name)
		} else {
			seen[lower] = true
		}
		if err := b.addExpression(b.in.Target.Columns[i], aliased.Expr); err != nil {
			return err
		}
	}
	return nil
}

// addExpression adds one column of an explicit select list. VStreamRows knows few expressions; where
// one of them or the bare column gives what VReplication wrote, it is asked for that.
func (b *builder) addExpression(target ColumnSchema, expr sqlparser.Expr) error {
	switch e := expr.(type) {
	case *sqlparser.ColName:
		return b.addSourceColumn(target, e)
	case *sqlparser.Literal:
		// VStreamRows returns the integer 1 and no other literal.
		if e.Type == sqlparser.IntVal && e.Val == "1" {
			c := b.addColumn(target, e, ColumnType{Type: sqltypes.Int64, ColumnType: "bigint"})
			c.constant = true
			return nil
		}
	case *sqlparser.ConvertUsingExpr:
		if inner, ok := e.Expr.(*sqlparser.ColName); ok {
			if err := b.addSourceColumn(target, inner); err != nil {
				return err
			}
			// Whatever charset the rule names, VStreamRows sends utf8mb4.
			b.cols[len(b.cols)-1].convertSource(b.in)
			return nil
		}
	case *sqlparser.CountStar:
		c := b.addColumn(target, sqlparser.NewIntLiteral("1"), target.ColumnType)
		c.Aggregate = AggregateCount
		return nil
	case *sqlparser.Sum:
		if inner, ok := e.Arg.(*sqlparser.ColName); ok && !e.Distinct {
			if err := b.addSourceColumn(target, inner); err != nil {
				return err
			}
			c := b.cols[len(b.cols)-1]
			c.source, c.Aggregate = "", AggregateSum
			return nil
		}
	case *sqlparser.FuncExpr:
		if done, err := b.addFunction(target, e); done || err != nil {
			return err
		}
	}
	return unsupported("table %s: the workflow's rule computes column %s as %s, which a row stream cannot return: leave the table out of the comparison with --tables",
		b.in.Target.Name, target.Name, sqlparser.String(expr))
}

// addFunction adds a column made by a function, if it is one that can be asked for.
func (b *builder) addFunction(target ColumnSchema, f *sqlparser.FuncExpr) (bool, error) {
	var first *sqlparser.ColName
	if len(f.Exprs) > 0 {
		first, _ = f.Exprs[0].(*sqlparser.ColName)
	}
	switch name := f.Name.Lowered(); {
	case name == keyspaceID && len(f.Exprs) == 0:
		b.addColumn(target, f, ColumnType{Type: sqltypes.VarBinary, ColumnType: "varbinary"})
		return true, nil
	case name == "concat" && len(f.Exprs) == 1 && first != nil:
		// Online DDL's way to say "the text of this ENUM, SET or integer": a row stream sends the text
		// of the bare column anyway.
		return true, b.addSourceColumn(target, first)
	case name == convertTZ && len(f.Exprs) == 3 && first != nil:
		if err := b.addSourceColumn(target, first); err != nil {
			return true, err
		}
		// Several times of the source may become one on the target, so no source is set.
		c := b.cols[len(b.cols)-1]
		c.expr, c.source = f, ""
		return true, nil
	}
	return false, nil
}

func (b *builder) addSourceColumn(target ColumnSchema, name *sqlparser.ColName) error {
	i := b.in.Source.Column(name.Name.String())
	if i < 0 || !name.Qualifier.IsEmpty() {
		return unfit("table %s: the workflow's rule reads column %s, which the source table %s does not have",
			b.in.Target.Name, sqlparser.String(name), b.in.Source.Name)
	}
	source := b.in.Source.Columns[i]
	c := b.addColumn(target, sqlparser.NewColName(source.Name), source.ColumnType)
	c.source = source.Name
	return nil
}

// checkShared handles columns of the source that several columns are made of. VStreamRows applies a
// function to the column that it reads, so it applies to all of them.
func (b *builder) checkShared() error {
	uses := make(map[string][]*column)
	for _, c := range b.cols {
		if name := c.reads(); name != "" {
			uses[strings.ToLower(name)] = append(uses[strings.ToLower(name)], c)
		}
	}
	for _, shared := range uses {
		converted := false
		for _, c := range shared {
			converted = converted || c.sourceConverted
			if _, ok := c.expr.(*sqlparser.FuncExpr); ok && len(shared) > 1 {
				return unsupported("table %s: the workflow's rule reads source column %s both with and without %s, which a row stream cannot do: leave the table out of the comparison with --tables",
					b.in.Target.Name, c.reads(), convertTZ)
			}
		}
		for _, c := range shared {
			if converted {
				c.convertSource(b.in)
			}
		}
	}
	return nil
}

// reads returns the one column of the source that the expression reads, "" for none.
func (c *column) reads() string {
	switch e := c.expr.(type) {
	case *sqlparser.ColName:
		return e.Name.String()
	case *sqlparser.ConvertUsingExpr:
		return e.Expr.(*sqlparser.ColName).Name.String()
	case *sqlparser.FuncExpr:
		if e.Name.Lowered() == convertTZ {
			return e.Exprs[0].(*sqlparser.ColName).Name.String()
		}
	}
	return ""
}

// sourceSelect is the column's entry in the source's select list.
func (c *column) sourceSelect() sqlparser.SelectExpr {
	aliased := &sqlparser.AliasedExpr{Expr: c.expr}
	switch e := c.expr.(type) {
	case *sqlparser.ColName:
		if !e.Name.EqualString(c.Name) {
			aliased.As = sqlparser.NewIdentifierCI(c.Name)
		}
	case *sqlparser.ConvertUsingExpr, *sqlparser.Literal:
		aliased.As = sqlparser.NewIdentifierCI(c.Name)
	case *sqlparser.FuncExpr:
		if read := c.reads(); read != "" {
			// VStreamRows puts the function in the place of the column that the alias names.
			aliased.As = sqlparser.NewIdentifierCI(read)
		}
	}
	return aliased
}

// targetSelect is the column's entry in the target's select list.
func (c *column) targetSelect(in Input) sqlparser.SelectExpr {
	aliased := &sqlparser.AliasedExpr{Expr: c.targetExpr(in)}
	if _, plain := aliased.Expr.(*sqlparser.ColName); !plain {
		aliased.As = sqlparser.NewIdentifierCI(c.Name)
	}
	return aliased
}

// targetExpr is what the target selects.
func (c *column) targetExpr(in Input) sqlparser.Expr {
	name := sqlparser.NewColName(c.Name)
	switch {
	case c.TimeZones:
		return c.broughtBack(in)
	case c.targetConverted:
		return &sqlparser.ConvertUsingExpr{Expr: name, Type: utf8mb4}
	}
	return name
}

// broughtBack is a time of the target in the source's time zone, as long as VReplication makes the same time of that again. Two hours
// of the target are one on the source when clocks are set back, and a zero date is NULL in another zone: one that VReplication did not
// write becomes a time that no row of the source has.
//
// The source's time is not converted instead: VStreamRows would decide by the converted time which rows are in a key range, and a
// source need not have the tables of time zones that VReplication uses on the target.
func (c *column) broughtBack(in Input) sqlparser.Expr {
	name, source, target := sqlparser.NewColName(c.Name), sqlparser.NewStrLiteral(in.SourceTimeZone), sqlparser.NewStrLiteral(in.TargetTimeZone)
	again := sqlparser.NewFuncExpr(convertTZ, sqlparser.NewFuncExpr(convertTZ, name, target, source), source, target)
	isNull := &sqlparser.IsExpr{Left: name, Right: sqlparser.IsNullOp}
	same := &sqlparser.ComparisonExpr{Operator: sqlparser.EqualOp, Left: again, Right: name}
	precision := datetimePrecision
	wrong := &sqlparser.CastExpr{Expr: sqlparser.NewStrLiteral(wrongTime), Type: &sqlparser.ConvertType{Type: "datetime", Length: &precision}}
	// The outermost function has to be one that VStreamRows knows.
	return sqlparser.NewFuncExpr(convertTZ, sqlparser.NewFuncExpr("if", &sqlparser.OrExpr{Left: isNull, Right: same}, name, wrong), target, source)
}

const (
	// wrongTime is before the times that MySQL converts, so that it stays as it is.
	wrongTime         = "1000-01-01 00:00:00.271828"
	datetimePrecision = 6
)
