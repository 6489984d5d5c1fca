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
