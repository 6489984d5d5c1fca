// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package endtoend

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"vitess.io/vitess/go/vt/vtctl/workflow"
	"vitess.io/vitess/go/vt/vttablet/tabletmanager/vdiff"

	"github.com/vttablet-ext/vttablet-ext/test/endtoend/cluster"
)

// shape is a table of a kind, its rows, and differences that are planted on the target behind
// replication with what a vdiff must say of them.
type shape struct {
	name string
	ddl  string // the columns and keys, between "create table name (" and its end
	fill []string
	// rows is the number of rows on the source.
	rows int64
	// plant runs on the target; the counts are what is found then.
	plant                                []string
	mismatched, extraSource, extraTarget int64
}

// numbers1k is a source of the numbers 1 to 1000; see newBed.
const numbers1k = " from numbers"

var shapes = []shape{
	{"k_enum", "(e enum('open','closed','b','a') not null, id int not null, primary key (e, id))", []string{"select if(n % 2, 'open', 'closed'), n" + numbers1k}, 1000,
		[]string{"delete from k_enum where e = 'open' and id = 1", "insert into k_enum values ('a', 5)"}, 0, 1, 1},
	{"k_set", "(s set('x','y','z') not null, v int, primary key (s))", []string{"select distinct n % 8, n % 8" + numbers1k}, 8,
		[]string{"update k_set set v = 99 where s = 'x,y'"}, 1, 0, 0},
	{"k_text_ci", "(k varchar(20) collate utf8mb4_0900_ai_ci primary key, v int)", []string{"select concat('key', n), n" + numbers1k, "select 'ABC', 1", "select 'éclair', 1"}, 1002,
		[]string{"update k_text_ci set k = 'abc' where k = 'ABC'", "update k_text_ci set k = 'eclair' where k = 'éclair'"}, 2, 0, 0},
	{"k_text_general", "(k varchar(20) collate utf8mb4_general_ci primary key, v int)", []string{"select concat(char(97 + n % 26), n), n" + numbers1k}, 1000,
		[]string{"update k_text_general set v = -1 where v = 77"}, 1, 0, 0},
	{"k_text_latin1", "(k varchar(20) charset latin1 primary key, v varchar(20) charset latin1)", []string{"select concat('caf', convert(0xE9 using latin1), n), concat('na', convert(0xEF using latin1), 've')" + numbers1k}, 1000,
		[]string{"update k_text_latin1 set v = 'naive' where k like '%9_'"}, 100, 0, 0},
	{"k_decimal", "(d decimal(10,3) primary key, v int)", []string{"select n / 7 - 50, n" + numbers1k}, 1000, []string{"delete from k_decimal where d < -49"}, 0, 6, 0},
	{"k_datetime", "(d datetime(3) primary key, v int)", []string{"select '2020-01-01' + interval n * 12345678 microsecond, n" + numbers1k}, 1000,
		[]string{"update k_datetime set v = 0 where v = 10"}, 1, 0, 0},
	{"k_binary", "(k varbinary(16) primary key, b blob)", []string{"select substr(unhex(sha2(n, 256)), 1, 16), unhex(sha2(n, 512))" + numbers1k}, 1000,
		[]string{"delete from k_binary where k < 0x10"}, 0, -1, 0},
	{"k_unsigned", "(id bigint unsigned primary key, v int)", []string{"select 18446744073709551615 - n, n" + numbers1k, "select n, n" + numbers1k}, 2000,
		[]string{"update k_unsigned set v = 0 where id > 18446744073709551000 and v = 5"}, 1, 0, 0},
	{"k_negative", "(id int, day date, v int, primary key (day, id))", []string{"select 500 - n, '2020-01-01' + interval n % 50 day, n" + numbers1k}, 1000,
		[]string{"insert into k_negative values (0, '1999-12-31', 1)"}, 0, 0, 1},
	{"k_float", "(f double primary key, v float)", []string{"select n / 3, n / 7" + numbers1k}, 1000, []string{"update k_float set v = v + 1 where f > 333.2"}, 1, 0, 0},
	{"k_unique", "(a int not null, b int not null, c int, unique key (b, a))", []string{"select n, n % 10, n" + numbers1k}, 1000,
		[]string{"update k_unique set c = 0 where a = 3", "delete from k_unique where a = 4"}, 1, 1, 0},
	{"k_none", "(a int, b int)", []string{"select n % 100, n % 3" + numbers1k}, 1000, []string{"delete from k_none where a = 3 limit 2", "insert into k_none values (NULL, NULL)"}, 0, 2, 1},
	{"k_prefix", "(t text, v int, primary key (t(10)))", []string{"select concat(n, ' and some more text'), n" + numbers1k}, 1000, []string{"update k_prefix set v = 0 where v = 1000"}, 1, 0, 0},
	{"k_sixteen", sixteenColumns(), []string{"select n, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, n % 5, n" + numbers1k}, 1000,
		[]string{"update k_sixteen set v = 0 where c0 = 9"}, 1, 0, 0},
	{"v_types", "(id int primary key, j json, b bit(9), g int generated always as (id * 2) stored, t time(2), y year, ts timestamp(6) null, p point, n int null, inv int invisible default 3)",
		[]string{`(id, j, b, t, y, ts, p, n) select n, json_object('b', n, 'a', '1'), n % 512, '-12:30:00.25', 2020, '2020-01-02 03:04:05.123456', point(n, 1), null` + numbers1k}, 1000,
		[]string{"update v_types set j = '{\"a\": \"2\"}' where id = 1", "update v_types set b = 0 where id = 2", "update v_types set n = 0 where id = 3", "update v_types set p = point(0, 0) where id = 4", "update v_types set inv = 4 where id = 5"}, 5, 0, 0},
	{"v_empty", "(id int primary key)", nil, 0, []string{"insert into v_empty values (1), (2)"}, 0, 0, 2},
	{"order", "(`select` int primary key, `from me to you` varchar(10), unique key `where` (`from me to you`, `select`))", []string{"select n, 'x'" + numbers1k}, 1000,
		[]string{"update `order` set `from me to you` = '' where `select` = 1"}, 1, 0, 0},
}

