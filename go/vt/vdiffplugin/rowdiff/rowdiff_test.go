// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package rowdiff

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"sort"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"vitess.io/vitess/go/mysql/collations"
	"vitess.io/vitess/go/sqltypes"

	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/plan"
	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/scan"

	querypb "vitess.io/vitess/go/vt/proto/query"
)

// null is a NULL in the rows of these tests.
const null = "\x00NULL"

// fakeStream sends rows in batches of a given size.
type fakeStream struct {
	rows  [][]string
	batch int
}

func (f *fakeStream) Next(context.Context) (*scan.Batch, error) {
	if len(f.rows) == 0 {
		return nil, io.EOF
	}
	n := min(f.batch, len(f.rows))
	var rows []*querypb.Row
	for _, r := range f.rows[:n] {
		rows = append(rows, protoRow(r))
	}
	f.rows = f.rows[n:]
	return scan.NewBatch(len(rows[0].Lengths), rows), nil
}

func protoRow(values []string) *querypb.Row {
	row := &querypb.Row{}
	for _, v := range values {
		if v == null {
			row.Lengths = append(row.Lengths, -1)
			continue
		}
		row.Lengths = append(row.Lengths, int64(len(v)))
		row.Values = append(row.Values, v...)
	}
	return row
}

// verdicts collects what a comparison says, as sorted lines.
type verdicts struct {
	matches int
	lines   []string
}

func show(r scan.Row) string {
	s := ""
	for i := range r.Lengths {
		v, ok := r.Value(i)
		if !ok {
			v = []byte("NULL")
		}
		s += "|" + string(v)
	}
	return s
}

func (v *verdicts) Match() { v.matches++ }
func (v *verdicts) Mismatch(s, t scan.Row) error {
	v.lines = append(v.lines, "mismatch "+show(s)+" "+show(t))
	return nil
}

func (v *verdicts) ExtraSource(r scan.Row) error {
	v.lines = append(v.lines, "source "+show(r))
	return nil
}

func (v *verdicts) ExtraTarget(r scan.Row) error {
	v.lines = append(v.lines, "target "+show(r))
	return nil
}

func compare(t *testing.T, table *plan.Table, merge bool, sources [][][]string, target [][]string, opts Options) (*verdicts, Result, error) {
	t.Helper()
	var streams []Source
	for _, rows := range sources {
		streams = append(streams, &fakeStream{rows: rows, batch: 3})
	}
	v := &verdicts{}
	r, err := Compare(t.Context(), table, merge, streams, &fakeStream{rows: target, batch: 4}, v, opts)
	sort.Strings(v.lines)
	return v, r, err
}

func intColumn(name string) plan.Column {
	ct := plan.ColumnType{Type: sqltypes.Int64, ColumnType: "bigint"}
	return plan.Column{Name: name, Source: ct, Target: ct, Order: plan.OrderSigned}
}

func textColumn(name, source, target string, order plan.Order) plan.Column {
	side := func(collation string) plan.ColumnType {
		id := collations.MySQL8().LookupByName(collation)
		return plan.ColumnType{Type: sqltypes.VarChar, ColumnType: "varchar(20)", Charset: collations.MySQL8().LookupCharsetName(id), Collation: id}
	}
	return plan.Column{Name: name, Source: side(source), Target: side(target), Order: order}
}

func idTable(columns ...plan.Column) *plan.Table {
	return &plan.Table{Name: "t", Columns: append([]plan.Column{intColumn("id")}, columns...), Key: []int{0}, KeyUnique: true, Ordered: true, Mergeable: true}
}

