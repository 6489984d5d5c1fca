// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package report

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"vitess.io/vitess/go/mysql/collations"
	"vitess.io/vitess/go/sqltypes"

	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/plan"

	querypb "vitess.io/vitess/go/vt/proto/query"
	tabletmanagerdatapb "vitess.io/vitess/go/vt/proto/tabletmanagerdata"
)

func columnOf(name, sourceExpr string, t querypb.Type, charset string) plan.Column {
	ct := plan.ColumnType{Type: t, Charset: charset}
	if charset != "" {
		ct.Collation = collations.MySQL8().DefaultCollationForCharset(charset)
	}
	return plan.Column{Name: name, SourceExpr: sourceExpr, TargetExpr: name, Source: ct, Target: ct}
}

// testTable is "select id, nm as title, doc from src where tenant = 7" into t.
func testTable() *plan.Table {
	return &plan.Table{
		Name:       "t",
		SourceName: "src",
		Columns: []plan.Column{
			columnOf("id", "id", sqltypes.Int64, ""),
			columnOf("title", "nm", sqltypes.VarChar, "utf8mb4"),
			columnOf("doc", "doc", sqltypes.Blob, ""),
		},
		Key:          []int{0},
		KeyUnique:    true,
		SourceFilter: "tenant = 7",
		TargetFilter: "tenant_id = 7",
	}
}

func rowOf(id int, name, doc string) []sqltypes.Value {
	return []sqltypes.Value{sqltypes.NewInt64(int64(id)), sqltypes.NewVarChar(name), sqltypes.MakeTrusted(sqltypes.Blob, []byte(doc))}
}

// everything keeps and shows all there is.
var everything = Options{MaxMismatched: math.MaxInt64, MaxExtraSource: math.MaxInt64, MaxExtraTarget: math.MaxInt64}

// TestCounts tests that every row is counted once and that a report goes on from a stored one.
func TestCounts(t *testing.T) {
	b := NewBuilder(testTable(), nil, everything)
	require.False(t, b.Report().Different())
	b.AddMatching(5)
	require.False(t, b.Report().Different())
	b.AddMismatch(rowOf(1, "a", "x"), rowOf(1, "b", "x"))
	b.AddExtraSource(rowOf(2, "a", ""))
	b.AddExtraTarget(rowOf(3, "a", ""))
	b.AddExtraTarget(rowOf(4, "a", ""))
	snapshot := b.Report()
	b.AddExtraTarget(rowOf(5, "a", ""))
	require.Equal(t, int64(2), snapshot.ExtraRowsTarget)
	require.Len(t, snapshot.ExtraRowsTargetDiffs, 2)
	require.True(t, snapshot.Different())

	stored, err := b.Marshal()
	require.NoError(t, err)
	prior, err := Unmarshal(stored)
	require.NoError(t, err)
	resumed := NewBuilder(testTable(), prior, everything)
	resumed.AddMatching(1)
	resumed.AddExtraSource(rowOf(6, "a", ""))
	r := resumed.Report()
	require.Equal(t, []int64{12, 6, 1, 2, 3}, []int64{r.ProcessedRows, r.MatchingRows, r.MismatchedRows, r.ExtraRowsSource, r.ExtraRowsTarget})
	require.Equal(t, []int{1, 2, 3}, []int{len(r.MismatchedRowsDiffs), len(r.ExtraRowsSourceDiffs), len(r.ExtraRowsTargetDiffs)})
	require.Len(t, prior.ExtraRowsSourceDiffs, 1)
	require.False(t, r.Truncated)
	require.Equal(t, "t", r.TableName)
}

