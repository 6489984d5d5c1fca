// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package report

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"vitess.io/vitess/go/sqltypes"

	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/plan"

	querypb "vitess.io/vitess/go/vt/proto/query"
)

// TestShow tests how values are written: binary as hex, text as text of its charset, and where they
// are cut.
func TestShow(t *testing.T) {
	f := func(typ querypb.Type, charset, value string, limit int, want string, wantExact, wantCut bool) {
		t.Helper()
		column := columnOf("c", "c", typ, charset)
		v := sqltypes.MakeTrusted(typ, []byte(value))
		text, exact, cut := show(v, column.Source, 0, limit)
		require.Equal(t, want, text)
		require.Equal(t, wantExact, exact)
		require.Equal(t, wantCut, cut)
	}
	const far = 1000
	f(sqltypes.Int64, "", "-7", far, "-7", true, false)
	f(sqltypes.VarChar, "utf8mb4", "é", far, "é", true, false)
	f(sqltypes.VarChar, "latin1", "caf\xe9", far, "café", true, false)
	f(sqltypes.Enum, "latin1", "\xe9", far, "é", true, false)
	f(sqltypes.VarChar, "utf16", "\x00a\x04\x16", far, "aЖ", true, false)
	f(sqltypes.VarChar, "utf8mb4", "\xe9", far, "0xe9", false, false)
	f(sqltypes.Null, "", "", far, "NULL", false, false)
	f(sqltypes.VarChar, "utf8mb4", "", far, "", true, false)
	f(sqltypes.VarBinary, "utf8mb4", "é", far, "é", true, false) // utf8mb4_bin
	f(sqltypes.Blob, "latin1", "\xe9", far, "é", true, false)
	f(sqltypes.VarBinary, "", "\x00\xff", far, "0x00ff", true, false)
	f(sqltypes.Blob, "", "", far, "0x", true, false)
	f(sqltypes.Bit, "", "\x05", far, "0x05", true, false)
	f(sqltypes.Geometry, "", "\x00\xff", far, "0x00ff", true, false)
	f(sqltypes.TypeJSON, "", `{"a": "é"}`, far, `{"a": "é"}`, true, false)

	// Cut only where it is worth it: the mark and twenty bytes more.
	f(sqltypes.VarChar, "utf8mb4", strings.Repeat("a", 43), 10, strings.Repeat("a", 43), true, false)
	f(sqltypes.VarChar, "utf8mb4", strings.Repeat("a", 44), 10, strings.Repeat("a", 10)+"...[TRUNCATED]", true, true)
	f(sqltypes.VarChar, "utf8mb4", strings.Repeat("é", 44), 9, strings.Repeat("é", 4)+"...[TRUNCATED]", true, true)
	f(sqltypes.VarChar, "utf8mb4", strings.Repeat("😀", 44), 3, "...[TRUNCATED]", true, true)
	f(sqltypes.Blob, "", strings.Repeat("a", 44), 10, "0x"+strings.Repeat("61", 10)+"...[TRUNCATED]", true, true)
}

// TestSampleOptions tests what --only-pks and --row-diff-column-truncate-at leave of a row, and when a
// sample is all there is to the row.
func TestSampleOptions(t *testing.T) {
	long := strings.Repeat("x", 100)
	f := func(options Options, key []int, row []sqltypes.Value, want map[string]string, wantLossless, wantTruncated bool) {
		t.Helper()
		table := testTable()
		table.Key = key
		options.MaxExtraTarget = 1
		b := NewBuilder(table, nil, options)
		b.AddExtraTarget(row)
		sample := b.Report().ExtraRowsTargetDiffs[0]
		require.Equal(t, want, sample.Row)
		require.Equal(t, wantLossless, sample.LosslessValues)
		require.Empty(t, sample.Query)
		require.Equal(t, wantTruncated, b.Report().Truncated)
	}
	id := []int{0}
	f(Options{}, id, rowOf(1, long, "b"), map[string]string{"id": "1", "title": long, "doc": "0x62"}, true, false)
	f(Options{TruncateAt: 20}, id, rowOf(1, long, "b"), map[string]string{"id": "1", "title": long[:20] + cutMark, "doc": "0x62"}, false, false)
	// Key columns are not cut by this option.
	f(Options{TruncateAt: 20}, []int{1}, rowOf(1, long, "b"), map[string]string{"id": "1", "title": long, "doc": "0x62"}, true, false)
	f(Options{OnlyPKs: true}, id, rowOf(1, long, "b"), map[string]string{"id": "1"}, false, false)
	f(Options{OnlyPKs: true}, []int{2, 1, 0}, rowOf(1, "a", "b"), map[string]string{"id": "1", "title": "a", "doc": "0x62"}, true, false)
	f(Options{}, id, []sqltypes.Value{sqltypes.NewInt64(1), sqltypes.NULL, sqltypes.NULL}, map[string]string{"id": "1", "title": "NULL", "doc": "NULL"}, false, false)
	// The bound on the report cuts any value, and says so.
	f(Options{MaxBytes: 1 << 14}, []int{1}, rowOf(1, strings.Repeat("k", 1<<12), "b"), map[string]string{"id": "1", "title": strings.Repeat("k", 256) + cutMark, "doc": "0x62"}, false, true)
	f(Options{MaxBytes: 1 << 14, TruncateAt: 1 << 12}, id, rowOf(1, strings.Repeat("k", 1<<13), "b"), map[string]string{"id": "1", "title": strings.Repeat("k", 256) + cutMark, "doc": "0x62"}, false, true)
}

