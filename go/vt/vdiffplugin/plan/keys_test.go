// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package plan

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// how says which way a table's rows can be read.
type how string

const (
	ordered   how = "ordered"   // merged, and a key is a checkpoint
	mergeable how = "mergeable" // merged, without checkpoints
	unordered how = "unordered"
)

func howOf(t *Table) how {
	switch {
	case t.Ordered:
		return ordered
	case t.Mergeable:
		return mergeable
	}
	return unordered
}

// TestKeys tests by which columns rows are paired, whether these are unique, and how streams come.
func TestKeys(t *testing.T) {
	f := func(filter, source, target, wantKey string, wantUnique bool, want how) *Table {
		t.Helper()
		plan := build(t, filter, "create table t("+source+")", "create table t("+target+")")
		require.Equal(t, wantKey, names(plan, plan.Key))
		require.Equal(t, wantUnique, plan.KeyUnique)
		require.Equal(t, want, howOf(plan), plan.NotOrdered)
		require.Equal(t, plan.Ordered, plan.NotOrdered == "", plan.NotOrdered)
		require.False(t, plan.Ordered && !plan.Mergeable)
		for _, i := range plan.Key {
			require.False(t, plan.Mergeable && plan.Columns[i].Order == OrderNone)
		}
		require.Equal(t, plan.Ordered, plan.SourceKey != nil && plan.TargetKey != nil)
		return plan
	}

	// The same key on both sides.
	f("", "id bigint primary key, v int", "id bigint primary key, v int", "id", true, ordered)
	f("-80", "a int, b int, c int, primary key(b,a)", "a int, b int, c int, primary key(b,a)", "b,a", true, ordered)
	f("select b as y, a as x from t", "a int, b int, c int, primary key(b,a)", "x int, y int, primary key(y,x)", "y,x", true, ordered)
	f("", "id int, u int not null, unique key(u)", "id int, u int not null, unique key(u)", "u", true, ordered)

	// The target's key has more columns than the source's (tenants put together).
	f("", "id bigint primary key, tenant_id int, v int", "id bigint, tenant_id int, v int, primary key(tenant_id,id)", "tenant_id,id", true, unordered)
	// The rule pins what is more.
	p := f("select * from t where tenant_id = 2", "id bigint primary key, tenant_id int not null", "id bigint, tenant_id int, primary key(tenant_id,id)", "tenant_id,id", true, ordered)
	require.Equal(t, "id", names(p, p.SourceKey))
	require.Equal(t, "tenant_id,id", names(p, p.TargetKey))
	f("select * from t where tenant_id = 2", "id int, col1 int, tenant_id int, primary key(id,col1)", "id int, col1 int, tenant_id int, primary key(id,col1)", "id,col1", true, ordered)
	// Ranges, lists and other domains pin nothing.
	f("select * from t where tenant_id >= 2", "id bigint primary key, tenant_id int not null", "id bigint, tenant_id int, primary key(tenant_id,id)", "tenant_id,id", true, unordered)
	f("select * from t where tenant_id in (2)", "id bigint primary key, tenant_id int not null", "id bigint, tenant_id int, primary key(tenant_id,id)", "tenant_id,id", true, unordered)
	f("select * from t where tenant_id = '2'", "id bigint primary key, tenant_id int not null", "id bigint, tenant_id int, primary key(tenant_id,id)", "tenant_id,id", true, unordered)
	f("select * from t where tenant_id = 'x'", "id bigint primary key, tenant_id varchar(9) not null", "id bigint, tenant_id varchar(9), primary key(tenant_id,id)", "tenant_id,id", true, ordered)
	// The source's key has a column that the rule pins.
	p = f("select * from t where tenant_id = 2", "id bigint, tenant_id int, primary key(tenant_id,id)", "id bigint primary key, tenant_id int not null", "id", true, ordered)
	require.Equal(t, "tenant_id,id", names(p, p.SourceKey))
	require.Equal(t, "id", names(p, p.TargetKey))
	// A constant for the tenant.
	f("select id, 1 as tenant_id from t", "id bigint primary key", "id bigint, tenant_id int, primary key(tenant_id,id)", "tenant_id,id", true, mergeable)

	// A table that was partitioned on the way: the target's order is the source's, refined.
	f("", "id bigint primary key, day date not null", "id bigint, day date, primary key(id,day)", "id,day", true, mergeable)
	f("", "id bigint, day date, primary key(id,day)", "id bigint primary key, day date not null", "id,day", true, mergeable)
	// Other keys on each side.
	f("", "a int primary key, b int not null", "a int not null, b int primary key", "b,a", true, unordered)
	f("", "a int, b int, primary key(a,b)", "a int, b int, primary key(b,a)", "b,a", true, unordered)

	// No key on one side or on both: pairs of whole rows.
	f("", "a int not null, b int not null", "a int not null, b int not null", "a,b", false, ordered)
	f("", "a int, b int not null", "a int, b int not null", "a,b", false, unordered)
	f("", "a int not null, b text not null", "a int not null, b text not null", "a,b", false, unordered)
	f("", "a int primary key, b int not null", "a int not null, b int not null", "a,b", false, mergeable)
	f("", "a int not null, b int not null", "b int primary key, a int not null", "b,a", false, unordered)
	f("select a from t", "a int not null, b int not null", "a int not null", "a", false, mergeable)
	// The target's key is not filled by the workflow.
	f("", "a int not null, b int not null", "id int primary key auto_increment, a int not null, b int not null", "a,b", false, unordered)
	f("", "a int primary key, b int not null", "id int primary key auto_increment, a int not null, b int not null, unique key(a)", "a", true, ordered)
	// The source's key is not read.
	f("select name from t", "id int primary key, name varchar(9) not null", "name varchar(9) primary key", "name", false, unordered)

	// A rule that groups pairs by the target's key.
	f("select cid, count(*) as n from t group by cid", "cid int, id int, primary key(cid,id)", "cid int primary key, n int", "cid", true, mergeable)
	f("select cid, count(*) as n from t group by cid", "cid int, id int, primary key(id,cid)", "cid int primary key, n int", "cid", true, unordered)
	f("select cid, count(*) as n from t group by cid", "cid int primary key", "cid int primary key, n int", "cid", true, ordered)
}

