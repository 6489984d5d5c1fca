// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package plan

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/sidecar"

	binlogdatapb "vitess.io/vitess/go/vt/proto/binlogdata"
)

// input makes the Input of a rule for two create table statements. An empty source is a missing table.
func input(t *testing.T, filter, source, target string) Input {
	t.Helper()
	in := Input{
		Target:       parseTable(t, target),
		SourceShards: 1,
		Parser:       testParser,
		Collations:   testEnv,
	}
	in.Rule = &binlogdatapb.Rule{Match: in.Target.Name, Filter: filter}
	if source != "" {
		in.Source = parseTable(t, source)
	}
	return in
}

func build(t *testing.T, filter, source, target string) *Table {
	t.Helper()
	table, err := Build(input(t, filter, source, target))
	require.NoError(t, err)
	return table
}

// names returns the names of the columns with the given indexes.
func names(t *Table, indexes []int) string {
	var list []string
	for _, i := range indexes {
		list = append(list, t.Columns[i].Name)
	}
	return strings.Join(list, ",")
}

// TestQueries tests what is asked of each side for every form of a rule.
func TestQueries(t *testing.T) {
	const table = "create table t(id bigint primary key, a int, b varchar(10), d datetime)"
	f := func(filter, source, target, wantSource, wantTarget string) {
		t.Helper()
		plan := build(t, filter, source, target)
		require.Equal(t, wantSource, plan.SourceQuery)
		require.Equal(t, wantTarget, plan.TargetQuery)
	}
	const all = "select id, a, b, d from t"

	// Every row, and the rows of a key range in all of its forms.
	f("", table, table, all, all)
	f("select * from t", table, table, all, all)
	f("-80", table, table, all+" where in_keyrange('-80')", all)
	f("select * from t where in_keyrange('-80')", table, table, all+" where in_keyrange('-80')", all)
	f("select * from t where in_keyrange(id, 'xxhash', '-80')", table, table, all+" where in_keyrange(id, 'xxhash', '-80')", all)
	f("select * from t where in_keyrange(id, a, 'ks.multi', '-80')", table, table, all+" where in_keyrange(id, a, 'ks.multi', '-80')", all)
	f("select id, a, b, d from `t`", table, table, all, all)

	// The target is filtered by everything but the key range.
	f("select * from t where in_keyrange(id, 'hash', '-80') and a = 7", table, table,
		all+" where in_keyrange(id, 'hash', '-80') and a = 7", all+" where a = 7")
	f("select * from t where a in (1, 2) and b is not null and id between 3 and 4", table, table,
		all+" where a in (1, 2) and b is not null and id between 3 and 4", all+" where a in (1, 2) and b is not null and id between 3 and 4")
	// In its own names.
	f("select id, a as tenant, b from src where a = 7 and in_keyrange('80-')",
		"create table src(id bigint primary key, a int, b varchar(10))", "create table t(id bigint primary key, tenant int, b varchar(10))",
		"select id, a as tenant, b from src where a = 7 and in_keyrange('80-')", "select id, tenant, b from t where tenant = 7")

	// The target's order of columns, whatever the source's is.
	f("", "create table t(b int, a int, id int primary key)", "create table t(id int primary key, a int, b int)",
		"select id, a, b from t", "select id, a, b from t")
	// A column that only the target has is not compared; generated ones are when both have them.
	f("", "create table t(id int primary key, g int as (id + 1))", "create table t(id int primary key, extra int, g int as (id + 1), h int as (id + 2))",
		"select id, g from t", "select id, g from t")
	f("", "create table t(id int primary key, `order` int)", "create table t(id int primary key, `order` int)",
		"select id, `order` from t", "select id, `order` from t")

	// Expressions that VStreamRows knows, and those that it can be spared.
	f("select id, convert(b using utf8mb4) as b from t", table, table,
		"select id, convert(b using utf8mb4) as b from t", "select id, b from t")
	f("select id, convert(x using utf8mb3) as b from t", "create table t(id int primary key, x varchar(10))", table,
		"select id, convert(x using utf8mb4) as b from t", "select id, b from t")
	f("select id, convert_tz(d, 'US/Pacific', 'UTC') as d from t", table, table,
		"select id, convert_tz(d, 'US/Pacific', 'UTC') as d from t", "select id, d from t")
	f("select id, convert_tz(x, 'US/Pacific', 'UTC') as d from t", "create table t(id int primary key, x datetime)", table,
		"select id, convert_tz(x, 'US/Pacific', 'UTC') as x from t", "select id, d from t")
	f("select id, concat(`e`) as b from t", "create table t(id int primary key, e enum('x','y'))", table,
		"select id, e as b from t", "select id, b from t")
	f("select id, keyspace_id() as k, 1 as a from t", table, "create table t(id bigint primary key, k varbinary(10), a int)",
		"select id, keyspace_id(), 1 as a from t", "select id, k, a from t")
	// A directive of the rule stays.
	f("select /*vt+ ukColumns=\"id\" */ id, a from t", table, table,
		"select /*vt+ ukColumns=\"id\" */ id, a from t", "select id, a from t")

	// VStreamRows neither groups nor counts.
	f("select a, count(*) as n, sum(id) as s from t where in_keyrange(a, 'hash', '-80') group by a", table, "create table t(a int primary key, n bigint, s bigint)",
		"select a, 1 as n, id as s from t where in_keyrange(a, 'hash', '-80')", "select a, n, s from t")
	f("select a, count(*) as n from t where a > 5 and b = 'x' group by a", table, "create table t(a int primary key, n bigint)",
		"select a, 1 as n from t where a > 5 and b = 'x'", "select a, n from t where a > 5")
}

