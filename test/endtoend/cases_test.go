// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package endtoend

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"vitess.io/vitess/go/vt/vttablet/tabletmanager/vdiff"

	"github.com/vttablet-ext/vttablet-ext/test/endtoend/cluster"
)

// unlike is a table whose definition is not the same on both sides.
type unlike struct {
	name           string
	source, target string // definitions
	fill           []string
	rows           int64
	plant          []string // on the target
	want           [4]int64 // matching, mismatched, extra on the source, extra on the target then
}

var unlikes = []unlike{
	// Keys that are ordered one way by one side's collation and another way by the other's.
	{"u_ci", "(k varchar(10) collate utf8mb4_bin primary key)", "(k varchar(10) collate utf8mb4_0900_ai_ci primary key)",
		[]string{"select concat('B', lpad(x.n - 1, 5, '0')) from numbers x", "select concat('a', lpad(x.n - 1, 5, '0')) from numbers x"}, 2000,
		[]string{"delete from u_ci where k = 'B00007'", "insert into u_ci values ('c')"}, [4]int64{1999, 0, 1, 1}},
	// Two rows whose last ones differ, with values longer than a report shows.
	{"u_two", "(k varchar(10) collate utf8mb4_bin primary key, doc text)", "(k varchar(10) collate utf8mb4_0900_ai_ci primary key, doc text)",
		[]string{"select 'B', repeat('x', 300)", "select 'a', repeat('x', 300)"}, 2,
		[]string{"update u_two set doc = concat(doc, 'y') where k = 'a'"}, [4]int64{1, 1, 0, 0}},
	{"u_accent", "(k varchar(10) collate utf8mb4_0900_as_cs primary key)", "(k varchar(10) collate utf8mb4_general_ci primary key)",
		[]string{"select elt(n, 'z', 'é', 'Ä', 'b', 'ö', 'a!') from numbers where n <= 6"}, 6, []string{"delete from u_accent where k = 'z'"}, [4]int64{5, 0, 1, 0}},
	{"u_enum", "(e enum('b','a') not null, id int, primary key (e, id))", "(e enum('b','a','c') not null, id int, primary key (e, id))",
		[]string{"select 'a', n from numbers", "select 'b', n from numbers where n <= 2"}, 1002,
		[]string{"delete from u_enum where e = 'b' and id = 2"}, [4]int64{1001, 0, 1, 0}},
	// The key has another column in front on the target.
	{"u_tenant", "(id bigint primary key, tenant int not null, v int)", "(id bigint, tenant int not null, v int, primary key (tenant, id))",
		[]string{"select n, n % 3, n from numbers"}, 1000, []string{"update u_tenant set v = 0 where id = 5", "delete from u_tenant where id = 6"}, [4]int64{998, 1, 1, 0}},
	{"u_wide", "(id int primary key, i smallint, c varchar(10), d decimal(8,2), t datetime, f float, ts timestamp null)",
		"(id bigint primary key, i bigint, c varchar(20), d decimal(20,4), t datetime(3), f float, ts timestamp(6) null)",
		[]string{"select n, -n, concat('café', n), n / 4, '2020-01-01' + interval n second, n / 7, '2020-01-01' + interval n second from numbers"}, 1000,
		[]string{"update u_wide set d = d + 0.0001 where id = 1", "update u_wide set t = t + interval 1000 microsecond where id = 2", "update u_wide set c = 'cafe3' where id = 3", "update u_wide set i = 4 where id = 4"},
		[4]int64{996, 4, 0, 0}},
	// Text that became numbers and times, BIT that became an integer, a SET in another order.
	{"u_retyped", "(id int primary key, a varchar(10), b varchar(30), c bit(1), s set('x','y','z'))", "(id int primary key, a decimal(10,2), b datetime(6), c tinyint, s set('z','y','x'))",
		[]string{"select 1, '10', '2020-01-01 10:00:00', 1, 'x,y'", "select 2, '007', '2020-01-02', 0, 'z'", "select 3, '1.5', null, null, 'x,y,z'"}, 3,
		[]string{"update u_retyped set a = a + 0.01 where id = 2", "update u_retyped set s = 'x,z' where id = 1"}, [4]int64{1, 2, 0, 0}},
	// Exact numbers of more digits than a DOUBLE has.
	{"u_exact", "(id int primary key, d double, e double, f double(40,20))", "(id int primary key, d bigint unsigned, e decimal(50,20), f decimal(50,18))",
		[]string{"select 1, 9007199254740992e0, 0.1e0, 0.1e0", "select 2, 9223372036854775808e0, 1e25 / 3, 1e0 / 3", "select 3, 5, 0.1e0 + 0.2e0, 123456789.125e0"}, 3,
		[]string{"update u_exact set d = d + 1 where id = 1", "update u_exact set e = e + 0.00000000000000000001 where id = 3"}, [4]int64{1, 2, 0, 0}},
	{"u_null", "(id int primary key, v int not null, w varchar(5) not null)", "(id int primary key, v int, w varchar(5))", []string{"select n, 0, '' from numbers"}, 1000,
		[]string{"update u_null set v = null where id = 1", "update u_null set w = null where id = 2", "update u_null set w = ' ' where id = 3"}, [4]int64{997, 3, 0, 0}},
	{"u_json", "(id int primary key, j json)", "(id int primary key, j json)",
		[]string{`select 1, '{"b": 1, "a": [1.0, 9007199254740993]}'`, `select 2, '9007199254740993'`, `select 3, 'null'`, `select 4, null`, `select 5, '{"a": "\\u00e9"}'`}, 5,
		[]string{`update u_json set j = '{"a": [1.0, 9007199254740992], "b": 1}' where id = 1`, "update u_json set j = '9007199254740992' where id = 2", "update u_json set j = null where id = 3"}, [4]int64{2, 3, 0, 0}},
	{"u_zero", "(id int primary key, d double, dt date, s varchar(9) collate utf8mb4_bin)", "(id int primary key, d double, dt date, s varchar(9) collate utf8mb4_bin)",
		[]string{"select 1, -0e0, '0000-00-00', 'a'", "select 2, 0.1e0 + 0.2e0, '2020-00-00', 'a '", "select 3, 1e308, null, ''"}, 3,
		[]string{"update u_zero set s = 'a' where id = 2"}, [4]int64{2, 1, 0, 0}},
	{strings.Repeat("n", 64), "(`" + strings.Repeat("c", 64) + "` int primary key, `a``b \"c` int, `ключ` int)", "(`" + strings.Repeat("c", 64) + "` int primary key, `a``b \"c` int, `ключ` int)",
		[]string{"select n, n, n from numbers"}, 1000, []string{"update `" + strings.Repeat("n", 64) + "` set `ключ` = 0 where `a``b \"c` = 1"}, [4]int64{999, 1, 0, 0}},
}

