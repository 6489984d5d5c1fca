// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package endtoend

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/big"
	"slices"
	"strings"

	"vitess.io/vitess/go/sqltypes"
	"vitess.io/vitess/go/vt/sqlparser"
	"vitess.io/vitess/go/vt/vtctl/workflow"
	"vitess.io/vitess/go/vt/vttablet/tabletmanager/vdiff"
)

// disagreements compares what a vdiff says of a table with the truth: the counts of each shard and of all, and the rows
// that are shown.
func (t *randomTable) disagreements(s *workflow.Summary, found map[string]*truth) []string {
	var list []string
	var all [4]int64
	for shard, v := range found {
		want := v.counts()
		for i := range all {
			all[i] += want[i]
		}
		report, ok := s.Reports[t.name][shard]
		if !ok {
			list = append(list, fmt.Sprintf("shard %s: there is no report", shard))
			continue
		}
		got := [4]int64{report.MatchingRows, report.MismatchedRows, report.ExtraRowsSource, report.ExtraRowsTarget}
		if got != want || report.ProcessedRows != want[0]+want[1]+want[2]+want[3] {
			list = append(list, fmt.Sprintf("shard %s: matching, mismatched, extra source, extra target are %v, reported are %v of %d", shard, want, got, report.ProcessedRows))
			continue
		}
		list = append(list, t.wrongSamples(shard, report, v)...)
	}
	table := s.TableSummaryMap[t.name]
	if got := [4]int64{table.MatchingRows, table.MismatchedRows, table.ExtraRowsSource, table.ExtraRowsTarget}; got != all && len(list) == 0 {
		list = append(list, fmt.Sprintf("in all %v, the summary says %v", all, got))
	}
	slices.Sort(list)
	return list
}

// wrongSamples compares the rows of a report with the true ones.
func (t *randomTable) wrongSamples(shard string, report vdiff.DiffReport, v *truth) []string {
	var list []string
	check := func(what string, got []*vdiff.RowDiff, want []*truthRow) {
		left := slices.Clone(want)
		for _, sample := range got {
			i := slices.IndexFunc(left, func(row *truthRow) bool { return t.shown(sample, row) })
			if i < 0 {
				list = append(list, fmt.Sprintf("shard %s: reported as %s is %v, which is not", shard, what, sample.Row))
				continue
			}
			left = slices.Delete(left, i, i+1)
		}
		if len(left) > 0 {
			list = append(list, fmt.Sprintf("shard %s: not reported as %s is:\n%s", shard, what, t.show(left)))
		}
	}
	var sources, targets []*vdiff.RowDiff
	for _, m := range report.MismatchedRowsDiffs {
		sources, targets = append(sources, m.Source), append(targets, m.Target)
	}
	var wantSources, wantTargets []*truthRow
	for _, pair := range v.mismatched {
		wantSources, wantTargets = append(wantSources, pair[0]), append(wantTargets, pair[1])
	}
	check("a mismatched row of the source", sources, wantSources)
	check("a mismatched row of the target", targets, wantTargets)
	check("an extra row of the source", report.ExtraRowsSourceDiffs, v.extraSource)
	check("an extra row of the target", report.ExtraRowsTargetDiffs, v.extraTarget)
	return list
}

// shown says whether a sample is of a row: by its key, or by all columns where there is none.
func (t *randomTable) shown(sample *vdiff.RowDiff, row *truthRow) bool {
	if sample == nil {
		return false
	}
	if slices.ContainsFunc(row.members, func(member *truthRow) bool { return t.shown(sample, member) }) {
		return true
	}
	columns, of := t.compared(), t.pairedBy()
	if of == nil {
		of = columns
	}
	for _, c := range of {
		i := slices.Index(columns, c)
		text, ok := sample.Row[sqlparser.String(sqlparser.NewIdentifierCI(c.name))]
		if !ok || !c.showsAs(text, row.forms[i], row.raw[i]) {
			return false
		}
	}
	return true
}

// showsAs says whether a report may show a value by this text.
func (c *randomColumn) showsAs(text, form, raw string) bool {
	if form == nullForm {
		return text == "NULL"
	}
	inHex, isHex := strings.CutPrefix(text, "0x")
	switch f := c.kind.form; f {
	case formBytes:
		return isHex && strings.EqualFold(inHex, form) || !isHex && strings.EqualFold(hex.EncodeToString([]byte(text)), form)
	case formText, formJSON:
		return strings.EqualFold(hex.EncodeToString([]byte(text)), form) || isHex && strings.EqualFold(inHex, raw)
	case formExact:
		if isHex { // a bit field
			n, ok := new(big.Int).SetString("0"+inHex, 16)
			return ok && n.String() == form
		}
		return f.of(sqltypes.NewVarChar(text)) == form
	default:
		return f.of(sqltypes.NewVarChar(text)) == form
	}
}

// describe says everything about a disagreement that is needed to see it again.
func (b *batch) describe(ctx context.Context, t *randomTable, way string, disagreements []string, reports map[string]vdiff.DiffReport, found map[string]*truth) string {
	var text strings.Builder
	fmt.Fprintf(&text, "table %s, layout %s, %s:\n  %s\n", t.name, b.layout.name, way, strings.Join(disagreements, "\n  "))
	fmt.Fprintf(&text, "run again: ORACLE_SEED=%d ORACLE_BATCHES=1 ORACLE_TABLES=%d ORACLE_ONLY=%s ORACLE_PLANTS=%d go test ./test/endtoend -run 'TestOracle$' -v\n", b.seed, b.number, t.number(), b.o.plants)
	fmt.Fprintf(&text, "source: %s\ntarget: %s\n", t.create(quote(t.source), false), t.create(quote(t.name), true))
	if t.layout.filters {
		fmt.Fprintf(&text, "rule: %s\n", t.expression())
	}
	if t.layout.splits || t.reference {
		vindexes := map[string]any{}
		fmt.Fprintf(&text, "vschema: %s, vindexes %s\n", b.o.text(t.vschema(false, vindexes)), b.o.text(vindexes))
	}
	fmt.Fprintf(&text, "planted:\n  %s\n", strings.Join(b.planted[t], "\n  "))
	for shard, v := range found {
		for _, pair := range v.mismatched {
			fmt.Fprintf(&text, "%s mismatched:\n%s%s", shard, t.show(pair[:1]), t.show(pair[1:]))
		}
		for what, rows := range map[string][]*truthRow{"extra source": v.extraSource, "extra target": v.extraTarget} {
			fmt.Fprintf(&text, "%s %s:\n%s", shard, what, t.show(rows[:min(len(rows), 10)]))
		}
	}
	for shard, report := range reports {
		fmt.Fprintf(&text, "%s reported: %.4000s\n", shard, b.o.text(report))
	}
	for _, tablet := range b.sources {
		text.WriteString("source " + b.dump(ctx, t, tablet, false))
	}
	for _, tablet := range b.targets {
		text.WriteString("target " + b.dump(ctx, t, tablet, true))
	}
	return text.String()
}

// text is a value as JSON.
func (o *oracle) text(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// number is the table's number in its batch.
func (t *randomTable) number() string { return t.name[strings.LastIndex(t.name, "_")+1:] }