// TestNewOptions tests how many samples of each kind the user's options allow.
func TestNewOptions(t *testing.T) {
	f := func(samples, extra int64, wantMismatched, wantExtra int64) {
		t.Helper()
		o := NewOptions(&tabletmanagerdatapb.VDiffOptions{
			CoreOptions:   &tabletmanagerdatapb.VDiffCoreOptions{MaxExtraRowsToCompare: extra},
			ReportOptions: &tabletmanagerdatapb.VDiffReportOptions{MaxSampleRows: samples, RowDiffColumnTruncateAt: -5},
		}, 1000)
		require.Equal(t, []int64{wantMismatched, wantExtra, wantExtra}, []int64{o.MaxMismatched, o.MaxExtraSource, o.MaxExtraTarget})
		require.Zero(t, o.TruncateAt)
		require.Equal(t, 1000, o.MaxBytes)
	}
	f(10, 1000, 10, 10)
	f(0, 1000, math.MaxInt64, 1000)
	f(10, 0, 10, 0)
	f(-1, -1, math.MaxInt64, 0)
	require.NotPanics(t, func() { NewOptions(nil, 0) })
	require.Equal(t, DefaultMaxBytes, NewOptions(nil, 0).maxBytes())
}

// TestBound tests that a report as an escaped literal fits into a packet.
func TestBound(t *testing.T) {
	f := func(packet, want int) {
		t.Helper()
		require.Equal(t, want, Bound(packet))
	}
	f(64<<20, 1<<20)
	f(4<<20, 1<<20)
	f(1<<20, 516096)
	f(1024, 1024)
}

// TestSampleLimits tests that samples beyond the user's numbers are counted and not kept, and that the
// report is not called truncated for it.
func TestSampleLimits(t *testing.T) {
	b := NewBuilder(testTable(), nil, Options{MaxMismatched: 2, MaxExtraSource: 1})
	for i := range 5 {
		b.AddMismatch(rowOf(i, "a", ""), rowOf(i, "b", ""))
		b.AddExtraSource(rowOf(i, "a", ""))
		b.AddExtraTarget(rowOf(i, "a", ""))
	}
	r := b.Report()
	require.Equal(t, []int{2, 1, 0}, []int{len(r.MismatchedRowsDiffs), len(r.ExtraRowsSourceDiffs), len(r.ExtraRowsTargetDiffs)})
	require.Equal(t, []int64{15, 5, 5, 5}, []int64{r.ProcessedRows, r.MismatchedRows, r.ExtraRowsSource, r.ExtraRowsTarget})
	require.False(t, r.Truncated)
	stored, err := b.Marshal()
	require.NoError(t, err)
	require.NotContains(t, string(stored), "Truncated")
}

// TestByteBound tests that a report stays within its bound whatever rows it is given, that huge values
// are cut so that many rows are shown, and that no kind of sample crowds out the others.
func TestByteBound(t *testing.T) {
	f := func(maxBytes, rows int, name, doc string, wantSamples bool) {
		t.Helper()
		options := everything
		options.MaxBytes = maxBytes
		options.DebugQuery = true
		b := NewBuilder(testTable(), nil, options)
		for i := range rows {
			b.AddMismatch(rowOf(i, name, doc), rowOf(i, name, doc))
		}
		for i := range rows {
			b.AddExtraSource(rowOf(i, name, doc))
			b.AddExtraTarget(rowOf(i, name, doc))
		}
		stored, err := b.Marshal()
		require.NoError(t, err)
		require.LessOrEqual(t, len(stored), maxBytes)
		r, err := Unmarshal(stored)
		require.NoError(t, err)
		require.Equal(t, *b.Report(), *r)
		require.True(t, r.Truncated)
		require.Equal(t, int64(3*rows), r.ProcessedRows)
		require.Equal(t, int64(rows), r.MismatchedRows)
		require.Equal(t, wantSamples, len(r.MismatchedRowsDiffs) > 0 && len(r.ExtraRowsSourceDiffs) > 0 && len(r.ExtraRowsTargetDiffs) > 0)
	}
	big := strings.Repeat("x", 1<<20)
	f(1<<18, 8, "name", big, true)
	f(1<<18, 8, big, big, true)
	f(1<<18, 20, strings.Repeat("\x00", 1<<15), strings.Repeat("é", 1<<15), true)
	f(1<<17, 3000, "name", "doc", true)
	f(20_000, 5000, strings.Repeat("<&>", 200), "", true)
	f(8000, 8, "name", big, true)
	f(1100, 8, "name", big, false)
	f(500, 500, "name", "", false)

	// Twenty rows of a megabyte: all are shown.
	b := NewBuilder(testTable(), nil, everything)
	for i := range 20 {
		b.AddMismatch(rowOf(i, "n", big), rowOf(i, "n", big+"y"))
	}
	require.Len(t, b.Report().MismatchedRowsDiffs, 20)
	require.True(t, b.Report().Truncated)
}

