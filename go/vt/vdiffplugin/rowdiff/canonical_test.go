// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package rowdiff

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"vitess.io/vitess/go/sqltypes"

	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/plan"
	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/scan"

	querypb "vitess.io/vitess/go/vt/proto/query"
)

// Tests text that arrives in two charsets: equal bytes are not equal text, and text is compared where a charset is known, if only
// by another of its collations. Of a charset that is not known ASCII is.
func TestTextOfTwoCharsets(t *testing.T) {
	const utf8 = "utf8mb4_0900_ai_ci"
	czech, gbk := textColumn("v", utf8, utf8, plan.OrderNone), textColumn("v", utf8, utf8, plan.OrderNone)
	czech.Source.Charset, czech.Source.Collation = "latin2", 0
	gbk.Source.Charset, gbk.Source.Collation = "gbk", 0
	for _, tt := range []struct {
		name           string
		column         plan.Column
		source, target string
		equal          bool
	}{
		{"one charset", textColumn("v", "latin1_bin", "latin1_swedish_ci", plan.OrderNone), "\xc3\xa9", "\xc3\xa9", true},
		{"converted", textColumn("v", "latin1_bin", utf8, plan.OrderNone), "\xe9", "\xc3\xa9", true},
		{"copied as bytes", textColumn("v", "latin1_bin", utf8, plan.OrderNone), "\xc3\xa9", "\xc3\xa9", false},
		{"of two bytes, converted", textColumn("v", "utf16_bin", utf8, plan.OrderNone), "\x00s", "s", true},
		{"of two bytes, copied as bytes", textColumn("v", "utf16_bin", utf8, plan.OrderNone), "\x00s", "\x00s", false},
		{"bytes that are no text", textColumn("v", "sjis_bin", utf8, plan.OrderNone), "\xff\xff", "\xff\xff", false},
		{"both to be converted", textColumn("v", "latin1_bin", "latin2_general_ci", plan.OrderNone), "\xa3", "\xa3", false},
		{"both to be converted and equal", textColumn("v", "latin1_bin", "latin2_general_ci", plan.OrderNone), "\xe9", "\xe9", true},
		{"ASCII", textColumn("v", utf8, "latin1_bin", plan.OrderNone), "a", "a", true},
		{"unknown collation", czech, "\xb3", "\xc5\x82", true},
		{"unknown collation, copied as bytes", czech, "\xc5\x82", "\xc5\x82", false},
		{"unknown charset", gbk, "\xc3\xa9", "\xc3\xa9", false},
		{"unknown charset, ASCII", gbk, "a", "a", true},
	} {
		want := &verdicts{matches: 1}
		if !tt.equal {
			want = &verdicts{lines: []string{"mismatch |1|" + tt.source + " |1|" + tt.target}}
		}
		for _, merge := range []bool{true, false} {
			v, _, err := compare(t, idTable(tt.column), merge, [][][]string{{{"1", tt.source}}}, [][]string{{"1", tt.target}}, Options{})
			require.NoError(t, err)
			assert.Equal(t, want, v, tt.name)
		}
	}
}

// Tests groups by text of two charsets, where the rule filters by it: groups whose text nobody knows, and bytes that are not valid in
// their charset, are not those of the target that have the same bytes.
func TestGroupsOfTwoCharsets(t *testing.T) {
	const utf8 = "utf8mb4_0900_ai_ci"
	for _, tt := range []struct {
		charset, text string
		equal         bool
	}{
		{"gbk", "\xc3\xa9", false}, {"gbk", "a", true}, {"greek", "\xc3\xa4", false}, {"hebrew", "\xc3\xa9", false}, {"latin1", "\xc3\xa9", false}, {"utf16le", "A0", false},
	} {
		key := textColumn("k", utf8, utf8, plan.OrderNone)
		key.Source.Charset, key.Source.Collation = tt.charset, 0
		key.Target.Stored = plan.StoredText{Charset: "utf8mb4", Collation: utf8}
		table := idTable(intColumn("n"))
		table.Columns[0], table.Columns[1].Aggregate = key, plan.AggregateCount
		table.Aggregated, table.Ordered, table.Mergeable = true, false, false
		v, _, err := compare(t, table, false, [][][]string{{{tt.text, "1"}}}, [][]string{{tt.text, "1"}}, Options{})
		require.NoError(t, err)
		want := &verdicts{matches: 1}
		if !tt.equal {
			want = &verdicts{lines: []string{"source |" + tt.text + "|1", "target |" + tt.text + "|1"}}
		}
		assert.Equal(t, want, v, tt.charset)
	}
}

