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

// TestRepair tests the statements that would repair the target: they stand in a comment behind the query of --debug-query, change only
// what differs, hold every value that was seen on the target, and are left out where they could not be right.
func TestRepair(t *testing.T) {
	options := everything
	options.DebugQuery = true
	f := func(table *plan.Table, options Options, source, target []sqltypes.Value, want string) {
		t.Helper()
		b := NewBuilder(table, nil, options)
		query := ""
		switch {
		case target == nil:
			b.AddExtraSource(source)
			query = b.Report().ExtraRowsSourceDiffs[0].Query
		case source == nil:
			b.AddExtraTarget(target)
			query = b.Report().ExtraRowsTargetDiffs[0].Query
		default:
			b.AddMismatch(source, target)
			require.NotContains(t, b.Report().MismatchedRowsDiffs[0].Source.Query, "repair", "one is enough")
			query = b.Report().MismatchedRowsDiffs[0].Target.Query
		}
		_, repair, found := strings.Cut(query, repairMark)
		require.Equal(t, want != "", found, query)
		require.Equal(t, want, repair)
		require.NotContains(t, query, "\n", "it would end the comment")
	}
	f(testTable(), options, rowOf(1, "it's\n", "\x00'"), nil, `insert into t (id, title, doc) values (1, _utf8mb4 0x697427730a, 0x0027);`)
	// The same in a session in which a backslash does not escape, and in one of another charset.
	f(testTable(), options, rowOf(1, `it's; drop table t; -- `, "b"), nil, `insert into t (id, title, doc) values (1, 'it''s; drop table t; -- ', 0x62);`)
	f(testTable(), options, rowOf(1, `\'`, "b"), rowOf(1, `\`, "b"), `update t set title=_utf8mb4 0x5c27 where id=1 and cast(title as binary)=0x5c and doc=0x62 and tenant_id = 7;`)
	f(testTable(), options, nil, rowOf(1, "a", "b"), "delete from t where id=1 and cast(title as binary)='a' and doc=0x62 and tenant_id = 7;")
	f(testTable(), options, rowOf(1, "é", "b"), rowOf(1, "e\u0301", "b"), "update t set title=_utf8mb4 0xc3a9 where id=1 and cast(title as binary)=0x65cc81 and doc=0x62 and tenant_id = 7;")
	null := []sqltypes.Value{sqltypes.NewInt64(1), sqltypes.NULL, sqltypes.NewVarBinary("")}
	f(testTable(), options, null, rowOf(1, "", "b"), "update t set title=null, doc='' where id=1 and title='' and doc=0x62 and tenant_id = 7;")
	f(testTable(), options, rowOf(1, "", "b"), null, "update t set title='', doc=0x62 where id=1 and title is null and doc='' and tenant_id = 7;")

	keyless := testTable()
	keyless.Name, keyless.Key, keyless.KeyUnique, keyless.TargetFilter = "order", []int{0, 1, 2}, false, ""
	f(keyless, options, nil, rowOf(1, "a", "b"), "delete from `order` where id=1 and cast(title as binary)='a' and doc=0x62 limit 1;")

	// Equal bytes of two charsets are not the same text.
	latin1 := testTable()
	latin1.Columns[1].Source.Charset, latin1.Columns[1].Source.Collation = "latin1", 0
	f(latin1, options, rowOf(1, "\xc3\xa9", "b"), rowOf(1, "\xc3\xa9", "b"), "update t set title=_utf8mb4 0xc383c2a9 where id=1 and cast(title as binary)=0xc3a9 and doc=0x62 and tenant_id = 7;")

	// A key that is equal under its collation only is found by it and set.
	named := testTable()
	named.Key, named.TargetFilter = []int{1}, ""
	f(named, options, rowOf(1, "ABC", "b"), rowOf(1, "abc", "b"), "update t set title='ABC' where title='abc' and id=1 and doc=0x62;")

	typed := &plan.Table{Name: "t", SourceName: "t", Key: []int{0}, KeyUnique: true, Columns: []plan.Column{
		columnOf("id", "id", sqltypes.Int64, ""), columnOf("f", "f", sqltypes.Float32, ""), columnOf("j", "j", sqltypes.TypeJSON, ""),
		columnOf("select", "b", sqltypes.Bit, ""), columnOf("g", "g", sqltypes.Int64, ""),
	}}
	typed.Columns[3].TargetExpr, typed.Columns[4].Generated = "`select`", true
	values := func(f, j, b, g string) []sqltypes.Value {
		return []sqltypes.Value{
			sqltypes.NewInt64(1), sqltypes.MakeTrusted(sqltypes.Float32, []byte(f)), sqltypes.MakeTrusted(sqltypes.TypeJSON, []byte(j)),
			sqltypes.MakeTrusted(sqltypes.Bit, []byte(b)), sqltypes.MakeTrusted(sqltypes.Int64, []byte(g)),
		}
	}
	f(typed, options, values("0.1", "{}", "\x01", "2"), nil, "insert into t (id, f, j, `select`) values (1, 0.1, cast('{}' as json), 0x01);")
	f(typed, options, values("0.1", "{}", "\x01", "2"), values("0.2", "[]", "\x00", "3"),
		"update t set f=0.1, j=cast('{}' as json), `select`=0x01 where id=1 and cast(f as char)='0.2' and j=cast('[]' as json) and `select`=0x00 and g=3;")
	f(typed, options, values("0.1", "{}", "\x01", "2"), values("0.1", "{}", "\x01", "3"), "") // nothing that could be set

	f(testTable(), options, rowOf(1, strings.Repeat("x", 1<<20), "b"), nil, "")

	// A time of the session's zone is none of UTC, which is what is read and what VReplication writes.
	times := &plan.Table{Name: "t", SourceName: "t", Key: []int{0}, KeyUnique: true, Columns: []plan.Column{
		columnOf("id", "id", sqltypes.Int64, ""), columnOf("ts", "ts", sqltypes.Timestamp, ""), columnOf("d", "d", sqltypes.Timestamp, ""), columnOf("n", "n", sqltypes.Datetime, ""),
	}}
	times.Columns[0].AutoIncrement, times.Columns[2].Target.Type, times.Columns[3].Target.Type = true, sqltypes.Datetime, sqltypes.Timestamp
	at := func(id int64, types [3]querypb.Type, ts string) []sqltypes.Value {
		row := []sqltypes.Value{sqltypes.NewInt64(id)}
		for _, typ := range types {
			row = append(row, sqltypes.MakeTrusted(typ, []byte(ts)))
		}
		return row
	}
	sourceTypes, targetTypes := [3]querypb.Type{sqltypes.Timestamp, sqltypes.Timestamp, sqltypes.Datetime}, [3]querypb.Type{sqltypes.Timestamp, sqltypes.Datetime, sqltypes.Timestamp}
	f(times, options, at(1, sourceTypes, "2026-01-02 03:04:05.5"), at(1, targetTypes, "2026-01-01 00:00:00"),
		"update t set ts='2026-01-02 03:04:05.5+00:00', d='2026-01-02 03:04:05.5', n='2026-01-02 03:04:05.5+00:00' where id=1 and ts='2026-01-01 00:00:00+00:00' and d='2026-01-01 00:00:00' and n='2026-01-01 00:00:00+00:00';")
	f(times, options, at(7, sourceTypes, "0000-00-00 00:00:00"), nil, "insert into t (id, ts, d, n) values (7, '0000-00-00 00:00:00', '0000-00-00 00:00:00', '0000-00-00 00:00:00');")
	// AUTO_INCREMENT would make another row of it.
	f(times, options, at(0, sourceTypes, "0000-00-00 00:00:00"), nil, "")
	onlyPKs := options
	onlyPKs.OnlyPKs = true
	f(testTable(), onlyPKs, rowOf(1, "a", "b"), nil, "")
	f(testTable(), everything, rowOf(1, "a", "b"), nil, "")
	broken := testTable()
	broken.Columns[1].Name = "line\nbreak"
	b := NewBuilder(broken, nil, options)
	b.AddExtraSource(rowOf(1, "a", "b"))
	require.NotContains(t, b.Report().ExtraRowsSourceDiffs[0].Query, repairMark, "it would end the comment")
	for _, change := range []func(*plan.Table){func(t *plan.Table) { t.Aggregated = true }, func(t *plan.Table) { t.Columns[1].TimeZones = true }} {
		table := testTable()
		change(table)
		f(table, options, rowOf(1, "a", "b"), rowOf(1, "c", "b"), "")
	}
}
