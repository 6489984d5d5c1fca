// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package rowdiff

import (
	"context"
	"errors"
	"sort"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"vitess.io/vitess/go/sqltypes"

	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/plan"
)

// lowerCase is a Weigher for which case makes no difference.
type lowerCase struct{ asked []string }

func (l *lowerCase) Weights(_ context.Context, charset string, as plan.StoredText, texts []string) ([]string, error) {
	l.asked = append(l.asked, charset+" as "+as.Collation)
	weights := make([]string, len(texts))
	for i, text := range texts {
		weights[i] = "weight of " + strings.ToLower(text)
	}
	return weights, nil
}

// unknownColumn is text under a collation that Vitess does not know.
func unknownColumn(name string) plan.Column {
	ct := plan.ColumnType{Type: sqltypes.VarChar, ColumnType: "varchar(20)", Charset: "gbk", Stored: plan.StoredText{Charset: "gbk", Collation: "gbk_chinese_ci"}}
	return plan.Column{Name: name, Source: ct, Target: ct}
}

// Tests keys under a collation that only MySQL knows: those that it takes for equal are a mismatch, in a table and in the
// copies of a reference table; an error of MySQL's is not swallowed.
func TestKeysWeighed(t *testing.T) {
	table := idTable(intColumn("v"))
	table.Columns[0] = unknownColumn("k")
	table.Ordered, table.Mergeable = false, false
	for _, reference := range []bool{false, true} {
		sources := [][][]string{{{"ABC", "1"}, {"same", "1"}, {"x", "1"}}}
		if table.Reference = reference; reference {
			sources = append(sources, sources[0])
		}
		asked := &lowerCase{}
		v, r, err := compare(t, table, false, sources, [][]string{{"abc", "1"}, {"same", "1"}, {"y", "1"}}, Options{Weigher: asked})
		require.NoError(t, err)
		assert.Equal(t, &verdicts{matches: 1, lines: []string{"mismatch |ABC|1 |abc|1", "source |x|1", "target |y|1"}}, v, "reference: %v", reference)
		assert.EqualValues(t, 4, r.Done)
		assert.Equal(t, []string{"gbk as gbk_chinese_ci"}, asked.asked)
		_, _, err = compare(t, table, false, sources, [][]string{{"abc", "1"}}, Options{Weigher: noWeights{}})
		require.ErrorIs(t, err, errNoWeights)
	}
}

var errNoWeights = errors.New("no weights")

type noWeights struct{}

func (noWeights) Weights(context.Context, string, plan.StoredText, []string) ([]string, error) {
	return nil, errNoWeights
}

// Tests rules that group by text: VReplication adds up the rows that collide in the target's unique index, under collations
// that Vitess knows and others, in one pass and in several; the target's key has the bytes of whichever row came first.
func TestGroupsOfText(t *testing.T) {
	for _, key := range []plan.Column{unknownColumn("k"), textColumn("k", "utf8mb4_0900_ai_ci", "utf8mb4_0900_ai_ci", plan.OrderNone)} {
		table := idTable(intColumn("n"), intColumn("total"))
		table.Columns[0] = key
		table.Aggregated, table.Ordered, table.Mergeable = true, false, false
		table.Columns[1].Aggregate, table.Columns[2].Aggregate = plan.AggregateCount, plan.AggregateSum
		sources := [][][]string{{{"a", "1", "10"}, {"A", "1", "1"}, {"b", "1", "5"}, {"C", "1", "1"}}, {{"a", "1", "-3"}, {"c", "1", null}, {"d", "1", "1"}}}
		target := [][]string{{"A", "3", "8"}, {"B", "1", "6"}, {"c", "2", "1"}, {"e", "1", "1"}}
		total := &verdicts{}
		for pass := range uint64(3) {
			v, _, err := compare(t, table, false, sources, target, Options{Weigher: &lowerCase{}, Passes: 3, Pass: pass})
			require.NoError(t, err)
			total.matches += v.matches
			total.lines = append(total.lines, v.lines...)
		}
		sort.Strings(total.lines)
		want := &verdicts{matches: 2, lines: []string{"mismatch |b|1|5 |B|1|6", "source |d|1|1", "target |e|1|1"}}
		assert.Equal(t, want, total, "in passes, %s", key.Target.Charset)
		v, _, err := compare(t, table, false, sources, target, Options{Weigher: &lowerCase{}})
		require.NoError(t, err)
		assert.Equal(t, want, v, key.Target.Charset)
	}
}