// TestTimeZones tests that DATETIME values are brought back where VReplication changed them: for a
// select *, and only when both time zones are set. A time that VReplication would not have made of what it is brought back to, the
// other one of the two hours that are one when clocks are set back, becomes one that equals nothing.
func TestTimeZones(t *testing.T) {
	const table = "create table t(id bigint primary key, d datetime, s timestamp)"
	const back = "convert_tz(if(d is null or convert_tz(convert_tz(d, 'UTC', 'US/Pacific'), 'US/Pacific', 'UTC') = d, d, " +
		"cast('1000-01-01 00:00:00.271828' as datetime(6))), 'UTC', 'US/Pacific')"
	f := func(filter, source, target string, want string, wantSet bool) {
		t.Helper()
		in := input(t, filter, table, table)
		in.SourceTimeZone, in.TargetTimeZone = source, target
		plan, err := Build(in)
		require.NoError(t, err)
		require.Equal(t, want, plan.TargetQuery)
		require.Equal(t, wantSet, plan.Columns[1].TimeZones)
		require.False(t, plan.Columns[0].TimeZones || plan.Columns[2].TimeZones)
	}
	f("", "US/Pacific", "UTC", "select id, "+back+" as d, s from t", true)
	f("select * from t where in_keyrange('-80')", "US/Pacific", "UTC", "select id, "+back+" as d, s from t", true)
	f("", "", "UTC", "select id, d, s from t", false)
	f("", "US/Pacific", "", "select id, d, s from t", false)
	f("select id, d, s from t", "US/Pacific", "UTC", "select id, d, s from t", false)
}