// TestNames tests that both sides show a column under the target's name, and quoted where SQL needs it.
func TestNames(t *testing.T) {
	table := &plan.Table{Name: "t", SourceName: "t", Key: []int{0}, Columns: []plan.Column{columnOf("order", "`rank`", sqltypes.Int64, "")}}
	b := NewBuilder(table, nil, everything)
	b.AddMismatch([]sqltypes.Value{sqltypes.NewInt64(1)}, []sqltypes.Value{sqltypes.NewInt64(2)})
	sample := b.Report().MismatchedRowsDiffs[0]
	require.Equal(t, map[string]string{"`order`": "1"}, sample.Source.Row)
	require.Equal(t, map[string]string{"`order`": "2"}, sample.Target.Row)
}

// TestQuery tests the statements of --debug-query: each reads its own side.
func TestQuery(t *testing.T) {
	options := everything
	options.DebugQuery = true
	f := func(table *plan.Table, options Options, row []sqltypes.Value, wantSource, wantTarget string) {
		t.Helper()
		b := NewBuilder(table, nil, options)
		b.AddMismatch(row, row)
		b.AddExtraSource(row)
		b.AddExtraTarget(row)
		r := b.Report()
		reads := func(query string) string {
			read, _, _ := strings.Cut(query, repairMark)
			return read
		}
		require.Equal(t, wantSource, r.MismatchedRowsDiffs[0].Source.Query)
		require.Equal(t, wantTarget, r.MismatchedRowsDiffs[0].Target.Query)
		require.Equal(t, wantSource, reads(r.ExtraRowsSourceDiffs[0].Query))
		require.Equal(t, wantTarget, reads(r.ExtraRowsTargetDiffs[0].Query))
	}
	f(testTable(), options, rowOf(1, "a", "b"),
		"select id, nm as title, doc from src where id=1 and tenant = 7;",
		"select id, title, doc from t where id=1 and tenant_id = 7;")
	onlyPKs := options
	onlyPKs.OnlyPKs = true
	f(testTable(), onlyPKs, rowOf(1, "a", "b"), "select id from src where id=1 and tenant = 7;", "select id from t where id=1 and tenant_id = 7;")

	keyless := testTable()
	keyless.Key, keyless.SourceFilter, keyless.TargetFilter = []int{1, 2}, "", ""
	f(keyless, options, rowOf(1, "it's", "\x00'"),
		`select id, nm as title, doc from src where nm='it''s' and doc=0x0027;`, `select id, title, doc from t where title='it''s' and doc=0x0027;`)
	f(keyless, options, []sqltypes.Value{sqltypes.NewInt64(1), sqltypes.NULL, sqltypes.MakeTrusted(sqltypes.Blob, nil)},
		"select id, nm as title, doc from src where nm is null and doc='';", "select id, title, doc from t where title is null and doc='';")
	f(keyless, options, rowOf(1, "\xff", "b"),
		"select id, nm as title, doc from src where nm=_utf8mb4 0xff and doc=0x62;", "select id, title, doc from t where title=_utf8mb4 0xff and doc=0x62;")
	// No query at all is better than one that finds other rows.
	f(keyless, options, rowOf(1, strings.Repeat("x", 1<<20), "b"), "", "")

	// What only VStreamRows can compute is left out, and a constant finds nothing.
	computed := &plan.Table{Name: "t", SourceName: "order", Key: []int{0, 1, 2}, Columns: []plan.Column{
		columnOf("k", "keyspace_id()", sqltypes.VarBinary, ""), columnOf("one", "1", sqltypes.Int64, ""), columnOf("j", "j", sqltypes.TypeJSON, ""),
	}}
	f(computed, options, []sqltypes.Value{sqltypes.NewVarBinary("\x16"), sqltypes.NewInt64(1), sqltypes.MakeTrusted(sqltypes.TypeJSON, []byte(`{}`))},
		"select 1 as one, j from `order` where j=cast('{}' as json);",
		"select k, one, j from t where k=0x16 and one=1 and j=cast('{}' as json);")
}
