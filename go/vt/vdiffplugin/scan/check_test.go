// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package scan

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"vitess.io/vitess/go/vt/vterrors"

	vtrpcpb "vitess.io/vitess/go/vt/proto/vtrpc"

	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/pkrange"
)

// Tests which expressions are harmless: those that vdiffs are made of are, those that reach beyond the table, or do
// anything, are not.
func TestCheckExpression(t *testing.T) {
	for _, sql := range []string{
		"id", "`select`", "cast(f as char)", "cast(id as signed)", "convert(a using utf8mb4)", "convert_tz(ts, 'UTC', 'US/Pacific')", "if(d is null or d = e, d, cast('1000-01-01' as datetime(6)))", "'abc'", "1", "null", "x'01'",
		"concat(a, 'x', b)", "coalesce(a, 1)", "a + b * 2 - -1", "a = 1 and b <> 'x' or not c >= 5 and d is not null", "a in (1, 2, 3)", "a between 1 and 2",
		"a like 'x%'", "a collate utf8mb4_bin", "_utf8mb4 'x'", "ifnull(a, b)", "a <=> null", "convert(a, signed)",
	} {
		_, err := checkExpression(sql)
		assert.NoError(t, err, sql)
	}
	for _, sql := range []string{
		"", "select 1", "(select 1)", "a in (select b from t)", "exists (select 1)", "sleep(1)", "benchmark(1, 2)", "get_lock('a', 1)", "load_file('/etc/passwd')",
		"release_lock('a')", "@a", "@@version", "@a := 1", "db.t.a", "t.a", "mysql.user.a", "uuid()", "now()", "rand()", "count(*)", "max(a)", "user()", "database()",
		"case when a then b end", "a; drop table t", "a from t where 1", "a, b", "a union select b", "a from t -- ", "a b", "a as b", "distinct a", "*", "a limit 1", "a for update", "a -- x\n(", ":a", "?", "row_number() over ()", "values(a)", "last_insert_id(5)", "db.f(a)",
		"wait_for_executed_gtid_set('x')", "json_extract(a, '$')", "a regexp 'x'()", strings.Repeat("a+", 40_000) + "a", "interval(1, 2)", "default(a)", "match(a) against ('x')",
	} {
		_, err := checkExpression(sql)
		assert.Error(t, err, sql)
	}
	// What is not known to the parser as a comment is not sent to MySQL.
	got, err := checkExpression("a /* x */ + 1")
	require.NoError(t, err)
	assert.Equal(t, "a + 1", got)
	if got, err := checkExpression("1 /*!50000 or sleep(1) */"); err == nil {
		assert.NotContains(t, got, "sleep")
	}
}

// Tests the checks of everything else in a request.
func TestCheck(t *testing.T) {
	good := func() *DigestRequest {
		return &DigestRequest{Table: &Table{
			Name: "t", Columns: []string{"id", "a"}, Key: []KeyColumn{{Name: "id", Column: 0}}, Index: "PRIMARY", Where: "a > 1",
			Filter: &VindexFilter{Type: "hash", Columns: []int{0}, KeyRange: "-80"},
		}, Limit: 1, MaxBytes: 1, MaxTime: time.Second, Buckets: 1 << 16, BucketKey: []int{1}, Range: pkrange.Range{After: pkrange.Bound{{Kind: pkrange.Int}}}}
	}
	require.NoError(t, good().Check())
	f := func(change func(r *DigestRequest)) {
		t.Helper()
		r := good()
		change(r)
		err := r.Check()
		assert.Contains(t, []vtrpcpb.Code{vtrpcpb.Code_INVALID_ARGUMENT, vtrpcpb.Code_UNIMPLEMENTED}, vterrors.Code(err), "%v", err)
		assert.Error(t, (&Call{Tables: []DigestRequest{*good(), *r}}).Check())
	}
	f(func(r *DigestRequest) { r.Table = nil })
	f(func(r *DigestRequest) { r.Table.Name = "" })
	f(func(r *DigestRequest) { r.Table.Name = strings.Repeat("é", 65) })
	f(func(r *DigestRequest) { r.Table.Name = "a\x00" })
	f(func(r *DigestRequest) { r.Table.Columns = nil })
	f(func(r *DigestRequest) { r.Table.Columns = make([]string, 5000) })
	f(func(r *DigestRequest) { r.Table.Columns[0] = "sleep(1)" })
	f(func(r *DigestRequest) { r.Table.Where = "1; drop table t" })
	f(func(r *DigestRequest) { r.Table.Index = "" })
	f(func(r *DigestRequest) { r.Table.Key = nil })
	f(func(r *DigestRequest) { r.Table.Key[0].Column = 2 })
	f(func(r *DigestRequest) { r.Table.Key[0].Name = "" })
	f(func(r *DigestRequest) { r.Table.Key = make([]KeyColumn, 17) })
	f(func(r *DigestRequest) { r.Table.Filter.Columns[0] = -1 })
	f(func(r *DigestRequest) { r.Table.Filter.Type = "lookup" })
	f(func(r *DigestRequest) { r.Limit = -1 })
	f(func(r *DigestRequest) { r.MaxTime = -1 })
	f(func(r *DigestRequest) { r.Buckets = 3 })
	f(func(r *DigestRequest) { r.Buckets = 1 << 17 })
	f(func(r *DigestRequest) { r.Buckets = -4 })
	f(func(r *DigestRequest) { r.BucketKey = []int{2} })
	f(func(r *DigestRequest) { r.Range.UpTo = make(pkrange.Bound, 2) })
	f(func(r *DigestRequest) { r.Range.After[0].Kind = 9 })
	f(func(r *DigestRequest) { r.Range.After[0].Bytes = make([]byte, 1<<17) })
	f(func(r *DigestRequest) { r.Table.Key, r.Table.Index, r.Range = nil, "", pkrange.Range{} })

	rows := &RowsCall{Reads: []RowsRead{{Table: good().Table, Ranges: []pkrange.Range{{}}}}}
	require.NoError(t, rows.Check())
	rows.Reads[0].Ranges[0].After = make(pkrange.Bound, 2)
	require.Error(t, rows.Check())
	rows.Reads[0].Ranges = make([]pkrange.Range, maxRanges+1)
	require.Error(t, rows.Check())
}

// Tests the SQL of a read.
func TestSelectSQL(t *testing.T) {
	c, err := (&Table{Name: "t`x", Columns: []string{"id", "cast(a as CHAR)"}, Key: []KeyColumn{{Name: "id"}, {Name: "b`", Column: 1}}, Index: "PRIMARY", Where: "a > 1 or b = 2"}).compile()
	require.NoError(t, err)
	assert.Equal(t, "select id, cast(a as CHAR) from `t``x` force index (`PRIMARY`) where (a > 1 or b = 2) and (x > ?) order by `id`, `b``` limit ?", c.selectSQL("x > ?", true, "?"))
	c, err = (&Table{Name: "t", Columns: []string{"id"}}).compile()
	require.NoError(t, err)
	assert.Equal(t, "select id from `t`", c.selectSQL("", true, ""))
}