// Tests keys, and rows without a key, that are exact numbers on one side and floats on the other.
func TestKeysOfNumbers(t *testing.T) {
	column := plan.Column{Name: "k", Source: plan.ColumnType{Type: sqltypes.Decimal, ColumnType: "decimal(5,2)"}, Target: plan.ColumnType{Type: sqltypes.Float64, ColumnType: "double"}}
	for _, unique := range []bool{true, false} {
		table := &plan.Table{Name: "t", Key: []int{0}, KeyUnique: unique, Columns: []plan.Column{column}}
		v, _, err := compare(t, table, false, [][][]string{{{"1.50"}, {"-0.00"}, {"2.00"}}}, [][]string{{"1.5"}, {"0"}, {"3"}}, Options{})
		require.NoError(t, err)
		assert.Equal(t, &verdicts{matches: 2, lines: []string{"source |2.00", "target |3"}}, v, "unique: %v", unique)
	}
}

// Tests keys that are floating point numbers: one number in two forms is one key, alone and in a row that is paired as a whole.
func TestFloatKeys(t *testing.T) {
	float := func(source, target querypb.Type) plan.Column {
		return plan.Column{Name: "f", Source: plan.ColumnType{Type: source}, Target: plan.ColumnType{Type: target}}
	}
	f := func(source, target querypb.Type, s, tgt string, want verdicts) {
		t.Helper()
		for _, unique := range []bool{true, false} {
			table := &plan.Table{Name: "t", Columns: []plan.Column{float(source, target)}, Key: []int{0}, KeyUnique: unique}
			v, _, err := compare(t, table, false, [][][]string{{{s}}}, [][]string{{tgt}}, Options{})
			require.NoError(t, err)
			assert.Equal(t, want, *v, "%s and %s, unique: %v", s, tgt, unique)
		}
	}
	same := verdicts{matches: 1}
	f(sqltypes.Float64, sqltypes.Float64, "-0", "0", same)
	f(sqltypes.Float32, sqltypes.Float32, "-0", "0", same)
	f(sqltypes.Float32, sqltypes.Float64, "1e10", "10000000000", same)
	f(sqltypes.Float64, sqltypes.Float64, "1.23457", "1.2345678", verdicts{lines: []string{"source |1.23457", "target |1.2345678"}})
	f(sqltypes.Float64, sqltypes.Float64, "-1", "1", verdicts{lines: []string{"source |-1", "target |1"}})
}

// Tests a FLOAT that the target has in all of its digits, in a row that is paired as a whole: it is what the source prints. -0 is 0.
func TestReplicatedFloats(t *testing.T) {
	for _, wide := range []querypb.Type{sqltypes.Float64, sqltypes.Decimal} {
		f := plan.Column{Name: "f", Source: plan.ColumnType{Type: sqltypes.Float32}, Target: plan.ColumnType{Type: wide}}
		table := &plan.Table{Name: "t", Columns: []plan.Column{f}, Key: []int{0}}
		v, _, err := compare(t, table, false, [][][]string{{{"1.23457"}, {"1.23457"}, {"2"}, {"-0"}, {"-0"}, {"0"}, {"0.1"}}},
			[][]string{{"1.2345678"}, {"1.23457"}, {"2.0000002"}, {"0"}, {"-0"}, {"-0"}, {"0.100000001"}}, Options{})
		require.NoError(t, err)
		assert.Equal(t, &verdicts{matches: 6, lines: []string{"source |0.1", "target |0.100000001"}}, v)
	}
}

