// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package endtoend

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"vitess.io/vitess/go/vt/vttablet/tabletmanager/vdiff"
)

// difference is a kind of tables on which the stock engine and the truth disagree.
type difference struct {
	tables, disagreed int
	example           string // of the smallest table
	size              int
	want, got, why    string
}

func marshal(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	require.NoError(t, err)
	return string(text)
}

// traits are what is special about a table, in the order in which it explains a disagreement, each with why what we say is right.
func (t *randomTable) traits() [][2]string {
	var list [][2]string
	add := func(trait, why string) { list = append(list, [2]string{trait, why}) }
	s, g := t.sourceKey, t.targetKey
	if t.rollup {
		add("a rule with group by", "groups are what the target's key calls equal, and what is left of an empty group is no difference")
	}
	if t.where != "" && t.filtered.dropped {
		add("a filter on a column that the target does not have", "the filter chooses rows of the source; all rows of the target are compared with these")
	}
	switch {
	case s.unique() != g.unique():
		add("a key on one side only", "rows are compared as wholes: none is counted that is there on both sides")
	case s.unique() && len(s.columns) != len(g.columns):
		add("target key with more columns", "a row is the same row under either key: they are paired by all key columns")
	case s.unique() && !slices.Equal(s.columns, g.columns):
		add("target key with its columns in another order", "the columns are the same, the order only sorts them")
	}
	for _, c := range g.columns {
		from, to := collatedType.FindStringSubmatch(c.sourceType), collatedType.FindStringSubmatch(c.targetType)
		switch {
		case !g.unique():
		case from != nil && from[1] != to[1]:
			add("text key of another charset on the target", "the text is the same: charsets only store it differently")
		case from != nil && from[2] != to[2]:
			add("text key of another collation on the target", "collations only sort it differently: rows are paired whatever the order")
		case c.kind.name == "enum" || c.kind.name == "set" || c.kind.name == "bit" || c.kind.name == "float" || c.kind.name == "double" || c.kind.name == "time":
			add(c.kind.name+" in the key", "MySQL's order of such a key is not that of its text: rows are paired whatever the order")
		case c.kind.prefix > 0:
			add("key of the beginnings of values", "such an index does not sort whole values: rows are paired whatever the order")
		case from != nil:
			add("text key, "+from[2], "a key that differs in its bytes is another text, even where the collation calls it equal; trailing spaces are compared as MySQL does")
		case c.sourceType != c.targetType:
			add(c.kind.name+" key of another width on the target", "values are compared, not how they are printed")
		}
	}
	for _, c := range t.compared() {
		from, to := collatedType.FindStringSubmatch(c.sourceType), collatedType.FindStringSubmatch(c.targetType)
		switch {
		case from != nil && from[1] != to[1]:
			add("text of another charset on the target", "the text is the same: charsets only store it differently")
		case c.sourceType != c.targetType && from == nil:
			add(c.kind.name+" of another width on the target", "values are compared, not how they are printed")
		case from != nil && from[2] != to[2]:
			add("text of another collation on the target", "text that differs in its bytes differs, whatever collation would call it equal")
		}
	}
	if !s.unique() && !g.unique() {
		add("no key", "rows are compared as wholes: none is counted that is there on both sides")
	}
	for _, c := range t.compared() {
		if c.kind.name != "integer" {
			add("values: "+c.kind.name, "values are compared byte by byte, or as what they are worth")
		}
	}
	if t.where != "" {
		add("filtered rows", "both sides are read through the filter")
	}
	add("other", "")
	return list
}

// compareStock lets the stock engine compare the tables, one by one where it cannot do all of them, and notes where it is wrong.
func (b *batch) compareStock(t *testing.T, ctx context.Context) {
	t.Helper()
	restart := func(stock bool) {
		for _, tablet := range b.targets {
			require.NoError(t, tablet.Term(ctx))
			tablet.Stock = stock
			require.NoError(t, tablet.Start(ctx))
		}
		for _, tablet := range b.targets {
			require.NoError(t, tablet.WaitServing(ctx))
		}
		require.NoError(t, b.w.WaitRunning(ctx))
	}
	restart(true)
	defer restart(false)
	if b.stockDiff(t, ctx, b.tables) {
		return
	}
	for _, table := range b.tables {
		b.stockDiff(t, ctx, []*randomTable{table})
	}
}

