// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package plan

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestDigestColumns tests the form in which both sides select a column of every pair of types: as it is where equal
// bytes mean equal values, cast where that makes it so, and not at all where nothing does.
func TestDigestColumns(t *testing.T) {
	f := func(source, target, wantSource, wantTarget string) {
		t.Helper()
		plan := build(t, "", "create table t(id bigint primary key, c "+source+")", "create table t(id bigint primary key, c "+target+")")
		if wantSource == "" {
			require.Nil(t, plan.Digest)
			require.Contains(t, plan.NotDigestible, "column c is "+strings.ToLower(strings.SplitN(source, " ", 2)[0]))
			return
		}
		require.NotNil(t, plan.Digest, plan.NotDigestible)
		assert.Equal(t, []string{"id", wantSource}, plan.Digest.Source.Columns)
		assert.Equal(t, []string{"id", wantTarget}, plan.Digest.Target.Columns)
	}
	same := func(columnType string) { t.Helper(); f(columnType, columnType, "c", "c") }
	for _, columnType := range []string{
		"int", "int unsigned", "decimal(10,2)", "double", "year", "date", "datetime(6)", "timestamp", "time(3)", "char(3)", "varchar(10)", "text", "blob",
		"binary(3)", "varbinary(10)", "enum('a','b')", "set('a','b')", "json", "bit(5)", "geometry",
	} {
		same(columnType)
	}
	f("float", "float", "cast(c as char)", "cast(c as char)")
	f("int", "bigint", "cast(c as signed)", "cast(c as signed)")
	f("tinyint unsigned", "int unsigned", "cast(c as unsigned)", "cast(c as unsigned)")
	f("datetime", "datetime(3)", "c", "c")
	f("timestamp", "datetime", "c", "c")
	f("varchar(10)", "text", "c", "c")
	f("enum('a','b')", "varchar(10)", "c", "c")
	f("varchar(10) character set latin1", "varchar(10)", "convert(c using utf8mb4)", "c")
	f("varchar(10)", "varchar(10) character set latin1", "c", "convert(c using utf8mb4)")
	f("varchar(10) character set utf8mb3", "varchar(10)", "c", "c")

	f("int", "int unsigned", "", "")
	f("decimal(10,2)", "decimal(10,3)", "", "")
	f("float", "double", "", "")
	f("int", "varchar(10)", "", "")
	f("time", "datetime", "", "")
	f("json", "text", "", "")
	f("year", "int", "", "")
}

// TestDigestRanges tests which tables can be read in ranges of their key, and by which index.
func TestDigestRanges(t *testing.T) {
	f := func(source, target, wantKey, wantIndexes, notRanged string) {
		t.Helper()
		plan := build(t, "", source, target)
		require.NotNil(t, plan.Digest, plan.NotDigestible)
		d := plan.Digest
		if notRanged != "" {
			assert.False(t, d.Ranged)
			assert.Contains(t, d.NotRanged, notRanged)
			return
		}
		require.True(t, d.Ranged, d.NotRanged)
		assert.Equal(t, wantKey, strings.Join(d.Source.Key, ",")+" "+strings.Join(d.Target.Key, ","))
		assert.Equal(t, wantIndexes, d.Source.Index+" "+d.Target.Index)
	}
	same := func(table, wantKey, wantIndex string) {
		t.Helper()
		f(table, table, wantKey+" "+wantKey, wantIndex+" "+wantIndex, "")
	}
	same("create table t(id bigint primary key, v int)", "id", "PRIMARY")
	same("create table t(a int, b varchar(10), primary key(b, a))", "b,a", "PRIMARY")
	same("create table t(a decimal(5,2) primary key)", "a", "PRIMARY")
	same("create table t(a int not null, b int, unique key u(a))", "a", "u")
	f("create table t(id int primary key)", "create table t(id bigint primary key)", "id id", "PRIMARY PRIMARY", "")

	unordered := func(table, why string) { t.Helper(); f(table, table, "", "", why) }
	unordered("create table t(a int, b int)", "unique key")
	unordered("create table t(e enum('b','a') primary key)", "key column e")
	unordered("create table t(f float primary key)", "key column f")
	unordered("create table t(b blob, primary key(b(10)))", "key column b")
	f("create table t(k varchar(10) collate utf8mb4_bin primary key)", "create table t(k varchar(10) primary key)", "", "", "different collations")
	f("create table t(id int primary key, a int not null)", "create table t(id int, a int not null, primary key(a, id))", "", "", "ordered by")
}

