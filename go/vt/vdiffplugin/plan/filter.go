// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"
	"strings"

	"vitess.io/vitess/go/sqltypes"
	"vitess.io/vitess/go/vt/sqlparser"
)

// setFilters splits the rule's where clause and says the part of it that is not about key ranges in
// the columns of the target: a workflow of one tenant fills a part of a table that others fill too.
// What MySQL and VReplication do not agree on becomes conditions that the arriving rows are put to.
func (b *builder) setFilters() {
	if b.rule.sel.Where == nil {
		return
	}
	for _, expr := range sqlparser.SplitAndExpression(nil, b.rule.sel.Where.Expr) {
		if f, ok := expr.(*sqlparser.FuncExpr); ok && f.Name.EqualString(inKeyRange) {
			b.sourceWhere = append(b.sourceWhere, expr)
			continue
		}
		onSource, onTarget, agreed := b.judges(expr)
		if !agreed && b.disagree == "" {
			b.disagree = sqlparser.String(expr)
		}
		if onSource == nil {
			b.filter, b.sourceWhere = append(b.filter, expr), append(b.sourceWhere, expr)
		} else {
			b.sourceConditions = append(b.sourceConditions, *onSource)
		}
		if onTarget != nil {
			b.targetConditions = append(b.targetConditions, *onTarget)
			continue
		}
		// A condition on a column that the target does not have cannot be said to it. Nobody who fills
		// the table through another workflow could say it either: the whole table is compared, and rows
		// of others are extra. Groups are made of the rows that pass the filter anyway.
		if translated, unknown := b.translate(expr); unknown == "" {
			b.targetFilter = append(b.targetFilter, translated)
		}
	}
}

// judges says how rows are chosen by a condition on each side: by their row stream, or by a Condition when there is one. agreed says
// that the streams' MySQL alone could do it.
//
// The source sends a column that the rule does not select for this alone. What the rule converts cannot be had as it is: then the
// streams choose, and do not see rows that MySQL alone would leave out.
func (b *builder) judges(expr sqlparser.Expr) (onSource, onTarget *Condition, agreed bool) {
	name, t, ok := parseTest(expr)
	i := b.in.Source.Column(name)
	if !ok || i < 0 {
		return nil, nil, false
	}
	source := b.in.Source.Columns[i].ColumnType
	agreed = t.exact(source, b.in.Collations)
	condition := Condition{SQL: sqlparser.String(expr), test: t, env: b.in.Collations}
	n := b.projection(name)
	if n < 0 || b.cols[n].sourceConverted {
		if agreed || t.narrow(source) || b.converts(name) {
			return nil, nil, agreed
		}
		condition.Column = len(b.cols) + b.judged(b.in.Source.Columns[i].Name)
		return &condition, nil, false
	}
	c := b.cols[n]
	condition.Column = n
	if !agreed && !t.narrow(source) {
		onSource = &condition
	}
	if _, unknown := b.translate(expr); unknown != "" || t.form == isNull || t.form == isNotNull {
		return onSource, nil, agreed
	}
	target := b.in.Target.Columns[b.in.Target.Column(c.Name)].ColumnType
	alike := isString(source.Type) == isString(target.Type) && (!isString(source.Type) || source.Collation == target.Collation)
	exact := agreed && alike && t.exact(target, b.in.Collations)
	if !exact && !(alike && t.narrow(source) && t.narrow(target)) {
		like := condition
		text := hasCharset(source.Type) && hasCharset(target.Type)
		like.LikeSource = text && sameBytes(source.Charset, target.Charset) || !text && source.Type == target.Type
		onTarget = &like
	}
	return onSource, onTarget, exact
}

// converts says whether the source converts a column for one of those that are compared: a row stream does so wherever it sends it.
func (b *builder) converts(source string) bool {
	return slices.ContainsFunc(b.cols, func(c *column) bool {
		_, function := c.expr.(*sqlparser.FuncExpr)
		return strings.EqualFold(c.reads(), source) && (function || c.sourceConverted)
	})
}

// judged returns the index in b.judgedColumns of a column of the source that is sent to be judged only.
func (b *builder) judged(source string) int {
	if i := slices.Index(b.judgedColumns, source); i >= 0 {
		return i
	}
	b.judgedColumns = append(b.judgedColumns, source)
	return len(b.judgedColumns) - 1
}

// translate returns expr with the target's column names. unknown is the column of the source that no
// column of the target has the values of.
func (b *builder) translate(expr sqlparser.Expr) (translated sqlparser.Expr, unknown string) {
	rewritten := sqlparser.Rewrite(sqlparser.Clone(expr), nil, func(cursor *sqlparser.Cursor) bool {
		name, ok := cursor.Node().(*sqlparser.ColName)
		if !ok {
			return true
		}
		i := b.projection(name.Name.String())
		if i < 0 || b.cols[i].TimeZones || b.grouped() && !b.inGroup(b.cols[i]) {
			unknown = name.Name.String()
			return false
		}
		cursor.Replace(sqlparser.NewColName(b.cols[i].Name))
		return true
	})
	return rewritten.(sqlparser.Expr), unknown
}

// projection returns the column that has the values of a column of the source, -1 for none.
func (b *builder) projection(source string) int {
	return slices.IndexFunc(b.cols, func(c *column) bool { return c.source != "" && strings.EqualFold(c.source, source) })
}

func (b *builder) grouped() bool { return b.rule.sel.GroupBy != nil }

// inGroup says whether the rule groups by the column.
func (b *builder) inGroup(c *column) bool {
	return slices.ContainsFunc(b.rule.sel.GroupBy.Exprs, func(expr sqlparser.Expr) bool {
		name, ok := expr.(*sqlparser.ColName)
		return ok && name.Name.EqualString(c.Name)
	})
}

// pinned returns the columns that conditions of the form "column = literal" give one value, lower case.
// Only an equality in the column's own domain counts: then all rows that pass are equal under the
// order that MySQL sorts the column by, so that the column decides nothing.
func pinned(table *TableSchema, conditions []sqlparser.Expr) map[string]bool {
	names := make(map[string]bool)
	for _, expr := range conditions {
		comparison, ok := expr.(*sqlparser.ComparisonExpr)
		if !ok || comparison.Operator != sqlparser.EqualOp {
			continue
		}
		name, isColumn := comparison.Left.(*sqlparser.ColName)
		literal, isLiteral := comparison.Right.(*sqlparser.Literal)
		if !isColumn || !isLiteral {
			continue
		}
		i := table.Column(name.Name.String())
		if i < 0 {
			continue
		}
		t := table.Columns[i].Type
		exact := literal.Type == sqlparser.IntVal || literal.Type == sqlparser.DecimalVal
		if isNumber(t) && exact || sqltypes.IsTextOrBinary(t) && literal.Type == sqlparser.StrVal {
			names[name.Name.Lowered()] = true
		}
	}
	return names
}