// TestCharsets tests that text is brought to utf8mb4 where its bytes differ, and that what rows are
// filtered by is left as it is.
func TestCharsets(t *testing.T) {
	f := func(filter, source, target, wantSource, wantTarget, wantSourceCharset, wantTargetCharset string) {
		t.Helper()
		plan := build(t, filter, "create table t(id int primary key, "+source+")", "create table t(id int primary key, "+target+")")
		require.Equal(t, wantSource, plan.Columns[1].SourceExpr)
		require.Equal(t, wantTarget, plan.Columns[1].TargetExpr)
		require.Equal(t, wantSourceCharset, plan.Columns[1].Source.Charset)
		require.Equal(t, wantTargetCharset, plan.Columns[1].Target.Charset)
	}
	const (
		latin1  = "c varchar(10) character set latin1"
		utf8    = "c varchar(10)"
		utf8mb3 = "c varchar(10) character set utf8mb3"
		greek   = "c varchar(10) character set greek"
	)
	f("", utf8, utf8, "c", "c", "utf8mb4", "utf8mb4")
	f("", latin1, latin1, "c", "c", "latin1", "latin1")
	f("", utf8mb3, utf8, "c", "c", "utf8mb3", "utf8mb4")
	f("", latin1, utf8, "convert(c using utf8mb4)", "c", "utf8mb4", "utf8mb4")
	f("", utf8, latin1, "c", "convert(c using utf8mb4)", "utf8mb4", "utf8mb4")
	f("", latin1, greek, "convert(c using utf8mb4)", "convert(c using utf8mb4)", "utf8mb4", "utf8mb4")
	f("", "c enum('a') character set latin1", utf8, "convert(c using utf8mb4)", "c", "utf8mb4", "utf8mb4")
	f("select id, c as c from t", latin1, utf8, "convert(c using utf8mb4)", "c", "utf8mb4", "utf8mb4")
	f("select id, convert(c using utf8mb4) as c from t", latin1, latin1, "convert(c using utf8mb4)", "convert(c using utf8mb4)", "utf8mb4", "utf8mb4")
	f("select id, convert(c using utf8mb4) as c from t", "c json", "c json", "convert(c using utf8mb4)", "c", "", "")
	// The vindex sees what VReplication's vindex saw.
	f("select * from t where in_keyrange(c, 'unicode_loose_md5', '-80')", latin1, utf8, "c", "c", "latin1", "utf8mb4")
	f("select * from t where in_keyrange(id, 'hash', '-80')", latin1, utf8, "convert(c using utf8mb4)", "c", "utf8mb4", "utf8mb4")
	f("-80", latin1, utf8, "c", "c", "latin1", "utf8mb4")
	f("select * from t where c = 'x'", latin1, utf8, "c", "c", "latin1", "utf8mb4")
	// What of it the target has can be converted all the same, but where its rows are filtered by it, too.
	f("-80", latin1, greek, "c", "convert(c using utf8mb4)", "latin1", "utf8mb4")
	f("select * from t where c = 'x'", latin1, greek, "c", "c", "latin1", "greek")
	// MySQL brings what is no text into the target's charset when it is written, and reads it out of the source's.
	f("", "c json", latin1, "c", "convert(c using utf8mb4)", "", "utf8mb4")
	f("", "c int", "c text character set utf16", "c", "convert(c using utf8mb4)", "", "utf8mb4")
	f("", "c datetime", greek, "c", "convert(c using utf8mb4)", "", "utf8mb4")
	f("select id, 1 as c from t", "c int", "c text character set utf16", "1", "convert(c using utf8mb4)", "", "utf8mb4")
	f("", "c json", utf8, "c", "c", "", "utf8mb4")
	f("", latin1, "c json", "convert(c using utf8mb4)", "c", "utf8mb4", "")
	f("", "c text character set utf16", "c int", "convert(c using utf8mb4)", "c", "utf8mb4", "")
	f("", utf8, "c json", "c", "c", "utf8mb4", "")
	// Binary strings have no charset.
	f("", "c varbinary(10)", latin1, "c", "c", "", "latin1")
	f("", "c bit(8)", latin1, "c", "c", "", "latin1")
	f("", latin1, "c blob", "c", "c", "latin1", "")
	f("", "c varbinary(10)", utf8, "c", "c", "", "utf8mb4")
}