// Tests that a merge and a pairing of random source shards and a random target agree with a brute-force
// comparison, verdict by verdict, for any order of arrival, batch boundary and number of passes.
func TestCompareAgainstOracle(t *testing.T) {
	for seed := range uint64(400) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		shards := 1 + rnd.IntN(4)
		sources := make([][][]string, shards)
		var target [][]string
		want := &verdicts{}
		for id := range rnd.IntN(60) {
			key := strconv.Itoa(id*7 - 100)
			row := []string{key, fmt.Sprintf("v%d", rnd.IntN(3))}
			shard := rnd.IntN(shards)
			switch rnd.IntN(6) {
			case 0:
				sources[shard] = append(sources[shard], row)
				want.lines = append(want.lines, "source |"+key+"|"+row[1])
			case 1:
				target = append(target, row)
				want.lines = append(want.lines, "target |"+key+"|"+row[1])
			case 2:
				other := []string{key, row[1] + "x"}
				sources[shard] = append(sources[shard], row)
				target = append(target, other)
				want.lines = append(want.lines, "mismatch |"+key+"|"+row[1]+" |"+key+"|"+other[1])
			default:
				sources[shard] = append(sources[shard], row)
				target = append(target, row)
				want.matches++
			}
		}
		sort.Strings(want.lines)
		table := idTable(textColumn("v", "utf8mb4_bin", "utf8mb4_bin", plan.OrderNone))
		clone := func() ([][][]string, [][]string) {
			var s [][][]string
			for _, rows := range sources {
				s = append(s, slices.Clone(rows))
			}
			return s, slices.Clone(target)
		}
		s, tgt := clone()
		got, r, err := compare(t, table, true, s, tgt, Options{})
		require.NoError(t, err, "seed %d", seed)
		require.Equal(t, want, got, "merge, seed %d", seed)
		require.EqualValues(t, want.matches+len(want.lines), r.Done)

		passes := uint64(1 + rnd.IntN(4))
		total := &verdicts{}
		for pass := range passes {
			s, tgt := clone()
			for _, rows := range append(s, tgt) {
				rnd.Shuffle(len(rows), func(i, j int) { rows[i], rows[j] = rows[j], rows[i] })
			}
			got, _, err := compare(t, table, false, s, tgt, Options{Passes: passes, Pass: pass})
			require.NoError(t, err)
			total.matches += got.matches
			total.lines = append(total.lines, got.lines...)
		}
		sort.Strings(total.lines)
		require.Equal(t, want, total, "pair in %d passes, seed %d", passes, seed)
	}
}

// Tests that any checkpoint of a merge is exact: what was counted up to it and what a second merge
// finds behind it make the whole, wherever the first one is ended.
func TestMergeCheckpoint(t *testing.T) {
	sources := [][][]string{{{"1", "a"}, {"3", "a"}, {"5", "b"}, {"5000", "a"}}, {{"2", "a"}, {"5", "a"}, {"6", "a"}}}
	target := [][]string{{"1", "a"}, {"2", "x"}, {"4", "a"}, {"5", "a"}, {"7", "a"}}
	table := idTable(textColumn("v", "utf8mb4_bin", "utf8mb4_bin", plan.OrderNone))
	whole, full, err := compare(t, table, true, sources, target, Options{})
	require.NoError(t, err)
	assert.Equal(t, "5000", string(full.Last.Values[:4]))
	for limit := int64(1); limit < full.Done; limit++ {
		first, r, err := compare(t, table, true, sources, target, Options{MaxRows: limit})
		require.NoError(t, err)
		require.True(t, r.Stopped)
		value, _ := r.Last.Value(0)
		last, err := strconv.Atoi(string(value))
		require.NoError(t, err)
		behind := func(rows [][]string) (out [][]string) {
			for _, row := range rows {
				if id, _ := strconv.Atoi(row[0]); id > last {
					out = append(out, row)
				}
			}
			return out
		}
		rest, _, err := compare(t, table, true, [][][]string{behind(sources[0]), behind(sources[1])}, behind(target), Options{After: r.Last})
		require.NoError(t, err)
		lines := append(first.lines, rest.lines...)
		sort.Strings(lines)
		assert.Equal(t, whole.lines, lines, "limit %d", limit)
		assert.Equal(t, whole.matches, first.matches+rest.matches, "limit %d", limit)
	}
}

// Tests a resumed merge of several shards with a text key whose collation pads: comparing such keys
// uses memory that the cursors share, which the race detector watches.
func TestMergeTextKeyResumed(t *testing.T) {
	table := idTable()
	table.Columns[0] = textColumn("k", "utf8mb4_general_ci", "utf8mb4_general_ci", plan.OrderCollation)
	after := scan.NewBatch(1, []*querypb.Row{protoRow([]string{"B"})}).Row(0)
	v, _, err := compare(t, table, true, [][][]string{{{"c"}, {"e"}}, {{"D"}, {"f"}}, {{"x"}}}, [][]string{{"c"}, {"D"}, {"e"}, {"f"}, {"x"}}, Options{After: after})
	require.NoError(t, err)
	assert.Equal(t, &verdicts{matches: 5}, v)
	_, _, err = compare(t, table, true, [][][]string{{{"b "}}}, [][]string{{"c"}}, Options{After: after})
	require.ErrorIs(t, err, ErrNotOrdered)
}

// Tests that a stream which is not ascending ends a merge, on either side, also right behind a
// checkpoint, and that the pairing of the same streams is right.
func TestMergeNotOrdered(t *testing.T) {
	table := idTable()
	rows := [][]string{{"1"}, {"3"}, {"2"}, {"4"}}
	for _, streams := range [][2][][]string{{rows, {{"1"}, {"2"}, {"3"}, {"4"}}}, {{{"1"}, {"2"}, {"3"}, {"4"}}, rows}} {
		_, _, err := compare(t, table, true, [][][]string{streams[0]}, streams[1], Options{})
		require.ErrorIs(t, err, ErrNotOrdered)
		v, _, err := compare(t, table, false, [][][]string{streams[0]}, streams[1], Options{})
		require.NoError(t, err)
		assert.Equal(t, &verdicts{matches: 4}, v)
	}
	after := scan.NewBatch(1, []*querypb.Row{protoRow([]string{"5"})}).Row(0)
	_, _, err := compare(t, table, true, [][][]string{{{"4"}}}, [][]string{{"6"}}, Options{After: after})
	require.ErrorIs(t, err, ErrNotOrdered)
}

