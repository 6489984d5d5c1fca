// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package plan

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"vitess.io/vitess/go/mysql/collations"
	"vitess.io/vitess/go/sqltypes"
	"vitess.io/vitess/go/vt/sqlparser"
	"vitess.io/vitess/go/vt/vtenv"
	"vitess.io/vitess/go/vt/vtgate/evalengine"
)

// TestConditionWays tests which conditions both sides' MySQL may apply for digests, which are left to row streams, and which are
// put to the arriving rows.
func TestConditionWays(t *testing.T) {
	f := func(condition, source, target string, digestible bool, wantSource, wantTarget string) {
		t.Helper()
		plan := build(t, "select * from t where "+condition+" and in_keyrange('-80')", "create table t(id int primary key, s "+source+")", "create table t(id int primary key, s "+target+")")
		assert.Equal(t, digestible, plan.Digest != nil, plan.NotDigestible)
		where := func(filter string) string {
			if filter == "" {
				return " where in_keyrange('-80')"
			}
			return " where " + filter + " and in_keyrange('-80')"
		}
		assert.Equal(t, "select id, s from t"+where(plan.SourceFilter), plan.SourceQuery)
		way := func(filter string, conditions []Condition) string {
			switch {
			case len(conditions) == 0 && filter == condition:
				return "query"
			case len(conditions) == 1 && filter == "" && conditions[0].SQL == condition && conditions[0].Column == 1 && conditions[0].LikeSource:
				return "source"
			case len(conditions) == 1 && filter == "" && conditions[0].SQL == condition && conditions[0].Column == 1:
				return "own"
			}
			return "neither"
		}
		assert.Equal(t, wantTarget, way(plan.TargetFilter, plan.TargetConditions))
		for i := range plan.SourceConditions {
			assert.False(t, plan.SourceConditions[i].LikeSource)
		}
		assert.Equal(t, wantSource, way(plan.SourceFilter, plan.SourceConditions))
		if !digestible {
			assert.Contains(t, plan.NotDigestible, condition)
		}
	}
	both := func(condition, columnType string, digestible bool, way string) {
		t.Helper()
		target := way
		if way == "own" {
			target = "source" // both columns are of one type
		}
		f(condition, columnType, columnType, digestible, way, target)
	}
	const general, latin1, bin = "varchar(9) collate utf8mb4_general_ci", "text character set latin1", "char(9) collate utf8mb4_bin"
	for _, condition := range []string{"s = 'x'", "s in ('x', 'y')", "s != 'x'", "s < 'x'", "s between 'x' and 'y'", "s not between 'x' and 'y'"} {
		both(condition, "varchar(9)", true, "query")
		both(condition, "varbinary(9)", true, "query")
	}
	for _, padded := range []string{general, latin1, bin} {
		for _, condition := range []string{"s != 'x'", "s < 'x'", "s <= 'x'", "s > 'x'", "s >= 'x'", "s between 'x' and 'y'", "s not between 'x' and 'y'"} {
			both(condition, padded, false, "own")
		}
		// What is equal for VReplication is equal for MySQL, so that the streams send exactly that.
		both("s = 'x'", padded, false, "query")
		both("s in ('x', 'y')", padded, false, "query")
		both("s is null", padded, true, "query")
		both("s is not null", padded, true, "query")
		both("s = 5", padded, false, "own")
	}
	for _, number := range []string{"int", "bigint unsigned", "decimal(9,2)"} {
		both("s != 5", number, true, "query")
		both("s in (-5, 6.5)", number, true, "query")
		both("s = '5'", number, false, "own")
	}
	both("s >= '2020-01-01'", "date", true, "query")
	both("s >= '2020-01-01 00:00:01'", "datetime", true, "query")
	both("s >= '2020-01-01'", "timestamp(3)", true, "query")
	both("s >= '2020-1-1'", "datetime", false, "own")
	both("s >= '2020-01-01 00:00:01'", "date", false, "own")
	both("s > 0.1", "float", false, "own")
	both("s = 'b'", "enum('a','b') collate utf8mb4_general_ci", false, "own")
	// Not of a form that a vstreamer takes: its own error is to be seen.
	both("s like 'x'", "varchar(9)", false, "query")

	// The rows of the target were chosen by the source's collation.
	f("s = 'x'", "varchar(9)", "varchar(9) collate utf8mb4_bin", false, "query", "source")
	f("s != 'x'", "varchar(9) collate utf8mb4_0900_bin", "varchar(9)", false, "query", "source")
	f("s != 'x'", "varchar(9) character set latin1", "varchar(9)", false, "own", "own")
	f("s != 5", "int", "varchar(9)", false, "query", "own")
	f("s != 5", "int", "bigint", true, "query", "query")
}