func sixteenColumns() string {
	var columns, key []string
	for i := range 16 {
		columns = append(columns, fmt.Sprintf("c%d int", i))
		key = append(key, fmt.Sprintf("c%d", 15-i))
	}
	return "(" + strings.Join(columns, ", ") + ", v int, primary key (" + strings.Join(key, ", ") + "))"
}

func quote(name string) string { return "`" + strings.ReplaceAll(name, "`", "``") + "`" }

// TestTableShapes moves a table of each shape from one shard to one shard: no difference is found where there is none, exactly
// the planted ones afterwards, and none again when the statements are run that the reports have to repair the target.
func TestTableShapes(t *testing.T) {
	b := testBed(t)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	require.NoError(t, addOne(ctx, b))
	src := b.source()
	var names []string
	for _, s := range shapes {
		require.NoError(t, src.Exec(ctx, "create table "+quote(s.name)+" "+s.ddl), s.name)
		for _, fill := range s.fill {
			require.NoError(t, src.Exec(ctx, "insert into "+quote(s.name)+" "+fill), s.name)
		}
		names = append(names, s.name)
	}
	w := b.c.Workflow("one", "shapes")
	require.NoError(t, w.MoveTables(ctx, "--source-keyspace", sourceName, "--tables", strings.Join(names, ",")))
	defer func() {
		assert.NoError(t, w.Cancel(context.WithoutCancel(ctx), "MoveTables"))
	}()
	diff, err := w.Diff(ctx)
	require.NoError(t, err)
	one := b.c.Primary("one", "0")
	for _, s := range shapes {
		assert.Equal(t, counts(s.name, s.rows, 0, 0, 0), diff.TableSummaryMap[s.name], "before anything is planted")
	}
	for _, s := range shapes {
		for _, p := range s.plant {
			require.NoError(t, one.Exec(ctx, p), s.name)
		}
	}
	diff, err = w.Diff(ctx, "--debug-query", "--max-report-sample-rows", "0", "--row-diff-column-truncate-at", "0")
	require.NoError(t, err)
	for _, s := range shapes {
		if s.extraSource < 0 { // as many as are gone
			result, err := one.Query(ctx, "select count(*) from "+quote(s.name))
			require.NoError(t, err)
			left, err := result.Rows[0][0].ToInt64()
			require.NoError(t, err)
			s.extraSource = s.rows - left
		}
		want := counts(s.name, s.rows-s.mismatched-s.extraSource, s.mismatched, s.extraSource, s.extraTarget)
		assert.Equal(t, want, diff.TableSummaryMap[s.name])
	}
	// Of tables without an order only the rows of unequal buckets are compared.
	for _, name := range []string{"k_enum", "k_set", "k_none", "k_prefix"} {
		lines, err := one.GrepLogs(regexp.MustCompile(`table ` + name + `: \d+ rows verified, \d+ compared in \d+ of \d+ buckets, different: true`))
		require.NoError(t, err)
		assert.Len(t, lines, 1, name)
	}

	for _, s := range shapes {
		repair(t, ctx, one, diff.Reports[s.name]["0"])
	}
	diff, err = w.Diff(ctx)
	require.NoError(t, err)
	for _, s := range shapes {
		assert.Equal(t, counts(s.name, s.rows, 0, 0, 0), diff.TableSummaryMap[s.name], "after the repair")
	}
}