// TestErrors tests that a table that cannot be compared says why, and that nobody tries it again.
func TestErrors(t *testing.T) {
	const table = "create table t(id bigint primary key, a int, b varchar(10), d datetime)"
	f := func(filter, source, target string, want ...string) {
		t.Helper()
		_, err := Build(input(t, filter, source, target))
		require.Error(t, err)
		class, ok := sidecar.ClassOf(err)
		require.True(t, ok, "%v", err)
		require.Equal(t, sidecar.Permanent, class)
		for _, part := range append(want, "table t: ") {
			require.ErrorContains(t, err, part)
		}
	}
	f("", "", table, "source table t does not exist", "--tables")
	f("select id from gone", "", table, "source table gone does not exist")
	f("select id, from t", table, table, "cannot be parsed")
	f("select id from t, u", table, table, "not a plain select")
	f("select distinct id from t", table, table, "not a plain select")
	f("delete from t", table, table, "not a plain select")
	f("select id from (select id from t) as x", table, table, "does not select from a table")
	f("select *, id from t", table, table, "mixes *")
	f("select * from t group by id", table, table, "groups")
	f("select a+1 from t", table, table, "without an alias")
	f("select id, a+1 as a from t", table, table, "computes column a as a + 1", "--tables")
	f("select id, 2 as a from t", table, table, "computes column a as 2")
	f("select id, upper(b) as b from t", table, table, "computes column b")
	f("select id, count(b) as a from t group by id", table, table, "computes column a")
	f("select id, a as x from t", table, table, "column x, which the target table does not have")
	f("select id, x as a from t", table, table, "column x, which the source table t does not have")
	f("select id, t.a as a from t", table, table, "which the source table t does not have")
	f("select id, a, b as a from t", table, table, "column a twice")
	f("", "create table t(id int primary key, a int, x int, y int)", table, "x, y", "add them to the target")
	f("", "create table t(x int)", "create table t(y int)", "x")
	f("select id, d, convert_tz(d, 'a', 'b') as d2 from t", table, "create table t(id bigint primary key, d datetime, d2 datetime)", "both with and without convert_tz")
	f("select a, count(*) as n from t group by a", table, "create table t(id bigint primary key auto_increment, a int, n int)", "primary key")
	f("select a, count(*) as n from t group by a", table, "create table t(a int, n int)", "primary key")

	in := input(t, "select * from t where d > '2020-01-01'", table, table)
	in.SourceTimeZone, in.TargetTimeZone = "US/Pacific", "UTC"
	plan, err := Build(in)
	require.NoError(t, err)
	require.Equal(t, "d > '2020-01-01'", plan.SourceFilter)
	require.Empty(t, plan.TargetFilter, "its values are other ones there")
}

// TestAggregates tests what is said of the columns of a rule that groups.
func TestAggregates(t *testing.T) {
	plan := build(t, "select a, count(*) as n, sum(id) as s, b as last from t group by a",
		"create table t(id bigint primary key, a int, b int)", "create table t(a int primary key, n bigint, s decimal(30), last int)")
	require.True(t, plan.Aggregated)
	require.Equal(t, "a", names(plan, plan.Key))
	require.True(t, plan.KeyUnique)
	require.False(t, plan.Mergeable)
	require.Equal(t, []Aggregate{AggregateNone, AggregateCount, AggregateSum, AggregateNone},
		[]Aggregate{plan.Columns[0].Aggregate, plan.Columns[1].Aggregate, plan.Columns[2].Aggregate, plan.Columns[3].Aggregate})
	require.Equal(t, []string{"a", "1", "id", "b"},
		[]string{plan.Columns[0].SourceExpr, plan.Columns[1].SourceExpr, plan.Columns[2].SourceExpr, plan.Columns[3].SourceExpr})
	require.False(t, build(t, "", "create table t(id int primary key)", "create table t(id int primary key)").Aggregated)
}

// TestFilters tests the conditions that debug queries and others get apart from the queries.
func TestFilters(t *testing.T) {
	plan := build(t, "select id, a as tenant from t where in_keyrange('-80') and a = 7 and id > 5",
		"create table t(id bigint primary key, a int)", "create table t(id bigint primary key, tenant int)")
	require.Equal(t, "a = 7 and id > 5", plan.SourceFilter)
	require.Equal(t, "tenant = 7 and id > 5", plan.TargetFilter)
	// What the rule filters by is not on the target: nothing is left to tell its rows by, all are compared.
	plan = build(t, "select id from t where a = 7 and id > 5",
		"create table t(id bigint primary key, a int)", "create table t(id bigint primary key)")
	require.Equal(t, "a = 7 and id > 5", plan.SourceFilter)
	require.Equal(t, "id > 5", plan.TargetFilter)
	plan = build(t, "-80", "create table t(id bigint primary key)", "create table t(id bigint primary key)")
	require.Empty(t, plan.SourceFilter+plan.TargetFilter)
}

// TestBuildDoesNotChangeItsInput tests that planning twice from one input gives the same plan.
func TestBuildDoesNotChangeItsInput(t *testing.T) {
	in := input(t, "select id, a as tenant, c from t where a = 7",
		"create table t(id bigint primary key, a int, c varchar(9) character set latin1)", "create table t(tenant int, id bigint, c varchar(9), primary key(tenant, id))")
	first, err := Build(in)
	require.NoError(t, err)
	second, err := Build(in)
	require.NoError(t, err)
	require.Equal(t, first, second)
	require.Equal(t, "latin1", in.Source.Columns[2].Charset)
}