// TestConditionUnselected tests that a column that the rule does not select is sent by the source to be judged, once for all of its
// conditions, and that MySQL decides where it decides as VReplication does or where the rule converts the column.
func TestConditionUnselected(t *testing.T) {
	const source = "create table t(id int primary key, s varchar(9) character set latin1, n int, d datetime)"
	f := func(query, target, wantQuery string, wantColumns ...int) *Table {
		t.Helper()
		plan := build(t, query, source, "create table t("+target+")")
		assert.Equal(t, wantQuery, plan.SourceQuery)
		var columns []int
		for _, c := range plan.SourceConditions {
			columns = append(columns, c.Column)
			assert.False(t, c.LikeSource)
		}
		assert.Equal(t, wantColumns, columns)
		assert.Empty(t, plan.TargetConditions)
		return plan
	}
	const id = "id int primary key"
	plan := f("select id from t where s != 'x'", id, "select id, s from t", 1)
	require.Nil(t, plan.Digest)
	require.Equal(t, "select id from t", plan.TargetQuery)
	require.Equal(t, 1, plan.SourceJudged)
	require.Len(t, plan.Columns, 1)
	require.Empty(t, plan.TargetFilter)
	plan = f("select id from t where n != '5' and S > 'a' and n != 6 and s < 'x' and in_keyrange(id, 'hash', '-80')", id,
		"select id, n, s from t where n != 6 and in_keyrange(id, 'hash', '-80')", 1, 2, 2)
	require.Equal(t, 2, plan.SourceJudged)
	plan = f("select count(*) as c, n as id from t where s != 'x' group by id", "id int primary key, c int", "select 1 as c, n as id, s from t", 2)
	require.Equal(t, 1, plan.SourceJudged)
	plan = f("select sum(n) as c, id from t where n > '5' group by id", "id int primary key, c int", "select n as c, id, n from t", 2)
	require.Equal(t, 1, plan.SourceJudged)

	for _, condition := range []string{"s = 'x'", "s in ('x', 'y')", "n != 5", "s is not null"} {
		plan = f("select id from t where "+condition, id, "select id from t where "+condition)
		require.Zero(t, plan.SourceJudged)
		require.Equal(t, condition[0] == 'n' || condition == "s is not null", plan.Digest != nil)
	}
	plan = f("select id, convert(s using utf8mb4) as s from t where s != 'x'", id+", s varchar(9)",
		"select id, convert(s using utf8mb4) as s from t where s != 'x'")
	require.Nil(t, plan.Digest)
	plan = f("select id, convert_tz(d, 'UTC', 'US/Pacific') as d from t where d > '2020-1-1'", id+", d datetime",
		"select id, convert_tz(d, 'UTC', 'US/Pacific') as d from t where d > '2020-1-1'")
	require.Nil(t, plan.Digest)
}

// TestConditionPass tests that a condition decides as a vstreamer does: text is not padded, NULL passes nothing but IS NULL, and a
// collation that Vitess does not know is an error.
func TestConditionPass(t *testing.T) {
	pass := func(condition string, value sqltypes.Value, collation string) (bool, error) {
		t.Helper()
		expr, err := testParser.ParseExpr(condition)
		require.NoError(t, err)
		_, test, ok := parseTest(expr)
		require.True(t, ok)
		return (&Condition{SQL: condition, test: test, env: testEnv}).Pass(value, testEnv.LookupByName(collation))
	}
	f := func(condition string, yes, no []string) {
		t.Helper()
		for _, collation := range []string{"utf8mb4_general_ci", "latin1_swedish_ci", "utf8mb4_bin", "utf8mb4_0900_ai_ci"} {
			for _, columnType := range []sqltypes.Type{sqltypes.VarChar, sqltypes.Char, sqltypes.Text} {
				check := func(texts []string, want bool) {
					for _, text := range texts {
						got, err := pass(condition, sqltypes.MakeTrusted(columnType, []byte(text)), collation)
						require.NoError(t, err)
						assert.Equal(t, want, got, "%s: %q under %s", condition, text, collation)
					}
				}
				check(yes, true)
				check(no, false)
			}
			got, err := pass(condition, sqltypes.NULL, collation)
			require.NoError(t, err)
			assert.False(t, got, "%s: NULL", condition)
		}
	}
	f("s = 'x'", []string{"x"}, []string{"x ", "y", ""})
	f("s != 'x'", []string{"x ", "y", ""}, []string{"x"})
	f("s < 'x'", []string{"a", ""}, []string{"x", "x ", "y"})
	f("s <= 'x'", []string{"a", "x"}, []string{"x ", "y"})
	f("s > 'x'", []string{"x ", "y"}, []string{"a", "x"})
	f("s >= 'x'", []string{"x", "x ", "y"}, []string{"a"})
	f("s in ('q', 'r', 'x')", []string{"x", "q"}, []string{"x ", "y"})
	f("s between 'b' and 'x'", []string{"b", "b ", "c", "x"}, []string{"a", "x ", "y"})
	f("s not between 'b' and 'x'", []string{"a", "x ", "y"}, []string{"b", "b ", "c", "x"})
	f("s is not null", []string{"", "x"}, nil)
	got, err := pass("s is null", sqltypes.NULL, "utf8mb4_bin")
	require.NoError(t, err)
	assert.True(t, got)
	got, err = pass("n > 5", sqltypes.NewInt64(6), "binary")
	require.NoError(t, err)
	assert.True(t, got)
	_, err = (&Condition{SQL: "s = 'x'", test: test{op: sqlparser.EqualOp, values: []sqltypes.Value{sqltypes.NewVarChar("x")}}, env: testEnv}).
		Pass(sqltypes.NewVarChar("y"), collations.Unknown)
	assert.ErrorContains(t, err, "condition s = 'x'")
}

