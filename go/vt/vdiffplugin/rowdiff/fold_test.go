// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package rowdiff

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"vitess.io/vitess/go/sqltypes"

	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/plan"
)

// Tests reference tables: copies count once, a copy that differs is a mismatch, in order or not.
func TestReferenceTable(t *testing.T) {
	table := idTable(intColumn("v"))
	table.Reference = true
	sources := [][][]string{{{"1", "1"}, {"2", "2"}, {"4", "4"}}, {{"1", "1"}, {"2", "9"}, {"4", "4"}}}
	target := [][]string{{"1", "1"}, {"2", "2"}, {"3", "3"}}
	for _, ordered := range []bool{true, false} {
		v, r, err := compare(t, table, ordered, sources, target, Options{})
		require.NoError(t, err)
		assert.Equal(t, &verdicts{matches: 1, lines: []string{"mismatch |2|9 |2|2", "source |4|4", "target |3|3"}}, v)
		assert.EqualValues(t, 4, r.Done)
	}
}

// Tests rules that group rows: counts and sums over all shards, NULLs, and groups on one side only.
func TestAggregates(t *testing.T) {
	table := idTable(intColumn("n"), intColumn("total"))
	table.Aggregated, table.Ordered = true, false
	table.Columns[1].Aggregate, table.Columns[2].Aggregate = plan.AggregateCount, plan.AggregateSum
	table.Columns[2].Target.Type = sqltypes.Decimal
	sources := [][][]string{{{"1", "1", "10"}, {"1", "1", null}, {"2", "1", "5"}}, {{"1", "1", "-3"}, {"3", "1", null}, {"5", "1", "1"}}}
	// Group 6 lost all its rows: VReplication leaves it with zeros, and that is right.
	target := [][]string{{"1", "3", "7.00"}, {"2", "1", "6"}, {"3", "1", "0"}, {"4", "1", "1"}, {"6", "0", "0"}}
	v, _, err := compare(t, table, true, sources, target, Options{})
	require.NoError(t, err)
	assert.Equal(t, &verdicts{matches: 3, lines: []string{"mismatch |2|1|5 |2|1|6", "source |5|1|1", "target |4|1|1"}}, v)
}

// Tests the copies of a reference table without a key: a row is there as often as in the copy that has it most often.
func TestReferenceTableWithoutKey(t *testing.T) {
	table := &plan.Table{Name: "t", Columns: []plan.Column{intColumn("a"), intColumn("b")}, Key: []int{0, 1}, Reference: true}
	sources := [][][]string{
		{{"1", "1"}, {"2", "2"}, {"1", "1"}, {"3", "3"}, {"3", "3"}, {"4", "4"}},
		{{"3", "3"}, {"1", "1"}, {"1", "1"}, {"3", "3"}, {"2", "2"}, {"2", "2"}, {"4", "4"}},
	}
	target := [][]string{{"1", "1"}, {"2", "2"}, {"1", "1"}, {"3", "3"}, {"4", "4"}, {"4", "4"}, {"5", "5"}}
	v, r, err := compare(t, table, true, sources, target, Options{})
	require.NoError(t, err)
	assert.Equal(t, &verdicts{matches: 5, lines: []string{"source |2|2", "source |3|3", "target |4|4", "target |5|5"}}, v)
	assert.EqualValues(t, 9, r.Done)
}

// Tests copies of a row whose keys the target's collation calls equal: they are one row, which is mismatched where one of them is not like
// the target's; two rows of one copy are two rows.
func TestCopiesUnderOneKey(t *testing.T) {
	for _, key := range []plan.Column{unknownColumn("k"), textColumn("k", "utf8mb4_bin", "utf8mb4_0900_ai_ci", plan.OrderNone)} {
		table := idTable(intColumn("v"))
		table.Columns[0] = key
		table.Reference, table.Ordered, table.Mergeable = true, false, false
		sources := [][][]string{
			{{"A", "1"}, {"b", "1"}, {"C", "1"}, {"d", "1"}, {"E", "1"}, {"f", "1"}, {"g", "1"}},
			{{"a", "1"}, {"b", "1"}, {"c", "1"}, {"D", "1"}, {"f", "1"}, {"F", "1"}, {"g", "1"}},
		}
		target := [][]string{{"a", "1"}, {"b", "1"}, {"d", "1"}, {"e", "1"}, {"F", "1"}, {"h", "1"}}
		v, r, err := compare(t, table, false, sources, target, Options{Weigher: &lowerCase{}})
		require.NoError(t, err)
		want := []string{"mismatch |A|1 |a|1", "mismatch |D|1 |d|1", "mismatch |E|1 |e|1", "source |C|1", "source |f|1", "source |g|1", "target |h|1"}
		assert.Equal(t, &verdicts{matches: 2, lines: want}, v, key.Target.Charset)
		assert.EqualValues(t, 9, r.Done)
	}
}