// TestDigestFilters tests the conditions of each side, in_keyrange in its forms, and the rules that digests cannot do.
func TestDigestFilters(t *testing.T) {
	const table = "create table t(id bigint primary key, a int, b varchar(10), d datetime)"
	d := func(filter string) *Digest {
		t.Helper()
		plan := build(t, filter, table, table)
		require.NotNil(t, plan.Digest, plan.NotDigestible)
		return plan.Digest
	}
	assert.Nil(t, d("").Source.KeyRange)
	assert.Equal(t, &InKeyRange{KeyRange: "-80"}, d("-80").Source.KeyRange)
	assert.Equal(t, &InKeyRange{KeyRange: "-80"}, d("select * from t where in_keyrange('-80')").Source.KeyRange)
	assert.Equal(t, &InKeyRange{Columns: []int{1, 0}, Vindex: "ks.multi", KeyRange: "40-80"}, d("select * from t where in_keyrange(a, id, 'ks.multi', '40-80')").Source.KeyRange)
	both := d("select * from t where in_keyrange(id, 'hash', '80-') and a = 7")
	assert.Equal(t, "a = 7", both.Source.Where)
	assert.Equal(t, "a = 7", both.Target.Where)
	assert.Nil(t, both.Target.KeyRange)

	not := func(filter, source, target, why string) {
		t.Helper()
		plan := build(t, filter, source, target)
		require.Nil(t, plan.Digest)
		assert.Contains(t, plan.NotDigestible, why)
	}
	not("select * from t where in_keyrange('-80') and in_keyrange('-40')", table, table, "more than one")
	not("select id, b from t where in_keyrange(a, 'hash', '-80')", table, "create table t(id bigint primary key, b varchar(10))", "column a, which is not compared")
	not("select id, convert_tz(d, 'UTC', 'US/Pacific') as d from t", table, "create table t(id bigint primary key, d datetime)", "computed")
	not("select a as id, count(*) as a from t group by a", table, "create table t(id bigint primary key, a int)", "groups")
}

// TestDigestOfPartialJSON tests that a table with JSON is compared in the fence where a source's binary log may have parts of its values only,
// and other tables are not.
func TestDigestOfPartialJSON(t *testing.T) {
	f := func(table string, digestible bool) {
		t.Helper()
		in := input(t, "", table, table)
		in.PartialJSON = true
		plan, err := Build(in)
		require.NoError(t, err)
		require.Equal(t, digestible, plan.Digest != nil)
		if !digestible {
			assert.Contains(t, plan.NotDigestible, "column j")
		}
	}
	f("create table t(id bigint primary key, j json)", false)
	f("create table t(id bigint primary key, j text)", true)
}

// TestInvisibleIndex tests that nobody is told to use an index which MySQL refuses to be told to use.
func TestInvisibleIndex(t *testing.T) {
	in := input(t, "", "create table t(a int primary key, b int not null, unique key u(b))", "create table t(a int not null, b int primary key)")
	plan, err := Build(in)
	require.NoError(t, err)
	require.Equal(t, "u", plan.Digest.Source.Index)
	for i := range in.Source.Unique {
		in.Source.Unique[i].Invisible = in.Source.Unique[i].Name == "u"
	}
	plan, err = Build(in)
	require.NoError(t, err)
	assert.NotContains(t, plan.SourceQuery, directiveIndex)
	if plan.Digest != nil {
		assert.NotEqual(t, "u", plan.Digest.Source.Index)
	}
}