// stockDiff compares some tables, and says whether all were compared. Of a single one the error is noted.
func (b *batch) stockDiff(t *testing.T, ctx context.Context, tables []*randomTable) bool {
	t.Helper()
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	var names []string
	for _, table := range tables {
		names = append(names, table.name)
	}
	uuid, err := b.w.VDiffCreate(ctx, "--tables", strings.Join(names, ","), "--tablet-types", "primary", "--auto-retry=false")
	if err == nil {
		s, waitErr := b.w.WaitVDiff(ctx, uuid, vdiff.CompletedState, vdiff.ErrorState)
		switch {
		case waitErr != nil:
			err = errors.New("it does not end")
		case s.State == vdiff.ErrorState:
			err = errors.New(slices.Sorted(maps.Values(s.Errors))[0])
		default:
			for _, table := range tables {
				found, err := b.find(ctx, table)
				require.NoError(t, err)
				var want, got [4]int64
				for _, v := range found {
					for i, n := range v.counts() {
						want[i] += n
					}
				}
				sum := s.TableSummaryMap[table.name]
				got = [4]int64{sum.MatchingRows, sum.MismatchedRows, sum.ExtraRowsSource, sum.ExtraRowsTarget}
				b.o.differs(table, sayCounts(want), sayCounts(got))
			}
			return true
		}
	}
	_, _ = b.w.VDiff(context.WithoutCancel(ctx), "delete", "all")
	if len(tables) > 1 {
		return false
	}
	// What follows the reason is the query, or where the error has been.
	text, _, _ := strings.Cut(err.Error(), ": select ")
	text = text[strings.LastIndex(text, "desc = ")+1:]
	text, _, _ = strings.Cut(strings.TrimPrefix(text, "esc = "), "\n")
	b.o.differs(tables[0], "compared", "error: "+strings.ReplaceAll(text, tables[0].name, "T"))
	return false
}

func sayCounts(n [4]int64) string {
	var parts []string
	for i, what := range []string{"matching", "mismatched", "extra on the source", "extra on the target"} {
		if n[i] > 0 || i == 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n[i], what))
		}
	}
	return strings.Join(parts, ", ")
}

// differs notes what the stock engine said of a table.
func (o *oracle) differs(t *randomTable, want, got string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	trait := t.traits()[0]
	if o.kinds[trait[0]] == nil {
		o.kinds[trait[0]] = &difference{why: trait[1]}
	}
	d := o.kinds[trait[0]]
	d.tables++
	if want == got {
		return
	}
	d.disagreed++
	example := t.create("t", false)
	if target := t.create("t", true); target != example {
		example += "; target: " + target
	}
	if d.example == "" || len(example) < d.size {
		d.example, d.size, d.want, d.got = example, len(example), want, got
	}
}

// writeDifferences writes the table of docs/differences.md.
func (o *oracle) writeDifferences(t *testing.T) {
	t.Helper()
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.wrong) > 0 { // then it would not be true that ours is right
		return
	}
	var text strings.Builder
	text.WriteString("# Where the stock engine answers differently\n\n" +
		"Random tables were copied, written to on the source, changed on the target behind replication, and compared by both engines. What is true was found by brute\n" +
		"force (`test/endtoend/oracle_truth_test.go`); our engine said the same of every table here. Each row is a kind of table on which the stock engine\n" +
		"said something else of at least one. A table counts for the first kind that it is of, by its schema: that is where to look, and not always the cause.\n" +
		"This file is written by `make oracle`; kinds that it does not name had no disagreement.\n\n" +
		"| what | tables it is wrong on | stock | ours | why ours is right | smallest example |\n|---|---|---|---|---|---|\n")
	for _, kind := range slices.Sorted(maps.Keys(o.kinds)) {
		if d := o.kinds[kind]; d.disagreed > 0 {
			fmt.Fprintf(&text, "| %s | %d of %d | %s | %s | %s | `%s` |\n", kind, d.disagreed, d.tables, cell(d.got), cell(d.want), d.why, cell(strings.ReplaceAll(d.example, "`", "")))
		}
	}
	path := filepath.Join("..", "..", "docs", "differences.md")
	require.NoError(t, os.WriteFile(path, []byte(text.String()), 0o644))
	t.Logf("written: %s", path)
}

func cell(text string) string {
	text = strings.ReplaceAll(strings.ReplaceAll(text, "|", `\|`), "\n", " ")
	if len(text) > 400 {
		text = strings.ToValidUTF8(text[:400], "") + " ..."
	}
	return text
}