// Tests keys that are equal under a collation but not in their bytes: a mismatch in the merge and in
// the pairing, whichever side is first.
func TestKeysEqualByCollation(t *testing.T) {
	collation := "utf8mb4_0900_ai_ci"
	f := func(source, target string) {
		t.Helper()
		table := idTable(intColumn("v"))
		table.Columns[0] = textColumn("k", collation, collation, plan.OrderCollation)
		for _, merge := range []bool{true, false} {
			v, _, err := compare(t, table, merge, [][][]string{{{source, "1"}}}, [][]string{{target, "1"}}, Options{})
			require.NoError(t, err)
			assert.Equal(t, []string{"mismatch |" + source + "|1 |" + target + "|1"}, v.lines, "merge %v", merge)
		}
	}
	for pass := range uint64(7) {
		table := idTable(intColumn("v"))
		table.Columns[0] = textColumn("k", collation, collation, plan.OrderNone)
		v, r, err := compare(t, table, false, [][][]string{{{"ABC", "1"}}}, [][]string{{"abc", "1"}}, Options{Passes: 7, Pass: pass})
		require.NoError(t, err)
		if r.Done > 0 {
			assert.Equal(t, []string{"mismatch |ABC|1 |abc|1"}, v.lines, "in one pass of several")
		}
	}
	f("ABC", "abc")
	// Collations that pad take trailing spaces for nothing.
	collation = "utf8mb4_general_ci"
	f("a", "a  ")
	f("Zz ", "zZ")
	collation = "utf8mb4_0900_ai_ci"
	f("éclair", "eclair")
	f("eclair", "Éclair")
}

// Tests a table without a usable key: equal rows are counted as often as they are there.
func TestPairMultiset(t *testing.T) {
	table := &plan.Table{Name: "t", Columns: []plan.Column{intColumn("a"), intColumn("b")}, Key: []int{0, 1}}
	v, _, err := compare(t, table, true, [][][]string{{{"1", "1"}, {"1", "1"}, {"1", null}}, {{"1", "1"}}},
		[][]string{{"1", null}, {"1", "1"}, {"2", "2"}}, Options{})
	require.NoError(t, err)
	assert.Equal(t, &verdicts{matches: 2, lines: []string{"source |1|1", "source |1|1", "target |2|2"}}, v)
}

// Tests that a pairing which needs more memory than it may take says so, and that more passes do.
func TestPairMemoryLimit(t *testing.T) {
	table := idTable()
	var source, target [][]string
	for i := range 1000 {
		source = append(source, []string{strconv.Itoa(i)})
		target = append(target, []string{strconv.Itoa(999 - i)})
	}
	const limit = 40_000
	_, _, err := compare(t, table, false, [][][]string{source}, target, Options{MemoryLimit: limit})
	require.ErrorIs(t, err, ErrMemory)
	matches := 0
	for pass := range uint64(8) {
		v, _, err := compare(t, table, false, [][][]string{source}, target, Options{MemoryLimit: limit, Passes: 8, Pass: pass})
		require.NoError(t, err)
		assert.Empty(t, v.lines)
		matches += v.matches
	}
	assert.Equal(t, 1000, matches)
}

// Tests that Progress is called with a finished key, and that its error ends the comparison.
func TestProgress(t *testing.T) {
	var rows [][]string
	for i := range 3 * progressEvery {
		rows = append(rows, []string{strconv.Itoa(i)})
	}
	calls := 0
	opts := Options{Progress: func(done int64, last scan.Row) error {
		calls++
		value, _ := last.Value(0)
		assert.Equal(t, strconv.FormatInt(done-1, 10), string(value))
		if calls == 2 {
			return ErrStop
		}
		return nil
	}}
	_, r, err := compare(t, idTable(), true, [][][]string{rows}, slices.Clone(rows), opts)
	require.NoError(t, err)
	assert.True(t, r.Stopped)
	assert.EqualValues(t, 2*progressEvery, r.Done)
	failed := errors.New("no database")
	opts.Progress = func(int64, scan.Row) error { return failed }
	_, _, err = compare(t, idTable(), true, [][][]string{rows}, slices.Clone(rows), opts)
	require.ErrorIs(t, err, failed)
}