// repair runs the statements that a report has to repair the target, deletes before inserts: each changes one row. They mean the same in a session
// of another charset and time zone, in which a backslash does not escape.
func repair(t *testing.T, ctx context.Context, tablet *cluster.Tablet, report vdiff.DiffReport) {
	t.Helper()
	var queries []string
	for _, row := range report.ExtraRowsTargetDiffs {
		queries = append(queries, row.Query)
	}
	for _, m := range report.MismatchedRowsDiffs {
		queries = append(queries, m.Target.Query)
	}
	for _, row := range report.ExtraRowsSourceDiffs {
		queries = append(queries, row.Query)
	}
	conn, err := tablet.Conn(ctx)
	require.NoError(t, err)
	defer conn.Close()
	_, err = conn.ExecuteFetch("set names latin1, time_zone = '+05:30', sql_mode = concat(@@sql_mode, ',NO_BACKSLASH_ESCAPES')", 0, false)
	require.NoError(t, err)
	for _, query := range queries {
		_, statement, found := strings.Cut(query, " -- repair of the target: ")
		require.True(t, found, query)
		result, err := conn.ExecuteFetch(strings.TrimSuffix(statement, ";"), 0, false)
		require.NoError(t, err, statement)
		require.EqualValues(t, 1, result.RowsAffected, statement)
	}
}

func counts(table string, matching, mismatched, extraSource, extraTarget int64) workflow.TableSummary {
	return workflow.TableSummary{
		TableName: table, State: vdiff.CompletedState, RowsCompared: matching + mismatched + extraSource + extraTarget,
		MatchingRows: matching, MismatchedRows: mismatched, ExtraRowsSource: extraSource, ExtraRowsTarget: extraTarget,
	}
}