// TestSharedIndex tests that streams are told to use a unique index that both sides have when their
// primary keys give no common order, and that such a table has checkpoints only where the stock engine
// would not use them for its own order.
func TestSharedIndex(t *testing.T) {
	const uuid = "uuid varchar(36) not null"
	plan := build(t, "", "create table t(id bigint primary key, "+uuid+", unique key u1(uuid))", "create table t(id bigint not null, "+uuid+", unique key k(id), primary key(uuid))")
	require.True(t, plan.Ordered, plan.NotOrdered)
	require.Equal(t, "id", names(plan, plan.Key))
	require.Equal(t, `select /*vt+ ukColumns="id" ukForce="PRIMARY" */ id, uuid from t`, plan.SourceQuery)
	require.Equal(t, `select /*vt+ ukColumns="id" ukForce="k" */ id, uuid from t`, plan.TargetQuery)

	const enum = "e enum('a','b') not null, n int not null"
	plan = build(t, "", "create table t("+enum+", primary key(e), unique key n(n))", "create table t("+enum+", primary key(e), unique key `n 2`(n))")
	require.Equal(t, mergeable, howOf(plan))
	require.Equal(t, "n", names(plan, plan.Key))
	require.Equal(t, `select /*vt+ ukColumns="n" ukForce="n+2" */ e, n from t`, plan.TargetQuery)
	require.Contains(t, plan.NotOrdered, "key column e")

	// Nothing in common.
	plan = build(t, "", "create table t("+enum+", primary key(e))", "create table t("+enum+", primary key(e), unique key(n))")
	require.Equal(t, unordered, howOf(plan))
	require.Equal(t, "select e, n from t", plan.SourceQuery)
}

// TestDirective tests that a rule's own ukColumns decides how the source is ordered.
func TestDirective(t *testing.T) {
	const table = "create table t(id int primary key, u int not null, v int not null, unique key u(u))"
	plan := build(t, `select /*vt+ ukColumns="u" */ id, u, v from t`, table, table)
	require.Equal(t, "u", names(plan, plan.Key))
	// The stock engine orders by id.
	require.Equal(t, mergeable, howOf(plan))
	require.Equal(t, `select /*vt+ ukColumns="u" ukForce="u" */ id, u, v from t`, plan.TargetQuery)

	plan = build(t, `select /*vt+ ukColumns="u" */ id, u, v from t`, table, "create table t(id int not null, u int primary key, v int not null)")
	require.Equal(t, ordered, howOf(plan), plan.NotOrdered)
	require.Equal(t, `select /*vt+ ukColumns="u" */ id, u, v from t`, plan.SourceQuery)
	require.Equal(t, "select id, u, v from t", plan.TargetQuery)
}