// TestUnlikeTables moves tables that are defined in another way on the target, in key, collation, width, scale, fraction, charset, nullability
// or ENUM, or hold values that are hard to compare: no difference where there is none, and exactly the planted ones then.
func TestUnlikeTables(t *testing.T) {
	b := testBed(t)
	ctx := longContext(t)
	require.NoError(t, addOne(ctx, b))
	src, one := b.source(), b.c.Primary("one", "0")
	var names []string
	for _, u := range unlikes {
		require.NoError(t, src.Exec(ctx, "create table "+quote(u.name)+" "+u.source), u.name)
		require.NoError(t, one.Exec(ctx, "create table "+quote(u.name)+" "+u.target), u.name)
		for _, fill := range u.fill {
			require.NoError(t, src.Exec(ctx, "set sql_mode = ''", "insert into "+quote(u.name)+" "+fill), u.name)
		}
		names = append(names, u.name)
	}
	w := b.c.Workflow("one", "unlike")
	require.NoError(t, w.MoveTables(ctx, "--source-keyspace", sourceName, "--tables", strings.Join(names, ",")))
	defer func() { assert.NoError(t, w.Cancel(context.WithoutCancel(ctx), "MoveTables")) }()
	for _, flags := range [][]string{nil, {"--limit", "1000000000"}} {
		diff, err := w.Diff(ctx, flags...)
		require.NoError(t, err)
		for _, u := range unlikes {
			assert.Equal(t, counts(u.name, u.rows, 0, 0, 0), diff.TableSummaryMap[u.name], "before anything is planted, %v", flags)
		}
	}
	for _, u := range unlikes {
		for _, p := range u.plant {
			require.NoError(t, one.Exec(ctx, "set sql_mode = ''", p), u.name)
		}
	}
	for _, flags := range [][]string{nil, {"--limit", "1000000000"}} {
		diff, err := w.Diff(ctx, flags...)
		require.NoError(t, err)
		for _, u := range unlikes {
			assert.Equal(t, counts(u.name, u.want[0], u.want[1], u.want[2], u.want[3]), diff.TableSummaryMap[u.name], "%v", flags)
		}
	}
}

