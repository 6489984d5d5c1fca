// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package plan

import (
	"maps"
	"slices"
	"strings"

	"vitess.io/vitess/go/vt/schema"
	"vitess.io/vitess/go/vt/sqlparser"
	"vitess.io/vitess/go/vt/vttablet/tabletmanager/vreplication"

	binlogdatapb "vitess.io/vitess/go/vt/proto/binlogdata"
)

// Selection is a table of the target that a workflow fills.
type Selection struct {
	// Target is the table, Rule the rule that matched it.
	Target *TableSchema
	Rule   *binlogdatapb.Rule
	// SourceName is the table that the rule reads. It is "" when the rule cannot be read: Build then
	// says why.
	SourceName string
}

// MatchRule returns the rule of a workflow's filter for a table of the target: the first one that
// matches, as VReplication does. It returns nil when none does or when the rule excludes the table.
func MatchRule(table string, filter *binlogdatapb.Filter) (*binlogdatapb.Rule, error) {
	rule, err := vreplication.MatchTable(table, filter)
	if err != nil {
		return nil, invalid("table %s: a rule of the workflow has a bad regular expression: %v", table, err)
	}
	if rule == nil || rule.Filter == vreplication.ExcludeStr {
		return nil, nil
	}
	return rule, nil
}

// Select returns the tables of the target that belong to a workflow, ordered by name: all of them, or
// only the ones named in tables. A name there that does not belong to the workflow is an error. It may be none.
func Select(filter *binlogdatapb.Filter, target *Schema, tables []string, parser *sqlparser.Parser) ([]Selection, error) {
	wanted := make(map[string]bool, len(tables))
	for _, name := range tables {
		if name = strings.TrimSpace(name); name != "" {
			wanted[name] = false
		}
	}
	restricted := len(wanted) > 0

	var selected []Selection
	for _, name := range slices.Sorted(maps.Keys(target.Tables)) {
		if _, ok := wanted[name]; restricted && !ok {
			continue
		}
		// The tables that Online DDL makes are targets of its workflows; the other internal ones hold
		// what is left of dropped tables.
		if schema.IsInternalOperationTableName(name) && !schema.IsOnlineDDLTableName(name) {
			continue
		}
		rule, err := MatchRule(name, filter)
		if err != nil {
			return nil, err
		}
		if rule == nil {
			continue
		}
		wanted[name] = true
		s := Selection{Target: target.Tables[name], Rule: rule}
		if parsed, err := parseRule(rule, name, parser); err == nil {
			s.SourceName = parsed.source
		}
		selected = append(selected, s)
	}

	var unknown []string
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		if !wanted[name] {
			unknown = append(unknown, name)
		}
	}
	if len(unknown) > 0 {
		return nil, invalid("the workflow has no such tables on this shard: %s", strings.Join(unknown, ", "))
	}
	return selected, nil
}

// Missing returns the tables of a workflow, ordered by name, that the target does not have: VReplication passes over them without a
// word. They are those that its rules name, and those of the source, given by their names, that a regular expression matches: that of a
// Reshard matches a table, too, that was created on the source since. Tables that Vitess makes for itself are none.
func Missing(filter *binlogdatapb.Filter, target *Schema, source []string) ([]string, error) {
	candidates := make(map[string]bool)
	for _, rule := range filter.GetRules() {
		if !isPattern(rule) {
			candidates[rule.Match] = true
		}
	}
	for _, name := range source {
		if !schema.IsInternalOperationTableName(name) {
			candidates[name] = true
		}
	}
	var missing []string
	for _, name := range slices.Sorted(maps.Keys(candidates)) {
		if target.Tables[name] != nil {
			continue
		}
		rule, err := MatchRule(name, filter)
		if err != nil {
			return nil, err
		}
		// What a rule names is a table of the target: a source's table of that name may be another one.
		if rule != nil && (isPattern(rule) || rule.Match == name) {
			missing = append(missing, name)
		}
	}
	return missing, nil
}

// HasPattern says whether a rule of a workflow takes the tables that a regular expression matches.
func HasPattern(filter *binlogdatapb.Filter) bool {
	return slices.ContainsFunc(filter.GetRules(), func(rule *binlogdatapb.Rule) bool { return isPattern(rule) && rule.Filter != vreplication.ExcludeStr })
}

func isPattern(rule *binlogdatapb.Rule) bool { return strings.HasPrefix(rule.Match, "/") }