// TestOrder tests which values of a key column can be put in MySQL's order.
func TestOrder(t *testing.T) {
	f := func(source, target string, want Order, wantWhy string) {
		t.Helper()
		plan := build(t, "", "create table t(k "+source+", primary key(k))", "create table t(k "+target+", primary key(k))")
		require.Equal(t, want, plan.Columns[0].Order, plan.NotOrdered)
		require.Equal(t, want != OrderNone, plan.Ordered)
		require.Contains(t, plan.NotOrdered, wantWhy)
	}
	same := func(columnType string, want Order, wantWhy string) {
		t.Helper()
		f(columnType, columnType, want, wantWhy)
	}
	same("bigint", OrderSigned, "")
	f("int", "bigint", OrderSigned, "")
	f("tinyint unsigned", "bigint unsigned", OrderUnsigned, "")
	f("int", "bigint unsigned", OrderDecimal, "")
	f("int", "decimal(20,0)", OrderDecimal, "")
	same("decimal(10,2)", OrderDecimal, "")
	same("varbinary(10)", OrderBytes, "")
	f("varbinary(10)", "varbinary(20)", OrderBytes, "")
	same("binary(16)", OrderBytes, "")
	f("binary(16)", "binary(20)", OrderNone, "binary(16) on the source")
	f("binary(16)", "varbinary(16)", OrderNone, "on the target")
	same("date", OrderBytes, "")
	same("year", OrderBytes, "")
	f("year", "int", OrderNone, "year on the source")
	same("datetime(3)", OrderBytes, "")
	f("datetime", "datetime(6)", OrderNone, "datetime(6) on the target")
	f("date", "datetime", OrderNone, "date on the source")
	same("timestamp", OrderBytes, "")
	same("varchar(10)", OrderCollation, "")
	f("char(5)", "varchar(10)", OrderCollation, "")
	same("varchar(10) character set latin1", OrderCollation, "")
	same("varchar(10) collate utf8mb4_bin", OrderCollation, "")
	f("varchar(10) collate utf8mb4_bin", "varchar(10)", OrderNone, "different collations")
	f("varchar(10) character set latin1", "varchar(10)", OrderNone, "different charsets")
	same("varchar(10) collate utf8mb4_unknown_ci", OrderNone, "collation that Vitess does not know")
	f("varchar(10)", "int", OrderNone, "varchar(10) on the source")
	same("enum('b','a')", OrderNone, "enum")
	same("set('b','a')", OrderNone, "set")
	same("float", OrderNone, "float")
	same("double", OrderNone, "double")
	same("time", OrderNone, "time")
	same("bit(3)", OrderNone, "bit")

	// An index of the beginnings of values has no say in how whole values are sorted.
	prefix := build(t, "", "create table t(k varchar(500), primary key(k(10)))", "create table t(k varchar(500), primary key(k(10)))")
	require.False(t, prefix.Mergeable)
	require.Contains(t, prefix.NotOrdered, "beginnings")
	blob := build(t, "", "create table t(k blob, primary key(k(10)))", "create table t(k blob, primary key(k(10)))")
	require.Contains(t, blob.NotOrdered, "blob")

	// A key that one side's query computes comes in the order of what was computed.
	in := input(t, "", "create table t(k datetime primary key)", "create table t(k datetime primary key)")
	in.SourceTimeZone, in.TargetTimeZone = "US/Pacific", "UTC"
	shifted, err := Build(in)
	require.NoError(t, err)
	require.False(t, shifted.Mergeable)
	converted := build(t, "select convert(k using utf8mb4) as k from t", "create table t(k varchar(9) primary key)", "create table t(k varchar(9) primary key)")
	require.False(t, converted.Mergeable)
	require.Equal(t, "k", names(converted, converted.Key))
	require.True(t, converted.KeyUnique)
	ksid := build(t, "select keyspace_id() as k, id from t", "create table t(id int primary key)", "create table t(k varbinary(9), id int, primary key(k,id))")
	require.False(t, ksid.Mergeable)
	require.True(t, ksid.KeyUnique)
}
