// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package plan

import (
	"vitess.io/vitess/go/textutil"
	"vitess.io/vitess/go/vt/key"
	"vitess.io/vitess/go/vt/sqlparser"

	binlogdatapb "vitess.io/vitess/go/vt/proto/binlogdata"
)

// parsedRule is a rule of any form as the select statement that it stands for.
type parsedRule struct {
	sel    *sqlparser.Select
	source string
	// star is true for "select *", whose columns VReplication learns from the source.
	star bool
}

// parseRule reads the filter of the rule that matched a table of the target: empty, a key range or a
// select statement.
func parseRule(rule *binlogdatapb.Rule, table string, parser *sqlparser.Parser) (*parsedRule, error) {
	all := &sqlparser.Select{From: tableExprs(table)}
	all.AddSelectExpr(&sqlparser.StarExpr{})
	switch {
	case rule.Filter == "":
		return &parsedRule{sel: all, source: table, star: true}, nil
	case key.IsValidKeyRange(rule.Filter):
		in := sqlparser.NewFuncExpr(inKeyRange, sqlparser.NewStrLiteral(rule.Filter))
		all.Where = sqlparser.NewWhere(sqlparser.WhereClause, in)
		return &parsedRule{sel: all, source: table, star: true}, nil
	}

	statement, err := parser.Parse(rule.Filter)
	if err != nil {
		return nil, invalid("table %s: the workflow's rule cannot be parsed: %v", table, err)
	}
	sel, ok := statement.(*sqlparser.Select)
	if !ok || sel.Distinct || len(sel.From) != 1 {
		return nil, invalid("table %s: the workflow's rule is not a plain select from one table: %s", table, rule.Filter)
	}
	from, ok := sel.From[0].(*sqlparser.AliasedTableExpr)
	if !ok || sqlparser.GetTableName(from.Expr).IsEmpty() {
		return nil, invalid("table %s: the workflow's rule does not select from a table: %s", table, rule.Filter)
	}
	p := &parsedRule{sel: sel, source: sqlparser.GetTableName(from.Expr).String()}
	for _, expr := range sel.GetColumns() {
		star, ok := expr.(*sqlparser.StarExpr)
		if !ok {
			continue
		}
		if sel.GetColumnCount() != 1 || !star.TableName.IsEmpty() {
			return nil, invalid("table %s: the workflow's rule mixes * with other columns: %s", table, rule.Filter)
		}
		p.star = true
	}
	if p.star && sel.GroupBy != nil {
		return nil, invalid("table %s: the workflow's rule groups the rows of a select *: %s", table, rule.Filter)
	}
	return p, nil
}

// orderedBy returns the columns that the rule's own directive makes the source's rows come ordered by,
// nil when it has none.
func (p *parsedRule) orderedBy() []string {
	if p.sel.Comments == nil {
		return nil
	}
	list, found := p.sel.Comments.Directives().GetString(directiveColumns, "")
	if !found {
		return nil
	}
	columns, err := textutil.SplitUnescape(list, ",")
	if err != nil {
		return nil
	}
	return columns
}

func tableExprs(table string) sqlparser.TableExprs {
	return sqlparser.TableExprs{sqlparser.NewAliasedTableExpr(sqlparser.NewTableName(table), "")}
}
