// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package plan

import (
	"vitess.io/vitess/go/mysql/collations"
	"vitess.io/vitess/go/vt/sqlparser"

	binlogdatapb "vitess.io/vitess/go/vt/proto/binlogdata"
)

const (
	inKeyRange = "in_keyrange"
	convertTZ  = "convert_tz"
	keyspaceID = "keyspace_id"

	// What VStreamRows reads out of a query's /*vt+ */ comment: the columns to order by, and the index
	// that has them. Both are escaped as in a URL.
	directiveColumns = "ukColumns"
	directiveIndex   = "ukForce"

	utf8mb4 = "utf8mb4"
)

// Input is what the plan of a table is made of.
type Input struct {
	// Rule is the rule that matched the table, see Select.
	Rule *binlogdatapb.Rule
	// Target is the table on the target; Source is the one that Selection.SourceName names, nil when
	// the source has none of that name.
	Target *TableSchema
	Source *TableSchema
	// SourceTimeZone and TargetTimeZone are those of the stream's BinlogSource.
	SourceTimeZone string
	TargetTimeZone string
	// Reference says that every source shard holds a copy of the whole table.
	Reference bool
	// PartialJSON says that the table has TableSchema.PartialJSON on a source shard.
	PartialJSON bool
	// SourceShards is how many streams the source's rows come in.
	SourceShards int
	Parser       *sqlparser.Parser
	Collations   *collations.Environment
}

// builder is one Build.
type builder struct {
	in   Input
	rule *parsedRule
	cols []*column
	// filter has the rule's conditions apart from key ranges: in the source's columns, and those of
	// them that hold for the target's rows in the target's columns.
	filter       []sqlparser.Expr
	targetFilter []sqlparser.Expr
	// sourceWhere is filter with the key ranges, in the order of the rule.
	sourceWhere []sqlparser.Expr
	// The conditions that are put to arriving rows instead.
	sourceConditions, targetConditions []Condition
	// judgedColumns are the columns that the source sends for sourceConditions only.
	judgedColumns []string
	// disagree is the first condition about which MySQL and VReplication may disagree.
	disagree string
}

// Build makes the plan of one table. Its errors are permanent and name the table.
func Build(in Input) (*Table, error) {
	rule, err := parseRule(in.Rule, in.Target.Name, in.Parser)
	if err != nil {
		return nil, err
	}
	if in.Source == nil {
		return nil, unfit("table %s: its source table %s does not exist: create it again, or leave the table out of the comparison with --tables",
			in.Target.Name, rule.source)
	}
	b := &builder{in: in, rule: rule}
	if err := b.setColumns(); err != nil {
		return nil, err
	}
	b.setFilters()
	k, err := b.keys()
	if err != nil {
		return nil, err
	}

	t := &Table{
		Name:         in.Target.Name,
		SourceName:   rule.source,
		SourceQuery:  b.sourceQuery(k),
		TargetQuery:  b.targetQuery(k),
		Key:          k.key,
		KeyUnique:    k.unique,
		KeyMoves:     b.keyMoves(k),
		Ordered:      k.ordered,
		NotOrdered:   k.notOrdered,
		Mergeable:    k.mergeable,
		Aggregated:   rule.sel.GroupBy != nil,
		Reference:    in.Reference,
		SourceFilter: conditions(b.filter),
		TargetFilter: conditions(b.targetFilter),

		SourceConditions: b.sourceConditions,
		SourceJudged:     len(b.judgedColumns),
		TargetConditions: b.targetConditions,
	}
	if k.ordered {
		t.SourceKey, t.TargetKey = k.sourceKey, k.targetKey
	}
	for _, c := range b.cols {
		c.SourceName = c.source
		t.Columns = append(t.Columns, c.Column)
	}
	t.Digest, t.NotDigestible = b.digest(k)
	if t.Fingerprint, err = t.fingerprint(in.Rule.GetFilter(), b.readColumns()); err != nil {
		return nil, unfit("table %s: %v", t.Name, err)
	}
	return t, nil
}

// sourceQuery is the rule's query without what VStreamRows cannot do: grouping and aggregates. Key
// range conditions stay, VStreamRows applies them.
func (b *builder) sourceQuery(k *keys) string {
	sel := &sqlparser.Select{
		Comments: b.rule.sel.Comments,
		From:     tableExprs(b.rule.source),
	}
	if len(b.sourceWhere) > 0 {
		sel.Where = sqlparser.NewWhere(sqlparser.WhereClause, sqlparser.AndExpressions(b.sourceWhere...))
	}
	if k.sourceDirective != "" {
		sel.Comments = sqlparser.Comments{k.sourceDirective}.Parsed()
	}
	for _, c := range b.cols {
		sel.AddSelectExpr(c.sourceSelect())
	}
	for _, name := range b.judgedColumns {
		sel.AddSelectExpr(&sqlparser.AliasedExpr{Expr: sqlparser.NewColName(name)})
	}
	return sqlparser.String(sel)
}

// targetQuery reads the same columns of the target. It has no key range condition, so that rows that
// are on a shard where they do not belong are seen.
func (b *builder) targetQuery(k *keys) string {
	sel := &sqlparser.Select{From: tableExprs(b.in.Target.Name)}
	if k.targetDirective != "" {
		sel.Comments = sqlparser.Comments{k.targetDirective}.Parsed()
	}
	if len(b.targetFilter) > 0 {
		sel.Where = sqlparser.NewWhere(sqlparser.WhereClause, sqlparser.AndExpressions(b.targetFilter...))
	}
	for _, c := range b.cols {
		sel.AddSelectExpr(c.targetSelect(b.in))
	}
	return sqlparser.String(sel)
}

func conditions(exprs []sqlparser.Expr) string {
	if len(exprs) == 0 {
		return ""
	}
	return sqlparser.String(sqlparser.AndExpressions(exprs...))
}