// TestMerge merges two shards into one: an ENUM key whose order is not that of its text and whose rows
// are on one shard each, a table without a key, and one whose text is of another charset on one shard for a while: that is an
// error of this table alone, which goes away with its cause. (VReplication itself cannot merge the copies of a
// reference table: unit tests have those.)
func TestMerge(t *testing.T) {
	b := testBed(t)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	require.NoError(t, addOne(ctx, b))
	low, high := b.c.Primary(targetName, "-80"), b.c.Primary(targetName, "80-")
	schema := []string{
		"create table m_enum (e enum('open','closed') not null, id bigint, primary key (e, id))",
		"create table m_none (a int, b int)",
		"create table m_text (id bigint primary key, v varchar(20))",
		"create table n (n int primary key)",
		"insert into n with recursive r as (select 1 as n union all select n + 1 from r where n < 1000) select n from r",
		"insert into m_none select n % 10, 1 from n",
	}
	for shard, tablet := range map[string]*cluster.Tablet{"open": low, "closed": high} {
		require.NoError(t, tablet.Exec(ctx, schema...))
		require.NoError(t, tablet.Exec(ctx, "insert into m_enum select '"+shard+"', x.n * 5 + y.n from n x, n y where y.n <= 5",
			"insert into m_text select n * 2 + ('"+shard+"' = 'open'), 'café' from n"))
	}
	_, err := b.c.Vtctl(ctx, "ApplyVSchema", "--vschema", `{"sharded": true, "vindexes": {"hash": {"type": "hash"}}, "tables": {
		"s1": {"column_vindexes": [{"column": "id", "name": "hash"}]}, "s2": {"column_vindexes": [{"column": "a", "name": "hash"}]},
		"s3": {"column_vindexes": [{"column": "a", "name": "hash"}]}, "b1": {"column_vindexes": [{"column": "id", "name": "hash"}]},
		"m_enum": {"column_vindexes": [{"column": "id", "name": "hash"}]}, "m_none": {"column_vindexes": [{"column": "a", "name": "hash"}]},
		"m_text": {"column_vindexes": [{"column": "id", "name": "hash"}]}}}`, targetName)
	require.NoError(t, err)

	w := b.c.Workflow("one", "merge")
	require.NoError(t, w.MoveTables(ctx, "--source-keyspace", targetName, "--tables", "m_enum,m_none,m_text"))
	defer func() { assert.NoError(t, w.Cancel(context.WithoutCancel(ctx), "MoveTables")) }()
	diff, err := w.Diff(ctx)
	require.NoError(t, err)
	assert.Equal(t, counts("m_enum", 10_000, 0, 0, 0), diff.TableSummaryMap["m_enum"])
	assert.Equal(t, counts("m_none", 2000, 0, 0, 0), diff.TableSummaryMap["m_none"])
	assert.Equal(t, counts("m_text", 2000, 0, 0, 0), diff.TableSummaryMap["m_text"])

	one := b.c.Primary("one", "0")
	require.NoError(t, one.Exec(ctx, "delete from m_enum where e = 'closed' and id = 10", "delete from m_none where a = 4 limit 1"))
	diff, err = w.Diff(ctx)
	require.NoError(t, err)
	assert.Equal(t, counts("m_enum", 9999, 0, 1, 0), diff.TableSummaryMap["m_enum"])
	assert.Equal(t, counts("m_none", 1999, 0, 1, 0), diff.TableSummaryMap["m_none"])

	require.NoError(t, one.Exec(ctx, "update m_text set v = 'cafe' where id = 8"))
	const convert = "alter table m_text modify v varchar(20) character set latin1"
	require.NoError(t, high.Exec(ctx, convert))
	uuid, err := w.VDiffCreate(ctx)
	require.NoError(t, err)
	diff, err = w.WaitVDiff(ctx, uuid, vdiff.ErrorState)
	require.NoError(t, err)
	for _, part := range []string{"m_text", "-80", "80-", "column v", "latin1"} {
		assert.Contains(t, diff.Errors["0"], part)
	}
	assert.Equal(t, counts("m_enum", 9999, 0, 1, 0), diff.TableSummaryMap["m_enum"])
	assert.Equal(t, counts("m_none", 1999, 0, 1, 0), diff.TableSummaryMap["m_none"])
	require.NoError(t, low.Exec(ctx, convert))
	diff, err = w.WaitVDiff(ctx, uuid, vdiff.CompletedState)
	require.NoError(t, err)
	assert.Equal(t, counts("m_enum", 9999, 0, 1, 0), diff.TableSummaryMap["m_enum"])
	assert.Equal(t, counts("m_text", 1999, 1, 0, 0), diff.TableSummaryMap["m_text"])
}