// Tests groups by text of which one side has an ENUM, or bytes: they are those of the target's unique index, too.
func TestGroupsOfUnlikeTypes(t *testing.T) {
	collation := "utf8mb4_0900_ai_ci"
	member := textColumn("k", collation, collation, plan.OrderNone)
	member.Target.Type, member.Target.ColumnType = sqltypes.Enum, "enum('a')"
	binary := textColumn("k", collation, collation, plan.OrderNone)
	binary.Source = plan.ColumnType{Type: sqltypes.VarBinary, ColumnType: "varbinary(9)"}
	for _, key := range []plan.Column{member, binary} {
		table := idTable(intColumn("n"))
		table.Columns[0], table.Columns[1].Aggregate = key, plan.AggregateCount
		table.Aggregated, table.Ordered, table.Mergeable = true, false, false
		v, _, err := compare(t, table, false, [][][]string{{{"a", "1"}, {"A", "1"}}}, [][]string{{"a", "2"}}, Options{})
		require.NoError(t, err)
		assert.Equal(t, &verdicts{matches: 1}, v, key.Target.ColumnType)
	}
}

// Tests what is not asked for: text that no index holds whole, and more rows than are of use; and that groups whose text only MySQL
// knows are not shared out to passes when they need too much memory.
func TestWeightsBounded(t *testing.T) {
	table := idTable(intColumn("v"))
	table.Columns[0] = unknownColumn("k")
	table.Ordered, table.Mergeable = false, false
	long := strings.Repeat("x", maxWeighed)
	v, _, err := compare(t, table, false, [][][]string{{{long + "A", "1"}, {"B", "1"}}}, [][]string{{long + "a", "1"}, {"b", "1"}}, Options{Weigher: &lowerCase{}})
	require.NoError(t, err)
	assert.Equal(t, []string{"mismatch |B|1 |b|1", "source |" + long + "A|1", "target |" + long + "a|1"}, v.lines)

	table.Columns[1].Aggregate, table.Aggregated = plan.AggregateCount, true
	_, _, err = compare(t, table, false, [][][]string{{{"a", "1"}, {"B", "1"}}}, [][]string{{"a", "1"}}, Options{Weigher: &lowerCase{}, MemoryLimit: 100})
	require.ErrorIs(t, err, ErrIndivisible)
	_, _, err = compare(t, table, false, [][][]string{{{"a", "1"}, {"B", "1"}}}, [][]string{{"a", "1"}}, Options{Weigher: &lowerCase{}, MemoryLimit: 1000})
	require.NoError(t, err)
}

// Tests a key whose bytes nobody can bring to one charset: MySQL is not asked, and texts that are not valid on the target are not one
// key because of that.
func TestKeysOfUnknownCharset(t *testing.T) {
	table := idTable()
	table.Columns[0] = textColumn("k", "utf8mb4_0900_ai_ci", "utf8mb4_0900_ai_ci", plan.OrderNone)
	table.Columns[0].Target.Stored = plan.StoredText{Charset: "utf8mb4", Collation: "utf8mb4_0900_ai_ci"}
	table.Columns[0].Source = unknownColumn("k").Source
	table.Ordered, table.Mergeable = false, false
	v, _, err := compare(t, table, false, [][][]string{{{"\xa8\xa2"}, {"a"}}}, [][]string{{"\xff"}, {"a"}}, Options{Weigher: noWeights{}})
	require.NoError(t, err)
	assert.Equal(t, &verdicts{matches: 1, lines: []string{"source |\xa8\xa2", "target |\xff"}}, v)
}

// Tests a key that arrives in another charset from the source than from the target, because rows are filtered by it: the target's
// collation decides on letters, on spaces and on what is like a space.
func TestKeysOfUnlikeCharsets(t *testing.T) {
	f := func(collation, target string, paired bool) {
		t.Helper()
		table := idTable()
		table.Columns[0] = textColumn("k", "latin1_swedish_ci", collation, plan.OrderNone)
		table.Columns[0].Target.Stored = plan.StoredText{Charset: "utf8mb4", Collation: collation}
		table.Ordered, table.Mergeable = false, false
		v, _, err := compare(t, table, false, [][][]string{{{"\xc9t\xe9"}}}, [][]string{{target}}, Options{Weigher: noWeights{}})
		require.NoError(t, err)
		want := &verdicts{lines: []string{"mismatch |\xc9t\xe9 |" + target}}
		if !paired {
			want.lines = []string{"source |\xc9t\xe9", "target |" + target}
		}
		assert.Equal(t, want, v, "%s: %q", collation, target)
	}
	f("utf8mb4_unicode_ci", "ete", true)
	f("utf8mb4_unicode_ci", "ÉTÉ  ", true)
	f("utf8mb4_unicode_ci", "été\u00a0\u3000", true)
	f("utf8mb4_general_ci", "ete ", true)
	f("utf8mb4_general_ci", "ete\u00a0", false)
	f("utf8mb4_0900_ai_ci", "ete", true)
	f("utf8mb4_0900_ai_ci", "ete ", false)
	f("utf8mb4_bin", "ÉTÉ", false)
	f("utf8mb4_bin", "Été ", true)
}