// Tests sums of floats: they may differ by what adding in another order does, and not by a row.
func TestSumsOfFloats(t *testing.T) {
	f := func(source, target plan.ColumnType, rows []string, sum string, equal bool) {
		t.Helper()
		table := idTable(plan.Column{Name: "s", Source: source, Target: target, Aggregate: plan.AggregateSum})
		table.Aggregated, table.Ordered, table.Mergeable = true, false, false
		var sources [][]string
		for _, row := range rows {
			sources = append(sources, []string{"1", row})
		}
		v, _, err := compare(t, table, false, [][][]string{sources}, [][]string{{"1", sum}}, Options{})
		require.NoError(t, err)
		assert.Equal(t, equal, v.matches == 1 && v.lines == nil, "%v and %s: %v", rows, sum, v.lines)
	}
	double, float := plan.ColumnType{Type: sqltypes.Float64, ColumnType: "double"}, plan.ColumnType{Type: sqltypes.Float32, ColumnType: "float"}
	exact := plan.ColumnType{Type: sqltypes.Decimal, ColumnType: "decimal(20,2)"}
	f(double, double, []string{"1500000000", "0.75"}, "1500000000", false)
	f(double, double, []string{"0.1", "0.2", "0.3"}, "0.6", true) // 0.6000000000000001 from the left
	f(double, double, []string{"1e16", "1", "-1e16"}, "0", true)
	f(double, double, []string{"1e16", "1", "-1e16"}, "1024", false)
	f(exact, double, []string{"0.10", "0.20", "0.30"}, "0.6000000000000001", true)
	f(exact, double, []string{"1500000000.00", "0.75"}, "1500000000", false)
	f(double, float, []string{"0.1", "0.2"}, "0.3", true)
	f(double, float, []string{"100000", "20"}, "100000", false)

	// What is no rounding.
	f(double, float, []string{"1000000", "15"}, "1000000", false)
	f(double, float, []string{"100000", "1.5"}, "100000", false)
	f(double, double, []string{"4503599627370496", "60"}, "4503599627370496", false)
	f(double, double, []string{"4503599627370496", "60"}, "4503599627370556", true)
	f(double, double, []string{"1e308", "-1e308", "1e308", "-1e308", "5"}, "12345", false)

	// A FLOAT of which not all digits were read, and those of which they were.
	f(float, double, []string{"1.23457", "2"}, "3.2345678", true)
	f(float, double, []string{"1.23457", "2"}, "3.2347", false)
	f(float, double, []string{"16777200", "2"}, "16777217", true)
	f(float, double, []string{"1.67772e7", "2"}, "16777217", true)
	f(float, exact, []string{"123457", "0.5"}, "123457.14", true)
	f(float, double, []string{"100000", "-0.0025"}, "99999.9975", true)
	f(float, double, []string{"100000", "-0.0025", "0.5"}, "99999.9975", false)
	f(float, exact, []string{"100000", "0.5"}, "100000.00", false)

	ones := slices.Repeat([]string{"1"}, 100_000)
	f(double, float, ones, "100000", true)
	f(double, float, ones, "99000", false)

	// Rows that were changed many times before they became what they are.
	random, values := rand.New(rand.NewPCG(1, 2)), []float64{0.1, 1e6, 0.3}
	total := 0.1 + 1e6 + 0.3
	for range 500 {
		i, value := random.IntN(3), 1e6*random.Float64()
		total += value - values[i]
		values[i] = value
	}
	var rows []string
	for _, value := range values {
		rows = append(rows, strconv.FormatFloat(value, 'g', -1, 64))
	}
	f(double, double, rows, strconv.FormatFloat(total, 'g', -1, 64), true)
	f(double, double, rows, strconv.FormatFloat(total+1e-6, 'g', -1, 64), false)
}

// Tests what is left of a sum of floats when all rows of its group are gone: a count of zero says so, and nothing else does.
func TestResidueOfFloats(t *testing.T) {
	double := plan.ColumnType{Type: sqltypes.Float64, ColumnType: "double"}
	sum := plan.Column{Name: "s", Source: double, Target: double, Aggregate: plan.AggregateSum}
	count := intColumn("n")
	count.Aggregate = plan.AggregateCount
	f := func(columns []plan.Column, row []string, matches int64) {
		t.Helper()
		table := idTable(columns...)
		table.Aggregated, table.Ordered, table.Mergeable = true, false, false
		v, _, err := compare(t, table, false, [][][]string{{}}, [][]string{row}, Options{})
		require.NoError(t, err)
		assert.EqualValues(t, matches, v.matches)
		assert.Len(t, v.lines, int(1-matches))
	}
	counted := []plan.Column{sum, count}
	f(counted, []string{"1", "5.5e-17", "0"}, 1)
	f(counted, []string{"1", "0.5", "0"}, 0)
	f(counted, []string{"1", "5.5e-17", "1"}, 0)
	f([]plan.Column{sum}, []string{"1", "0"}, 1)
	f([]plan.Column{sum}, []string{"1", "5.5e-17"}, 0)
}

// Tests that sums of two parts of a group are those of the whole group, and may differ from the target's by as much.
func TestMergedSums(t *testing.T) {
	double, float := plan.ColumnType{Type: sqltypes.Float64, ColumnType: "double"}, plan.ColumnType{Type: sqltypes.Float32, ColumnType: "float"}
	exact := plan.ColumnType{Type: sqltypes.Decimal, ColumnType: "decimal(20,2)"}
	f := func(source, target plan.ColumnType, first, second string) {
		t.Helper()
		col := &column{Column: plan.Column{Source: source, Target: target, Aggregate: plan.AggregateSum}}
		var whole, a, b sum
		for value, part := range map[string]*sum{first: &a, second: &b} {
			row := scan.Row{Lengths: []int32{int32(len(value))}, Values: []byte(value)}
			require.NoError(t, whole.add(col, row, 0))
			require.NoError(t, part.add(col, row, 0))
		}
		a.merge(&b)
		x, xok := whole.value(col)
		y, yok := a.value(col)
		assert.Equal(t, string(x), string(y))
		assert.Equal(t, xok, yok)
		assert.Equal(t, whole.slack(col, 2), a.slack(col, 2))
	}
	for _, source := range []plan.ColumnType{double, float, exact} {
		for _, target := range []plan.ColumnType{double, float} {
			f(source, target, "1000000", "3")
			f(source, target, "1000000", "0.5")
			f(source, target, "0.5", "1000000")
			f(source, target, "4", "123.456")
		}
	}
}