// TestTenantShards moves a table whose key is (id) into shards by tenant, where its key is (tenant_id, id).
func TestTenantShards(t *testing.T) {
	b := testBed(t)
	ctx := longContext(t)
	require.NoError(t, b.source().Exec(ctx, "create table o (id bigint primary key, tenant_id int, v int)", "insert into o select n, n % 50, n from numbers"))
	for _, p := range []*cluster.Tablet{b.target(), b.c.Primary(targetName, "80-")} {
		require.NoError(t, p.Exec(ctx, "create table o (id bigint, tenant_id int, v int, primary key (tenant_id, id))"))
	}
	_, err := b.c.Vtctl(ctx, "ApplyVSchema", "--sql", "alter vschema on o add vindex hash(tenant_id) using hash", targetName)
	require.NoError(t, err)
	w := b.c.Workflow(targetName, "tenants")
	require.NoError(t, w.MoveTables(ctx, "--source-keyspace", sourceName, "--tables", "o"))
	defer func() { assert.NoError(t, w.Cancel(context.WithoutCancel(ctx), "MoveTables")) }()
	s, err := w.Diff(ctx)
	require.NoError(t, err)
	assert.Equal(t, counts("o", 1000, 0, 0, 0), s.TableSummaryMap["o"])
	require.NoError(t, b.target().Exec(ctx, "update o set v = -1 order by tenant_id, id limit 3", "delete from o order by tenant_id desc, id desc limit 2"))
	s, err = w.Diff(ctx)
	require.NoError(t, err)
	assert.Equal(t, counts("o", 995, 3, 2, 0), s.TableSummaryMap["o"])
}

// TestResumedCounts completes a vdiff that finds extra rows on the target and resumes it twice: they are counted once. So are the rows of a
// table whose last key is too long for the record.
func TestResumedCounts(t *testing.T) {
	b := testBed(t)
	ctx := longContext(t)
	w, one := b.moveToOne(t, ctx, "again", "again,longkey,order_ba", "create table again (id int primary key)", "insert into again values (1), (2)",
		"create table longkey (k varbinary(2500) primary key)", "insert into longkey select concat(repeat('k', 2400), n) from numbers where n <= 9",
		"create table order_ba (a int, b int, c int, primary key (b, a))", "insert into order_ba select x.n, y.n % 20, x.n * y.n from numbers x, numbers y where y.n <= 20")
	require.NoError(t, one.Exec(ctx, "insert into again values (3), (4)", "delete from longkey order by k limit 2", "insert into longkey values ('stray')"))
	for _, flags := range [][]string{nil, {"--limit", "1000000000"}} {
		uuid, err := w.VDiffCreate(ctx, append(flags, "--tables", "again,longkey")...)
		require.NoError(t, err)
		for range 3 {
			s, err := w.WaitVDiff(ctx, uuid, vdiff.CompletedState)
			require.NoError(t, err)
			assert.Equal(t, counts("again", 2, 0, 0, 2), s.TableSummaryMap["again"], "%v", flags)
			assert.Equal(t, counts("longkey", 7, 0, 2, 1), s.TableSummaryMap["longkey"], "%v", flags)
			_, err = w.VDiff(ctx, "resume", uuid)
			require.NoError(t, err)
		}
		_, err = w.WaitVDiff(ctx, uuid, vdiff.CompletedState)
		require.NoError(t, err)
	}
	// A key whose columns are not in the order of the table: each part goes on where the one before ended.
	uuid, err := w.VDiffCreate(ctx, "--tables", "order_ba", "--limit", "7000")
	require.NoError(t, err)
	for _, rows := range []int64{7000, 14000, 20000} {
		s, err := w.WaitVDiff(ctx, uuid, vdiff.CompletedState)
		require.NoError(t, err)
		assert.Equal(t, counts("order_ba", rows, 0, 0, 0), s.TableSummaryMap["order_ba"])
		_, err = w.VDiff(ctx, "resume", uuid)
		require.NoError(t, err)
	}
}