// TestMarshal tests that samples are left out until the JSON fits, and that r stays as it was.
func TestMarshal(t *testing.T) {
	b := NewBuilder(testTable(), nil, everything)
	for i := range 50 {
		b.AddMismatch(rowOf(i, fmt.Sprint("name", i), ""), rowOf(i, "other", ""))
		b.AddExtraSource(rowOf(i, "extra", strings.Repeat("z", i)))
	}
	r := b.Report()
	full, err := r.Marshal(math.MaxInt)
	require.NoError(t, err)
	for limit := len(full) + 1; ; limit -= 371 {
		stored, err := r.Marshal(limit)
		if err != nil {
			require.Less(t, limit, 500)
			break
		}
		require.LessOrEqual(t, len(stored), limit)
		short, err := Unmarshal(stored)
		require.NoError(t, err)
		require.Equal(t, limit < len(full), short.Truncated)
		require.Equal(t, r.MismatchedRows, short.MismatchedRows)
		require.Equal(t, r.MismatchedRowsDiffs[:len(short.MismatchedRowsDiffs)], append(r.MismatchedRowsDiffs[:0:0], short.MismatchedRowsDiffs...))
		if missing := len(full) - len(stored); limit < len(full) && len(short.MismatchedRowsDiffs) > 0 {
			require.Less(t, missing, len(full)-limit+400, "more left out than needed")
		}
	}
	require.Len(t, r.MismatchedRowsDiffs, 50)
	require.False(t, r.Truncated)
}

// TestUnmarshal tests that a stored report that cannot be one is an error, and no panic.
func TestUnmarshal(t *testing.T) {
	f := func(stored string, wantError bool) {
		t.Helper()
		r, err := Unmarshal([]byte(stored))
		require.Equal(t, wantError, err != nil, "%v", err)
		if err != nil {
			require.NotContains(t, err.Error(), "secret")
			return
		}
		NewBuilder(testTable(), r, everything).AddMismatch(rowOf(1, "a", ""), rowOf(1, "b", ""))
		_, err = r.Marshal(math.MaxInt)
		require.NoError(t, err)
	}
	f("", false)
	f("{}", false)
	f("null", false)
	f(`{"TableName":"t","ProcessedRows":3,"MatchingRows":3,"Checkpoint":{"a":1}}`, false)
	f(`{"ExtraRowsSourceSample":[null,{"Row":{"a":"b"}},{}],"MismatchedRowsSample":[null,{},{"Source":null}]}`, false)
	f("secret", true)
	f(`{"TableName":"secret"`, true)
	f(`[1]`, true)
	f(`{"ProcessedRows":"secret"}`, true)
	f(`{"ProcessedRows":1e300}`, true)
	f(`{"ProcessedRows":-1}`, true)
	f(`{"MatchingRows":-1}`, true)
	f(`{"ExtraRowsTarget":9223372036854775807}`, true)
	f(`{"ExtraRowsSourceSample":[{"Row":{"a":7}}]}`, true)
	f(`{} {}`, true)
}

// TestValidUTF8 tests that the JSON is valid UTF-8 with whatever bytes in every column.
func TestValidUTF8(t *testing.T) {
	options := everything
	options.DebugQuery = true
	table := testTable()
	table.Key = []int{0, 1, 2}
	b := NewBuilder(table, nil, options)
	for _, text := range []string{"\xff\xfe", "caf\xe9", "a\x00b", "\u2028", "\xed\xa0\x80", "😀"} {
		b.AddMismatch(rowOf(1, text, text), rowOf(1, text+"x", text))
	}
	stored, err := b.Marshal()
	require.NoError(t, err)
	require.True(t, utf8.Valid(stored))
	require.NotContains(t, string(stored), "\ufffd")
	require.NotContains(t, string(stored), `\ufffd`)
	require.True(t, json.Valid(stored))
}
