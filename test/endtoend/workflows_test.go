// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package endtoend

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"vitess.io/vitess/go/vt/vttablet/tabletmanager/vdiff"

	"github.com/vttablet-ext/vttablet-ext/test/endtoend/cluster"
)

func longContext(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// TestReshard compares a Reshard, whose target shards do not serve: in_keyrange filters, a table with
// another vindex column than its key, and a planted difference on either shard. A table that is created on the source after the Reshard began is
// told of: VReplication passes over it, and its rows would be gone after the switch.
func TestReshard(t *testing.T) {
	b := testBed(t)
	ctx := longContext(t)
	const vschema = `{"sharded": true,
		"vindexes": {"hash": {"type": "hash"}, "md5": {"type": "unicode_loose_md5"}}, "tables": {
		"r1": {"column_vindexes": [{"column": "id", "name": "hash"}]},
		"r2": {"column_vindexes": [{"column": "name", "name": "md5"}]}%s}}`
	require.NoError(t, b.c.AddKeyspace(ctx, cluster.Keyspace{Name: "re", Shards: []cluster.Shard{{Name: "0"}}, VSchema: fmt.Sprintf(vschema, "")}))
	source := b.c.Primary("re", "0")
	require.NoError(t, source.Exec(ctx,
		"create table r1 (id bigint primary key, v varchar(20))", "create table r2 (a int, name varchar(20), primary key (a))",
		"create table n (n int primary key)", "insert into n with recursive r as (select 1 as n union all select n + 1 from r where n < 1000) select n from r",
		"insert into r1 select n, 'v' from n", "insert into r2 select n, concat('name ', n) from n", "drop table n"))
	require.NoError(t, b.c.AddShards(ctx, "re", cluster.Shard{Name: "-80"}, cluster.Shard{Name: "80-"}))
	w := b.c.Workflow("re", "reshard")
	require.NoError(t, w.Reshard(ctx, "--source-shards", "0", "--target-shards", "-80,80-"))
	s, err := w.Diff(ctx)
	require.NoError(t, err)
	assert.Equal(t, counts("r1", 1000, 0, 0, 0), s.TableSummaryMap["r1"])
	assert.Equal(t, counts("r2", 1000, 0, 0, 0), s.TableSummaryMap["r2"])

	require.NoError(t, b.c.Primary("re", "-80").Exec(ctx, "update r1 set v = 'w' order by id limit 1", "delete from r2 order by a limit 2"))
	require.NoError(t, b.c.Primary("re", "80-").Exec(ctx, "insert into r2 values (5000, 'stray')"))
	s, err = w.Diff(ctx)
	require.NoError(t, err)
	assert.Equal(t, counts("r1", 999, 1, 0, 0), s.TableSummaryMap["r1"])
	assert.Equal(t, counts("r2", 998, 0, 2, 1), s.TableSummaryMap["r2"])

	_, err = b.c.Vtctl(ctx, "ApplyVSchema", "--vschema", fmt.Sprintf(vschema, `, "late": {"column_vindexes": [{"column": "id", "name": "hash"}]}`), "re")
	require.NoError(t, err)
	require.NoError(t, source.Exec(ctx, "create table late (id bigint primary key)", "insert into late values (1), (2)", "create view seen as select * from late"))
	uuid, err := w.VDiffCreate(ctx)
	require.NoError(t, err)
	s = waitErrors(t, ctx, w, uuid, "-80", "80-")
	for _, shard := range []string{"-80", "80-"} {
		assert.Equal(t, "table late: it is a table of the workflow, and the target does not have it: none of its rows are there. Copy it, or name the other tables with --tables", s.Errors[shard])
	}
	assert.Equal(t, counts("r1", 999, 1, 0, 0), s.TableSummaryMap["r1"])
	s, err = w.Diff(ctx, "--tables", "r1,r2")
	require.NoError(t, err)
	assert.Equal(t, counts("r2", 998, 0, 2, 1), s.TableSummaryMap["r2"])
	assert.NoError(t, w.Cancel(ctx, "Reshard"))
}

// TestOnlineDDL compares the table of a migration that is held before its cut-over: a column that
// changes its charset, one that is new and one that is gone.
func TestOnlineDDL(t *testing.T) {
	b := testBed(t)
	ctx := longContext(t)
	require.NoError(t, addOne(ctx, b))
	one := b.c.Primary("one", "0")
	require.NoError(t, one.Exec(ctx, "create table mig (id int primary key, v varchar(20) charset latin1, gone int)",
		"insert into mig values (1, 'café', 1), (2, 'naïve', 2), (3, null, 3)"))
	out, err := b.c.Vtctl(ctx, "ApplySchema", "--ddl-strategy", "vitess --postpone-completion --allow-concurrent",
		"--sql", "alter table mig modify v varchar(20) charset utf8mb4, add fresh int default 7, drop gone", "one")
	require.NoError(t, err)
	uuid := strings.TrimSpace(out)
	w := b.c.Workflow("one", uuid)
	require.NoError(t, w.WaitRunning(ctx))
	s, err := w.Diff(ctx)
	require.NoError(t, err)
	require.Len(t, s.TableSummaryMap, 1)
	for name, table := range s.TableSummaryMap {
		assert.Equal(t, counts(name, 3, 0, 0, 0), table)
		require.NoError(t, one.Exec(ctx, "update "+quote(name)+" set v = 'cafe' where id = 1"))
	}
	s, err = w.Diff(ctx)
	require.NoError(t, err)
	for name, table := range s.TableSummaryMap {
		assert.Equal(t, counts(name, 2, 1, 0, 0), table)
	}
	_, err = b.c.Vtctl(ctx, "OnlineDDL", "cancel", "one", uuid)
	assert.NoError(t, err)
}

// TestMultiTenant compares the move of one tenant into a table that holds others too.
func TestMultiTenant(t *testing.T) {
	b := testBed(t)
	ctx := longContext(t)
	require.NoError(t, b.c.AddKeyspace(ctx, cluster.Keyspace{Name: "mt", Shards: []cluster.Shard{{Name: "0"}}, VSchema: `{
		"multi_tenant_spec": {"tenant_id_column_name": "tenant_id", "tenant_id_column_type": "INT64"}, "tables": {"mt1": {}}}`}))
	target := b.c.Primary("mt", "0")
	require.NoError(t, b.source().Exec(ctx, "create table mt1 (id int primary key, tenant_id int, v int)",
		"insert into mt1 select n, 2, n from numbers"))
	require.NoError(t, target.Exec(ctx, "create table mt1 (id int, tenant_id int, v int, primary key (tenant_id, id))",
		"insert into mt1 values (1, 1, 1), (2, 1, 2), (1, 3, 1)"))
	w := b.c.Workflow("mt", "tenant2")
	require.NoError(t, w.MoveTables(ctx, "--source-keyspace", sourceName, "--tables", "mt1", "--tenant-id", "2"))
	s, err := w.Diff(ctx)
	require.NoError(t, err)
	assert.Equal(t, counts("mt1", 1000, 0, 0, 0), s.TableSummaryMap["mt1"])
	require.NoError(t, target.Exec(ctx, "delete from mt1 where tenant_id = 2 and id <= 3", "update mt1 set v = 0 where tenant_id = 2 and id = 4"))
	s, err = w.Diff(ctx)
	require.NoError(t, err)
	assert.Equal(t, counts("mt1", 996, 1, 3, 0), s.TableSummaryMap["mt1"])
	assert.NoError(t, w.Cancel(ctx, "MoveTables"))
}

// TestTimeZone compares workflows that convert DATETIME columns from the source's time zone, also where its clocks are set back.
func TestTimeZone(t *testing.T) {
	b := testBed(t)
	ctx := longContext(t)
	require.NoError(t, addOne(ctx, b))
	one := b.c.Primary("one", "0")
	// A zone without summer time, eight hours behind.
	for _, tablet := range []*cluster.Tablet{b.source(), one} {
		require.NoError(t, tablet.Exec(ctx, "insert ignore into mysql.time_zone (time_zone_id, use_leap_seconds) values (900, 'N')",
			"insert ignore into mysql.time_zone_name values ('US/Pacific', 900)",
			"insert ignore into mysql.time_zone_transition_type values (900, 0, -28800, 0, 'PST')",
			"insert ignore into mysql.time_zone (time_zone_id, use_leap_seconds) values (901, 'N')",
			"insert ignore into mysql.time_zone_name values ('UTC', 901)",
			"insert ignore into mysql.time_zone_transition_type values (901, 0, 0, 0, 'UTC')"))
	}
	require.NoError(t, b.source().Exec(ctx, "create table tz (id int primary key, d datetime, k datetime(3), ts timestamp null)",
		"insert into tz select n, '2020-06-01' + interval n hour, '2020-06-01' + interval n second, '2020-06-01' from numbers"))
	w := b.c.Workflow("one", "tz")
	require.NoError(t, w.MoveTables(ctx, "--source-keyspace", sourceName, "--tables", "tz", "--source-time-zone", "US/Pacific"))
	result, err := one.Query(ctx, "select count(*) from tz where d = '2020-06-01 08:00:00' + interval id hour")
	require.NoError(t, err)
	require.Equal(t, "1000", result.Rows[0][0].ToString(), "the workflow converts")
	s, err := w.Diff(ctx)
	require.NoError(t, err)
	assert.Equal(t, counts("tz", 1000, 0, 0, 0), s.TableSummaryMap["tz"])
	require.NoError(t, one.Exec(ctx, "update tz set d = d + interval 1 second where id = 7"))
	s, err = w.Diff(ctx)
	require.NoError(t, err)
	assert.Equal(t, counts("tz", 999, 1, 0, 0), s.TableSummaryMap["tz"])
	assert.NoError(t, w.Cancel(ctx, "MoveTables"))

	// A zone whose clocks are set back at 09:00 UTC: two hours of the target are one there. And a zero date has no time in it, as NULL.
	for _, tablet := range []*cluster.Tablet{b.source(), one} {
		require.NoError(t, tablet.Exec(ctx, "insert ignore into mysql.time_zone (time_zone_id, use_leap_seconds) values (902, 'N')",
			"insert ignore into mysql.time_zone_name values ('Test/Autumn', 902)",
			"insert ignore into mysql.time_zone_transition_type values (902, 0, -25200, 1, 'PDT'), (902, 1, -28800, 0, 'PST')",
			"insert ignore into mysql.time_zone_transition values (902, 1678615200, 0), (902, 1699174800, 1)"))
	}
	require.NoError(t, b.source().Exec(ctx, "create table autumn (id int primary key, d datetime)",
		"insert into autumn values (1, '2023-11-05 00:30:00'), (2, '2023-11-05 01:30:00'), (3, null), (4, '2023-11-05 02:30:00')"))
	w = b.c.Workflow("one", "autumn")
	require.NoError(t, w.MoveTables(ctx, "--source-keyspace", sourceName, "--tables", "autumn", "--source-time-zone", "Test/Autumn"))
	s, err = w.Diff(ctx)
	require.NoError(t, err)
	assert.Equal(t, counts("autumn", 4, 0, 0, 0), s.TableSummaryMap["autumn"])
	require.NoError(t, one.Exec(ctx, "update autumn set d = if(hour(d) = 8, '2023-11-05 09:30:00', '2023-11-05 08:30:00') where id = 2",
		"set sql_mode = ''", "update autumn set d = '0000-00-00 00:00:00' where id = 3"))
	result, err = one.Query(ctx, "select count(*) from autumn where id = 2 and convert_tz(d, 'UTC', 'Test/Autumn') = '2023-11-05 01:30:00'")
	require.NoError(t, err)
	require.Equal(t, "1", result.Rows[0][0].ToString(), "it is the same hour there")
	s, err = w.Diff(ctx)
	require.NoError(t, err)
	assert.Equal(t, counts("autumn", 2, 2, 0, 0), s.TableSummaryMap["autumn"])
	assert.NoError(t, w.Cancel(ctx, "MoveTables"))
}

// TestMigrate compares a Migrate from a mounted cluster with a topology of its own, whose tablets are
// stock ones.
func TestMigrate(t *testing.T) {
	b := testBed(t)
	ctx := longContext(t)
	require.NoError(t, addOne(ctx, b))
	ext, err := cluster.New(ctx, cluster.Options{Cells: []string{"extcell"}})
	require.NoError(t, err)
	defer func() { assert.NoError(t, ext.Close()) }()
	require.NoError(t, ext.AddKeyspace(ctx, cluster.Keyspace{Name: "ext", Shards: []cluster.Shard{{Name: "0", Stock: true}}, VSchema: `{"tables": {"x1": {}}}`}))
	require.NoError(t, ext.Primary("ext", "0").Exec(ctx, "create table x1 (id int primary key, v varchar(10))", "insert into x1 values (1, 'a'), (2, 'b'), (3, 'c')"))
	_, err = b.c.Vtctl(ctx, "Mount", "register", "--name", "ext1", "--topo-type", "etcd2", "--topo-server", ext.EtcdAddr(), "--topo-root", ext.TopoRoot())
	require.NoError(t, err)
	w := b.c.Workflow("one", "mig")
	_, err = b.c.Vtctl(ctx, "Migrate", "--workflow", "mig", "--target-keyspace", "one", "create", "--source-keyspace", "ext", "--mount-name", "ext1",
		"--all-tables", "--cells", "extcell", "--tablet-types", "primary,replica")
	require.NoError(t, err)
	require.NoError(t, w.WaitRunning(ctx))
	for _, cells := range [][]string{nil, {"--source-cells", "extcell"}} {
		s, err := w.Diff(ctx, cells...)
		require.NoError(t, err)
		assert.Equal(t, counts("x1", 3, 0, 0, 0), s.TableSummaryMap["x1"])
	}
	require.NoError(t, b.c.Primary("one", "0").Exec(ctx, "delete from x1 where id = 2"))
	s, err := w.Diff(ctx, "--source-cells", "extcell")
	require.NoError(t, err)
	assert.Equal(t, counts("x1", 2, 0, 1, 0), s.TableSummaryMap["x1"])
	assert.NoError(t, w.Cancel(ctx, "Migrate"))
	_, err = b.c.Vtctl(ctx, "Mount", "unregister", "--name", "ext1")
	assert.NoError(t, err)
}

// TestStoppedWorkflow compares a workflow that a person stopped after the vdiff was created, while
// rows are written to the source: it catches up to the snapshot and is Stopped afterwards, as it was.
func TestStoppedWorkflow(t *testing.T) {
	b := testBed(t)
	ctx := testContext(t)
	r := create(t, ctx, b.small, "--auto-start=false", "--tables", "s1")
	_, err := b.c.Vtctl(ctx, "Workflow", "--keyspace", targetName, "stop", "--workflow", smallName)
	require.NoError(t, err)
	require.NoError(t, b.small.WaitStreams(ctx, "Stopped"))
	require.NoError(t, b.source().Exec(ctx, "update s1 set n = n + 1 where id < 2000"))
	_, err = r.w.VDiff(ctx, "resume", r.uuid)
	require.NoError(t, err)
	s, err := r.w.WaitVDiff(ctx, r.uuid, vdiff.CompletedState)
	require.NoError(t, err)
	b.matches(t, s, "s1")
	require.NoError(t, b.small.WaitStreams(ctx, "Stopped"))
	_, err = b.c.Vtctl(ctx, "Workflow", "--keyspace", targetName, "start", "--workflow", smallName)
	require.NoError(t, err)
	b.cleanUp(t, b.small)
}

// TestMissingTable drops a table of the workflow on the source and one on the target: the other tables are compared, those
// say why they are not, and nothing is retried.
func TestMissingTable(t *testing.T) {
	b := testBed(t)
	ctx := longContext(t)
	w, one := b.moveToOne(t, ctx, "missing", "ok1,bad1,bad2", "create table ok1 (id int primary key)", "insert into ok1 values (1), (2)",
		"create table bad1 (id int primary key)", "create table bad2 (id int primary key)", "insert into bad2 values (1), (2), (3)")
	require.NoError(t, b.source().Exec(ctx, "drop table bad1"))
	require.NoError(t, one.Exec(ctx, "drop table bad2"))
	require.NoError(t, w.WaitRunning(ctx))
	uuid, err := w.VDiffCreate(ctx)
	require.NoError(t, err)
	s, err := w.WaitVDiff(ctx, uuid, vdiff.ErrorState)
	require.NoError(t, err)
	assert.Contains(t, s.Errors["0"], "table bad1: ")
	assert.Contains(t, s.Errors["0"], "table bad2: it is a table of the workflow, and the target does not have it")
	assert.Equal(t, counts("ok1", 2, 0, 0, 0), s.TableSummaryMap["ok1"])
	assert.Equal(t, vdiff.ErrorState, s.TableSummaryMap["bad1"].State)
	assert.Equal(t, vdiff.ErrorState, s.TableSummaryMap["bad2"].State)
	until := time.Now().Add(retryTime)
	require.NoError(t, cluster.WaitFor(ctx, "no retry", retryPoll, func(ctx context.Context) (bool, error) {
		result, err := one.Query(ctx, "select state from _vt.vdiff where vdiff_uuid = '"+uuid+"'")
		if err != nil {
			return false, err
		}
		assert.Equal(t, "error", result.Rows[0][0].ToString())
		return time.Now().After(until), nil
	}))
	_, err = w.VDiff(ctx, "delete", "all")
	require.NoError(t, err)
}

// TestConcurrentVDiffs runs vdiffs of two workflows on the same tablets with unlike options: each has
// its own.
func TestConcurrentVDiffs(t *testing.T) {
	b := testBed(t)
	ctx := testContext(t)
	limited := create(t, ctx, b.big, "--auto-start=false", "--limit", "1000")
	all := create(t, ctx, b.small, "--auto-start=false", "--tables", "s2")
	for _, r := range []*running{limited, all} {
		_, err := r.w.VDiff(ctx, "resume", r.uuid)
		require.NoError(t, err)
	}
	s, err := b.big.WaitVDiff(ctx, limited.uuid, vdiff.CompletedState)
	require.NoError(t, err)
	assert.EqualValues(t, 2000, s.TableSummaryMap["b1"].MatchingRows)
	s, err = b.small.WaitVDiff(ctx, all.uuid, vdiff.CompletedState)
	require.NoError(t, err)
	b.matches(t, s, "s2")
	for range 2 { // a completed vdiff that is resumed counts nothing twice
		_, err = b.small.VDiff(ctx, "resume", all.uuid)
		require.NoError(t, err)
		s, err = b.small.WaitVDiff(ctx, all.uuid, vdiff.CompletedState)
		require.NoError(t, err)
		b.matches(t, s, "s2")
	}
	var stored struct{ Core struct{ Tables string } }
	result, err := b.target().Query(ctx, "select json_object('Core', json_object('Tables', json_extract(options, '$.core_options.tables'))) from _vt.vdiff where vdiff_uuid = '"+all.uuid+"'")
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(result.Rows[0][0].Raw(), &stored))
	assert.Equal(t, "s2", stored.Core.Tables)
	_, err = b.big.VDiff(ctx, "delete", "all")
	require.NoError(t, err)
	b.cleanUp(t, b.small)
}