// TestConditionLiterals tests that literals are the values that a vstreamer makes of them.
func TestConditionLiterals(t *testing.T) {
	env := vtenv.NewTestEnv()
	for _, literal := range []string{"'x'", "''", "'5'", "5", "-5", "18446744073709551615", "1.50", "-0.5"} {
		expr, err := testParser.ParseExpr(literal)
		require.NoError(t, err)
		translated, err := evalengine.Translate(expr, &evalengine.Config{Collation: env.CollationEnv().DefaultConnectionCharset(), Environment: env})
		require.NoError(t, err)
		resolved, err := evalengine.EmptyExpressionEnv(env).Evaluate(translated)
		require.NoError(t, err)
		got, ok := literalValue(expr)
		require.True(t, ok, literal)
		assert.Equal(t, resolved.Value(env.CollationEnv().DefaultConnectionCharset()), got)
	}
	for _, literal := range []string{"99999999999999999999", "x'78'", "a", "null", "1e3", "date'2020-01-01'"} {
		expr, err := testParser.ParseExpr(literal)
		require.NoError(t, err)
		_, ok := literalValue(expr)
		assert.False(t, ok, literal)
	}
}

// TestConditionAgreed tests forms of values for which MySQL is trusted to decide as a vstreamer does.
func TestConditionAgreed(t *testing.T) {
	f := func(condition string, value sqltypes.Value, want bool) {
		t.Helper()
		expr, err := testParser.ParseExpr(condition)
		require.NoError(t, err)
		_, test, ok := parseTest(expr)
		require.True(t, ok)
		got, err := (&Condition{SQL: condition, test: test, env: testEnv}).Pass(value, collations.CollationBinaryID)
		require.NoError(t, err)
		assert.Equal(t, want, got, "%s: %v", condition, value)
	}
	at := func(typ sqltypes.Type, text string) sqltypes.Value { return sqltypes.MakeTrusted(typ, []byte(text)) }
	f("d >= '2020-01-01'", at(sqltypes.Date, "2020-01-01"), true)
	f("d > '2020-01-01'", at(sqltypes.Date, "2020-01-01"), false)
	f("d = '2020-01-01'", at(sqltypes.Datetime, "2020-01-01 00:00:00.000"), true)
	f("d > '2020-01-01 00:00:01'", at(sqltypes.Timestamp, "2020-01-01 00:00:01.500"), true)
	f("d <= '2020-01-01 00:00:01'", at(sqltypes.Timestamp, "2020-01-01 00:00:01.500"), false)
	f("d < '2020-01-01'", at(sqltypes.Datetime, "0000-00-00 00:00:00"), true)
	f("b = 'x'", at(sqltypes.VarBinary, "x"), true)
	f("b = 'x'", at(sqltypes.VarBinary, "x "), false)
	f("b = 'x'", at(sqltypes.Blob, "X"), false)
	f("b < 'é'", at(sqltypes.VarBinary, "\xc3\xa8"), true)
	f("n = 5", at(sqltypes.Decimal, "5.00"), true)
	f("n < 18446744073709551615", at(sqltypes.Int64, "-1"), true)
	f("n > -1", at(sqltypes.Uint64, "18446744073709551615"), true)
	f("n > 1.5", at(sqltypes.Int64, "2"), true)
}