// TestMaterialize compares a rollup, one by text whose case makes no difference, sums of DOUBLE that were added up in another order and of FLOAT that
// were copied with fewer digits than they have, a FLOAT that is a DOUBLE on the target, and a table with renamed and filtered columns.
func TestMaterialize(t *testing.T) {
	b := testBed(t)
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	require.NoError(t, addOne(ctx, b))
	settings := `[
		{"target_table": "rollup", "source_expression": "select d, count(*) as c, sum(a) as total from s2 group by d",
		 "create_ddl": "create table rollup (d int primary key, c int, total decimal(20))"},
		{"target_table": "bytext", "source_expression": "select name, count(*) as c from cased group by name",
		 "create_ddl": "create table bytext (name varchar(20) collate utf8mb4_0900_ai_ci primary key, c int)"},
		{"target_table": "bygbk", "source_expression": "select gbk, count(*) as c from cased2 group by gbk",
		 "create_ddl": "create table bygbk (gbk varchar(20) character set gbk primary key, c int)"},
		{"target_table": "floats", "source_expression": "select d, sum(f) as total, count(*) as c from measured group by d",
		 "create_ddl": "create table floats (d int primary key, total double, c int)"},
		{"target_table": "narrow", "source_expression": "select d, sum(f) as total from measured2 group by d",
		 "create_ddl": "create table narrow (d int primary key, total double)"},
		{"target_table": "widened", "source_expression": "select id, f from measured3",
		 "create_ddl": "create table widened (id int primary key, f double)"},
		{"target_table": "renamed", "source_expression": "select id as ident, v as val from s1 where n < 100",
		 "create_ddl": "create table renamed (ident bigint primary key, val varchar(100))"}]`
	require.NoError(t, b.source().Exec(ctx, "create table cased (id int primary key, name varchar(20))", "create table cased2 (id int primary key, gbk varchar(20) character set gbk)",
		"create table measured (id int primary key, d int, f double)", "insert into measured select n, n % 3, if(n = 3, 1.5e9, n / 7e0) from numbers",
		"create table measured2 (id int primary key, d int, f float)", "insert into measured2 select n, n % 3, n / 7e0 from numbers", "create table measured3 like measured2", "insert into measured3 select * from measured2",
		"insert into cased select n, elt(n % 4 + 1, 'one', 'ONE', 'two', 'Two') from numbers", "insert into cased2 select * from cased"))
	_, err := b.c.Vtctl(ctx, "Materialize", "--workflow", "mat", "--target-keyspace", "one", "create", "--source-keyspace", sourceName, "--table-settings", settings)
	require.NoError(t, err)
	w := b.c.Workflow("one", "mat")
	defer func() { assert.NoError(t, w.Cancel(context.WithoutCancel(ctx), "Materialize")) }()
	require.NoError(t, w.WaitRunning(ctx))
	// Replication takes off and adds on, where the sum of the rows as they are is rounded in another way.
	require.NoError(t, b.source().Exec(ctx, "update measured set f = f + 0.1 where id % 5 = 0", "update measured set f = f - 0.3 where id % 2 = 0",
		"update measured3 set f = f + 0.1 where d = 1", "update measured2 set f = f + 0.1 where d = 1"))
	require.NoError(t, cluster.WaitFor(ctx, "updates to be added up", 50*time.Millisecond, func(ctx context.Context) (bool, error) {
		sums := make([]string, 2)
		for i, query := range []string{
			"select round((select sum(f) from measured), 3), round((select sum(f) from measured2))", "select round((select sum(total) from floats), 3), round((select sum(total) from narrow))",
		} {
			result, err := []*cluster.Tablet{b.source(), b.c.Primary("one", "0")}[i].Query(ctx, query)
			if err != nil {
				return false, err
			}
			sums[i] = fmt.Sprint(result.Rows[0])
		}
		return sums[0] == sums[1], nil
	}))
	result, err := b.source().Query(ctx, "select count(*) from s1 where n < 100")
	require.NoError(t, err)
	filtered, err := result.Rows[0][0].ToInt64()
	require.NoError(t, err)
	diff, err := w.Diff(ctx)
	require.NoError(t, err)
	assert.Equal(t, counts("rollup", 5, 0, 0, 0), diff.TableSummaryMap["rollup"])
	assert.Equal(t, counts("renamed", filtered, 0, 0, 0), diff.TableSummaryMap["renamed"])
	assert.Equal(t, counts("bytext", 2, 0, 0, 0), diff.TableSummaryMap["bytext"])
	assert.Equal(t, counts("bygbk", 2, 0, 0, 0), diff.TableSummaryMap["bygbk"])
	assert.Equal(t, counts("floats", 3, 0, 0, 0), diff.TableSummaryMap["floats"])
	assert.Equal(t, counts("narrow", 3, 0, 0, 0), diff.TableSummaryMap["narrow"])
	assert.Equal(t, counts("widened", 1000, 0, 0, 0), diff.TableSummaryMap["widened"])

	require.NoError(t, b.c.Primary("one", "0").Exec(ctx, "update rollup set total = total + 1 where d = 2", "delete from renamed order by ident limit 3",
		"update bytext set c = c - 1 where name = 'one'", "delete from bygbk where gbk = 'two'",
		"update floats set total = total + 0.75 where d = 1", "update floats set total = total - 0.75 where d = 0", "update narrow set total = total * 1.0001 where d = 2",
		"update widened set f = f * 1.00001 where id in (3, 4)"))
	diff, err = w.Diff(ctx)
	require.NoError(t, err)
	assert.Equal(t, counts("rollup", 4, 1, 0, 0), diff.TableSummaryMap["rollup"])
	assert.Equal(t, counts("renamed", filtered-3, 0, 3, 0), diff.TableSummaryMap["renamed"])
	assert.Equal(t, counts("bytext", 1, 1, 0, 0), diff.TableSummaryMap["bytext"])
	assert.Equal(t, counts("bygbk", 1, 0, 1, 0), diff.TableSummaryMap["bygbk"])
	assert.Equal(t, counts("floats", 1, 2, 0, 0), diff.TableSummaryMap["floats"])
	assert.Equal(t, counts("narrow", 2, 1, 0, 0), diff.TableSummaryMap["narrow"])
	assert.Equal(t, counts("widened", 998, 2, 0, 0), diff.TableSummaryMap["widened"])
}
