// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package endtoend

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"vitess.io/vitess/go/mysql/collations"
	"vitess.io/vitess/go/vt/dbconfigs"
	"vitess.io/vitess/go/vt/vterrors"

	vtrpcpb "vitess.io/vitess/go/vt/proto/vtrpc"

	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/digest"
	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/pkrange"
	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/scan"
	"github.com/vttablet-ext/vttablet-ext/test/endtoend/cluster"
)

// scanBed is one tablet, and a reader of its mysqld.
type scanBed struct {
	tablet *cluster.Tablet
	local  *scan.Local
}

func dbConfigs(tablet *cluster.Tablet, tcp bool) *dbconfigs.DBConfigs {
	configs := &dbconfigs.DBConfigs{Socket: tablet.Socket(), Charset: "utf8mb4", DBName: tablet.DBName(), Filtered: dbconfigs.UserConfig{User: "vt_filtered"}}
	if tcp {
		configs.Socket, configs.Host, configs.Port, configs.SslMode = "", "127.0.0.1", tablet.MySQLPort, "required"
		configs.Filtered.UseSSL = true
	}
	configs.InitWithSocket("", collations.MySQL8())
	return configs
}

// TestScan reads tables on a real mysqld beside vttablet: every type as a value and as a key, in ranges, with limits, with
// locks, and while it is cancelled.
func TestScan(t *testing.T) {
	leaked := goleak.IgnoreCurrent()
	ctx := testContext(t)
	c, err := cluster.New(ctx, cluster.Options{})
	require.NoError(t, err)
	t.Cleanup(func() {
		if t.Failed() {
			c.Fail()
		}
		assert.NoError(t, c.Close())
		goleak.VerifyNone(t, leaked)
	})
	require.NoError(t, c.AddKeyspace(ctx, cluster.Keyspace{Name: "ks", Shards: []cluster.Shard{{Name: "0"}}}))
	b := &scanBed{tablet: c.Primary("ks", "0")}
	b.local = scan.NewLocal(dbConfigs(b.tablet, false), 4)
	defer b.local.Close()
	require.NoError(t, b.tablet.Exec(ctx,
		"create table numbers (n int primary key)",
		"insert into numbers with recursive r as (select 1 as n union all select n + 1 from r where n < 1000) select n from r"))
	t.Run("types", b.testTypes)
	t.Run("keys", b.testKeys)
	t.Run("wide", b.testWide)
	t.Run("cancel", b.testCancel)
	t.Run("snapshot", b.testSnapshot)
	t.Run("positions", b.testWaitFor)
	t.Run("locks", b.testLocks)
	t.Run("tls", b.testTLS)
	t.Run("speed", b.testSpeed)
	noPanics(t, c)
}

// whole is the digest of a whole table.
func (b *scanBed) whole(t *testing.T, table *scan.Table) *scan.Digest {
	t.Helper()
	answer, err := b.local.Digest(testContext(t), &scan.Call{Tables: []scan.DigestRequest{{Table: table, Seed: 7}}}, nil)
	require.NoError(t, err)
	return &answer.Digests[0]
}

func (b *scanBed) exec(t *testing.T, sqls ...string) {
	t.Helper()
	require.NoError(t, b.tablet.Exec(testContext(t), sqls...))
}

// table selects columns of a table whose first keys columns are its primary key.
func table(name string, keys int, columns ...string) *scan.Table {
	s := &scan.Table{Name: name, Columns: columns, Index: "PRIMARY"}
	for i := range keys {
		s.Key = append(s.Key, scan.KeyColumn{Name: strings.Trim(columns[i], "`"), Column: i})
	}
	return s
}

// every is a column of every type there is.
var every = []string{
	"ti tinyint", "tu tinyint unsigned", "si smallint", "su smallint unsigned", "mi mediumint", "mu mediumint unsigned", "i int", "iu int unsigned zerofill",
	"bi bigint", "bu bigint unsigned", "y year", "f float", "d double", "dc decimal(30,10)", "dt date", "tm time(3)", "dtm datetime(6)", "ts timestamp(2) null",
	"c char(10)", "vc varchar(50)", "bn binary(5)", "vb varbinary(50)", "tx text", "bl longblob", "en enum('a','b')", "st set('x','y','z')", "bt bit(10)",
	"js json", "g point", "l1 varchar(20) character set latin1",
}

// testTypes: values of every type are hashed, two equal rows are the same digest, and a change of any column is seen. The
// rows that the fence reads are those that MySQL prints.
func (b *scanBed) testTypes(t *testing.T) {
	names := []string{"id"}
	for _, c := range every {
		names = append(names, strings.Fields(c)[0])
	}
	set := `ti = -1, tu = 255, si = -300, su = 65535, mi = -8388608, mu = 16777215, i = -5, iu = 42, bi = -9223372036854775808, bu = 18446744073709551615, y = 1999,
		f = 1.5, d = -2.25, dc = -12345678901234567890.0123456789, dt = '2020-02-29', tm = '-838:59:58.999', dtm = '2021-12-31 23:59:59.000001', ts = '2001-01-01 00:00:01.5',
		c = 'abc', vc = 'ünïcode', bn = x'0102', vb = x'00ff', tx = 'text', bl = x'fffefd', en = 'b', st = 'x,z', bt = b'1000000001', js = '{"a": [1, 2]}',
		g = point(1, 2), l1 = 'é'`
	columns := "id int primary key, " + strings.Join(every, ", ")
	b.exec(t, "create table types1 ("+columns+")", "create table types2 ("+columns+")",
		"insert into types1 set id = 1, "+set, "insert into types2 set id = 1, "+set,
		"insert into types1 (id) values (2)", "insert into types2 (id) values (2)",
		"set sql_mode = ''", "insert into types1 set id = 3, dt = '0000-00-00', dtm = '2020-01-01', tm = '0:0:0', vc = '', bl = ''")
	b.exec(t, "set sql_mode = ''", "insert into types2 set id = 3, dt = '0000-00-00', dtm = '2020-01-01', tm = '0:0:0', vc = '', bl = ''")
	one, two := b.whole(t, table("types1", 1, names...)), b.whole(t, table("types2", 1, names...))
	assert.EqualValues(t, 3, one.Sums[0].Rows)
	assert.Equal(t, one, two)
	changes := map[string]string{"js": `'{"a": [1, 3]}'`, "g": "point(1, 3)", "en": "'a'", "st": "'y'", "dt": "'2020-03-01'", "tm": "'1:0:0'", "dtm": "'2020-03-01'", "ts": "'2020-03-01'", "y": "2000"}
	for _, c := range names[1:] {
		value := "1"
		if changes[c] != "" {
			value = changes[c]
		}
		b.exec(t, fmt.Sprintf("update types2 set %s = %s where id = 1", c, value))
		two := b.whole(t, table("types2", 1, names...))
		assert.NotEqual(t, one.Sums, two.Sums, c)
		assert.Equal(t, one.Form, two.Form)
		b.exec(t, fmt.Sprintf("update types2 x join types1 y using (id) set x.%[1]s = y.%[1]s where x.id = 1", c))
	}
	assert.Equal(t, one.Sums, b.whole(t, table("types2", 1, names...)).Sums)

	want, err := b.tablet.Query(testContext(t), "select "+strings.Join(names, ", ")+" from types1 order by id")
	require.NoError(t, err)
	var got [][]string
	err = b.local.Rows(testContext(t), &scan.RowsCall{Reads: []scan.RowsRead{{Table: table("types1", 1, names...)}}}, func(*scan.RowsStart) error { return nil },
		func(batch *scan.RowsBatch) error {
			if batch.Fields != nil {
				require.Len(t, batch.Fields, len(names))
				for i, f := range batch.Fields {
					assert.Equal(t, want.Fields[i].Type, f.Type, f.Name)
				}
			}
			rows := scan.NewBatch(len(names), batch.Rows)
			for i := range rows.Len() {
				got = append(got, nil)
				for n := range names {
					v, ok := rows.Row(i).Value(n)
					if !ok {
						v = []byte("NULL")
					}
					got[i] = append(got[i], string(v))
				}
			}
			return nil
		}, nil)
	require.NoError(t, err)
	require.Len(t, got, 3)
	for i, row := range want.Rows {
		for n := range names {
			text := row[n].ToString()
			if row[n].IsNull() {
				text = "NULL"
			}
			if names[n] == "l1" && i == 0 { // not converted
				text = "\xe9"
			}
			assert.Equal(t, text, got[i][n], names[n])
		}
	}
}

// walk reads a table range by range and checks what is true of each: that the ranges follow each other, that reading a range
// again by its bounds finds the same rows, in both protocols, and that MySQL reads no more rows for it than it has.
func (b *scanBed) walk(t *testing.T, tb *scan.Table, limit int64) {
	t.Helper()
	ctx := testContext(t)
	whole := b.whole(t, tb)
	var sum digest.Sum
	after, ranges := pkrange.Bound(nil), 0
	for {
		req := scan.DigestRequest{Table: tb, Range: pkrange.Range{After: after}, Limit: limit, Seed: 7}
		answer, err := b.local.Digest(ctx, &scan.Call{Tables: []scan.DigestRequest{req}}, nil)
		require.NoError(t, err)
		walked := answer.Digests[0]
		sum.Merge(walked.Sums[0])
		ranges++
		again := scan.DigestRequest{Table: tb, Range: pkrange.Range{After: after, UpTo: walked.UpTo}, Seed: 7}
		answer, err = b.local.Digest(ctx, &scan.Call{Tables: []scan.DigestRequest{again}}, nil)
		require.NoError(t, err)
		require.Equal(t, walked.Sums, answer.Digests[0].Sums, "range %d: %v", ranges, again.Range)
		require.EqualValues(t, walked.Sums[0].Rows, b.count(t, tb, again.Range), "range %d: %v", ranges, again.Range)
		for _, r := range []*scan.DigestRequest{&req, &again} {
			plan, err := b.local.Explain(ctx, r)
			require.NoError(t, err)
			require.Len(t, plan, 1)
			what := fmt.Sprintf("%s, range %d: %v", tb.Name, ranges, plan)
			want := "range"
			if r.Range.Whole() {
				want = "index ALL"
			}
			assert.Contains(t, want, plan[0]["type"], what)
			if !r.Range.Whole() {
				assert.Equal(t, tb.Index, plan[0]["key"], what)
			}
			assert.NotContains(t, plan[0]["Extra"], "filesort", what)
		}
		if len(walked.UpTo) == 0 {
			break
		}
		require.Equal(t, walked.Last, walked.UpTo)
		require.Len(t, walked.UpTo, len(tb.Key))
		after = walked.UpTo
	}
	assert.Equal(t, whole.Sums[0], sum)
	assert.EqualValues(t, int64(sum.Rows)/limit+1, ranges)
}

// count counts the rows that the fence would read.
func (b *scanBed) count(t *testing.T, tb *scan.Table, r pkrange.Range) (n int) {
	t.Helper()
	err := b.local.Rows(testContext(t), &scan.RowsCall{Reads: []scan.RowsRead{{Table: tb, Ranges: []pkrange.Range{r}}}},
		func(*scan.RowsStart) error { return nil }, func(batch *scan.RowsBatch) error { n += len(batch.Rows); return nil }, nil)
	require.NoError(t, err)
	return n
}

// testKeys: the ranges of a walk are the whole table, whatever the types of the key, and MySQL reads each as a range of
// the index.
func (b *scanBed) testKeys(t *testing.T) {
	type key struct {
		name, columns, key, values string
		parts                      int
	}
	for _, k := range []key{
		{"kint", "a int", "a", "n - 500", 1},
		{"kubig", "a bigint unsigned", "a", "18446744073709551615 - n * 1000000000000", 1},
		{"ktiny", "a tinyint unsigned, b tinyint", "a, b", "n % 250, n div 250 - 2", 2},
		{"kyear", "a year, b smallint", "a, b", "1901 + n % 200, n", 2},
		{"kdec", "a decimal(20,5)", "a", "(n - 500) * 1.00001", 1},
		{"kdate", "a date, b int", "a, b", "date_add('2020-01-01', interval n % 100 day), n", 2},
		{"kdtm", "a datetime(6)", "a", "date_add('2020-01-01 00:00:00', interval n * 1000001 microsecond)", 1},
		{"kts", "a timestamp(3)", "a", "date_add('2020-01-01 00:00:00', interval n * 1000 * 60 second)", 1},
		{"kci", "a varchar(40) collate utf8mb4_0900_ai_ci", "a", "concat(elt(n % 4 + 1, 'a', 'B', 'Ü', 'z '), n)", 1},
		{"kgen", "a varchar(40) collate utf8mb4_general_ci", "a", "concat(elt(n % 4 + 1, 'a', 'B', 'Ü', 'z '), n)", 1},
		{"kbin", "a varchar(40) collate utf8mb4_bin", "a", "concat(elt(n % 4 + 1, 'a', 'B', 'Ü', 'z '), n)", 1},
		{"klat", "a varchar(40) character set latin1 collate latin1_german1_ci", "a", "concat(elt(n % 4 + 1, 'a', 'B', 'Ü', 'ß '), n)", 1},
		{"kucs", "a varchar(40) character set utf16", "a", "concat(elt(n % 4 + 1, 'a', 'B', 'Ü', 'z '), n)", 1},
		{"kchar", "a char(20)", "a", "concat(elt(n % 4 + 1, 'a', 'B', 'Ü', '''z'), n)", 1},
		{"kvb", "a varbinary(40)", "a", "unhex(concat('00ff', lpad(hex(n * 77), 6, '0')))", 1},
		{"kb", "a binary(6)", "a", "unhex(lpad(hex(n * 77), 6, '0'))", 1},
		{"kmix", "t int, a varchar(20) character set latin1, u varchar(20), d datetime", "t, a, u, d",
			"n % 3, concat('é', n % 7), concat('x''?`', n % 11), date_add('2020-01-01', interval n hour)", 4},
	} {
		var names []string
		for _, c := range strings.Split(k.columns, ", ") {
			names = append(names, strings.Fields(c)[0])
		}
		b.exec(t, fmt.Sprintf("create table %s (%s, v varchar(20), primary key (%s))", k.name, k.columns, k.key),
			fmt.Sprintf("insert into %s (%s, v) select %s, n from numbers", k.name, strings.Join(names, ", "), k.values),
			"analyze table "+k.name)
		b.walk(t, table(k.name, k.parts, append(names, "v")...), 150)
	}
	// A key that is not the primary key, with names that need quotes.
	b.exec(t, "create table `k``?q` (id int primary key, `a``?` int not null, `select` int not null, unique key `u``?` (`a``?`, `select`))",
		"insert into `k``?q` select n, n % 5, n from numbers", "analyze table `k``?q`")
	b.walk(t, &scan.Table{Name: "k`?q", Columns: []string{"id", "`a``?`", "`select`"}, Index: "u`?", Where: "id <> 10",
		Key: []scan.KeyColumn{{Name: "a`?", Column: 1}, {Name: "select", Column: 2}}}, 150)
}

// testWide: rows longer than 16 MiB take several packets; they are hashed like any other and are found by filters and limits.
func (b *scanBed) testWide(t *testing.T) {
	b.exec(t, "set global max_allowed_packet = 1 << 26")
	for _, name := range []string{"wide1", "wide2"} {
		b.exec(t, "set sql_log_bin = 0", "create table "+name+" (id int primary key, a longblob, k int, z varchar(10))",
			"insert into "+name+" values (1, repeat('x', 20 << 20), 1, 'end'), (2, repeat('y', 9), 2, null), (3, repeat('z', 1 << 20), 3, ''), (4, 'w', 4, 'z')")
	}
	columns := []string{"id", "a", "k", "z"}
	one, two := b.whole(t, table("wide1", 1, columns...)), b.whole(t, table("wide2", 1, columns...))
	assert.Equal(t, one, two)
	assert.Greater(t, one.Bytes, int64(21<<20))
	b.exec(t, "set sql_log_bin = 0", "update wide2 set z = 'eNd' where id = 1")
	assert.NotEqual(t, one.Sums, b.whole(t, table("wide2", 1, columns...)).Sums)
	b.walk(t, table("wide1", 1, columns...), 1)
	filtered := table("wide1", 1, columns...)
	var sum digest.Sum
	for _, kr := range []string{"-80", "80-"} {
		filtered.Filter = &scan.VindexFilter{Type: "hash", Columns: []int{2}, KeyRange: kr}
		sum.Merge(b.whole(t, filtered).Sums[0])
	}
	assert.Equal(t, one.Sums[0], sum)
	// A limit of bytes ends the read behind the row that reaches it, and leaves the connection usable.
	answer, err := b.local.Digest(testContext(t), &scan.Call{Tables: []scan.DigestRequest{
		{Table: table("wide1", 1, columns...), MaxBytes: 1 << 20, Limit: 100, Seed: 7}, {Table: table("wide1", 1, columns...), Seed: 7},
	}}, nil)
	require.NoError(t, err)
	assert.EqualValues(t, 1, answer.Digests[0].Read)
	assert.EqualValues(t, 1, answer.Digests[0].UpTo[0].Int)
	assert.Equal(t, one.Sums, answer.Digests[1].Sums)
}

// threads are the connections of the filtered user that do something.
func (b *scanBed) threads(ctx context.Context, t *testing.T) (busy []string) {
	result, err := b.tablet.Query(ctx, "select command, state, info from information_schema.processlist where user = 'vt_filtered' and command <> 'Sleep'")
	require.NoError(t, err)
	for _, row := range result.Rows {
		busy = append(busy, fmt.Sprint(row))
	}
	return busy
}

// testCancel: a cancelled read returns at once and leaves nothing in mysqld, not even a statement that has nothing to send.
func (b *scanBed) testCancel(t *testing.T) {
	b.exec(t, "create table slow (id int primary key, a int)", "insert into slow select n, n from numbers")
	tb := table("slow", 1, "id", "a")
	locker, err := b.tablet.Conn(testContext(t))
	require.NoError(t, err)
	defer locker.Close()
	_, err = locker.ExecuteFetch("lock tables slow write", 0, false)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(testContext(t))
	failed := make(chan error, 1)
	go func() {
		_, err := b.local.Digest(ctx, &scan.Call{Tables: []scan.DigestRequest{{Table: tb}}}, nil)
		failed <- err
	}()
	waiting := func(n int) {
		t.Helper()
		require.NoError(t, cluster.WaitFor(testContext(t), "threads", 10*time.Millisecond, func(ctx context.Context) (bool, error) {
			return len(b.threads(ctx, t)) == n, nil
		}), "%v", b.threads(testContext(t), t))
	}
	waiting(1)
	started := time.Now()
	cancel()
	err = <-failed
	assert.Less(t, time.Since(started), time.Second)
	assert.Equal(t, vtrpcpb.Code_CANCELED, vterrors.Code(err), "%v", err)
	waiting(0)
	_, err = locker.ExecuteFetch("unlock tables", 0, false)
	require.NoError(t, err)
	assert.EqualValues(t, 1000, b.whole(t, tb).Sums[0].Rows)
}

// testLocks: the fence's read view is opened under locks, and without them when they cannot be had in time: then nothing is
// left waiting.
func (b *scanBed) testLocks(t *testing.T) {
	ctx := testContext(t)
	b.exec(t, "create table l1 (id int primary key, a int)", "create table l2 like l1", "insert into l1 select n, n from numbers", "insert into l2 select n, n from numbers")
	call := &scan.RowsCall{Lock: true, LockWait: 300 * time.Millisecond, Reads: []scan.RowsRead{
		{Table: table("l1", 1, "id", "a"), Ranges: []pkrange.Range{
			{UpTo: pkrange.Bound{{Kind: pkrange.Int, Int: 10}}}, {After: pkrange.Bound{{Kind: pkrange.Int, Int: 990}}},
		}}, {Table: table("l2", 1, "id", "a")}}}
	var got []string
	read := func() error {
		got = nil
		return b.local.Rows(ctx, call, func(s *scan.RowsStart) error {
			got = append(got, s.Position)
			b.exec(t, "update l1 set a = a + 1", "update l2 set a = a + 1") // nothing is locked any more
			return nil
		}, func(batch *scan.RowsBatch) error {
			for _, r := range batch.Rows {
				if r.Lengths[0]*2 != int64(len(r.Values)) && string(r.Values) != "1000" {
					return fmt.Errorf("a row of another view: %q", r.Values)
				}
			}
			got = append(got, fmt.Sprintf("%d/%d: %d", batch.Read, batch.Range, len(batch.Rows)))
			return nil
		}, nil)
	}
	require.NoError(t, read())
	assert.True(t, strings.HasPrefix(got[0], "MySQL56/"), got)
	assert.Equal(t, []string{"0/0: 10", "0/1: 10", "1/0: 1000"}, got[1:])

	blocker, err := b.tablet.Conn(ctx)
	require.NoError(t, err)
	defer blocker.Close()
	_, err = blocker.ExecuteFetch("lock tables l2 write", 0, false)
	require.NoError(t, err)
	started := time.Now()
	err = read()
	assert.Equal(t, vtrpcpb.Code_DEADLINE_EXCEEDED, vterrors.Code(err), "%v", err)
	assert.Less(t, time.Since(started), 2*time.Second)
	require.NoError(t, cluster.WaitFor(ctx, "nothing waits", 10*time.Millisecond, func(ctx context.Context) (bool, error) { return len(b.threads(ctx, t)) == 0, nil }))
	b.exec(t, "update l1 set a = a") // it is not locked
}

// testSnapshot: in one view, positions of streams and rows belong together while both are written. Streams that are not
// running, or not there, are refused.
func (b *scanBed) testSnapshot(t *testing.T) {
	ctx := testContext(t)
	b.exec(t, "create table snap (id int primary key, a int)", "insert into snap select n, 0 from numbers",
		"insert into _vt.vreplication (id, workflow, source, pos, max_tps, max_replication_lag, time_updated, transaction_timestamp, state, db_name, options) values (77, 'x', '', '0', 1, 1, 1, 1, 'Stopped', '"+b.tablet.DBName()+"', '{}')")
	request := scan.DigestRequest{Table: table("snap", 1, "a", "id"), Seed: 7}
	request.Table.Key = []scan.KeyColumn{{Name: "id", Column: 1}}
	call := &scan.Call{Streams: []int32{77}, Tables: []scan.DigestRequest{request, request}}
	refused := func(want string) {
		t.Helper()
		_, err := b.local.Digest(ctx, call, nil)
		require.ErrorContains(t, err, want)
		assert.Equal(t, vtrpcpb.Code_FAILED_PRECONDITION, vterrors.Code(err))
	}
	refused("stream 77 is in state Stopped")
	b.exec(t, "update _vt.vreplication set state = 'Running' where id = 77", "insert into _vt.copy_state (vrepl_id, table_name) values (77, 'snap')")
	refused("stream 77 has tables still to copy")
	b.exec(t, "delete from _vt.copy_state where vrepl_id = 77")
	call.Streams = []int32{77, 78}
	refused("there is no stream 78")
	call.Streams = []int32{77}

	byPosition := map[string]digest.Sum{}
	for i := range 30 {
		b.exec(t, fmt.Sprintf("update snap set a = %d", i))
		byPosition[fmt.Sprint(i)] = b.whole(t, request.Table).Sums[0]
	}
	stop, writer := make(chan struct{}), sync.WaitGroup{}
	defer writer.Wait()
	defer close(stop)
	writer.Go(func() {
		conn, err := b.tablet.Conn(ctx)
		if !assert.NoError(t, err) {
			return
		}
		defer conn.Close()
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			for _, sql := range []string{"begin", fmt.Sprintf("update snap set a = %d", i%30), fmt.Sprintf("update _vt.vreplication set pos = '%d' where id = 77", i%30), "commit"} {
				if _, err := conn.ExecuteFetch(sql, 0, false); !assert.NoError(t, err) {
					return
				}
			}
		}
	})
	seen := map[string]bool{}
	for range 100 {
		answer, err := b.local.Digest(ctx, call, nil)
		require.NoError(t, err)
		position := answer.Positions[77]
		if position == "0" && len(seen) == 0 {
			continue // from before the writer
		}
		seen[position] = true
		require.Equal(t, byPosition[position], answer.Digests[0].Sums[0], "at position %s", position)
		require.Equal(t, answer.Digests[0], answer.Digests[1])
		require.Positive(t, answer.ReadView)
	}
	assert.Greater(t, len(seen), 3)
}

// testWaitFor: a read waits for a position, and says so when it does not come.
func (b *scanBed) testWaitFor(t *testing.T) {
	ctx := testContext(t)
	b.exec(t, "create table w (id int primary key)")
	request := scan.DigestRequest{Table: table("w", 1, "id")}
	answer, err := b.local.Digest(ctx, &scan.Call{Tables: []scan.DigestRequest{request}}, nil)
	require.NoError(t, err)
	now := answer.Executed
	require.Contains(t, now, "MySQL56/")
	_, err = b.local.Digest(ctx, &scan.Call{WaitFor: now, Tables: []scan.DigestRequest{request}}, nil)
	require.NoError(t, err, "it is executed")
	const uuid = "11111111-2222-3333-4444-555555555555"
	later := now + "," + uuid + ":1"
	for _, timeout := range []time.Duration{0, 200 * time.Millisecond} {
		_, err = b.local.Digest(ctx, &scan.Call{WaitFor: later, WaitTimeout: timeout, Tables: []scan.DigestRequest{request}}, nil)
		require.ErrorContains(t, err, uuid)
		assert.Equal(t, vtrpcpb.Code_DEADLINE_EXCEEDED, vterrors.Code(err))
	}
	waited := make(chan error, 1)
	go func() {
		answer, err := b.local.Digest(ctx, &scan.Call{WaitFor: later, WaitTimeout: time.Minute, Tables: []scan.DigestRequest{request}}, nil)
		if err == nil && (answer.Digests[0].Sums[0].Rows != 1 || !strings.Contains(answer.Executed, uuid)) {
			err = fmt.Errorf("read too early: %v, %s", answer.Digests[0].Sums[0], answer.Executed)
		}
		waited <- err
	}()
	require.NoError(t, cluster.WaitFor(ctx, "the wait", 10*time.Millisecond, func(ctx context.Context) (bool, error) {
		return slices.ContainsFunc(b.threads(ctx, t), func(s string) bool { return strings.Contains(s, uuid) }), nil
	}))
	b.exec(t, "set gtid_next = '"+uuid+":1'", "insert into w values (1)", "set gtid_next = 'automatic'")
	require.NoError(t, <-waited)
}

// testTLS: the same over TCP with TLS.
func (b *scanBed) testTLS(t *testing.T) {
	b.exec(t, "create user 'vt_filtered'@'%'", "grant select on *.* to 'vt_filtered'@'%'")
	over := &scanBed{tablet: b.tablet, local: scan.NewLocal(dbConfigs(b.tablet, true), 2)}
	defer over.local.Close()
	tb := table("wide1", 1, "id", "a", "k", "z")
	assert.Equal(t, b.whole(t, tb), over.whole(t, tb))
	over.walk(t, table("kmix", 4, "t", "a", "u", "d", "v"), 150)
}

// testSpeed: how many rows a second are read; nothing is asserted.
func (b *scanBed) testSpeed(t *testing.T) {
	b.exec(t, "set sql_log_bin = 0", "create table big (id bigint primary key, a int, b int, c varchar(200))",
		"insert into big select x.n * 1000 + y.n, x.n, y.n, repeat('abcdefghij', 18) from numbers x, numbers y")
	tb := table("big", 1, "id", "a", "b", "c")
	for _, filter := range []*scan.VindexFilter{
		nil, {Type: "hash", Columns: []int{0}, KeyRange: "-80"}, {Type: "xxhash", Columns: []int{0}, KeyRange: "-80"},
		{Type: "binary_md5", Columns: []int{0}, KeyRange: "-80"},
	} {
		tb.Filter = filter
		started := time.Now()
		d := b.whole(t, tb)
		took := time.Since(started)
		name := "no filter"
		if filter != nil {
			name = filter.Type
		}
		t.Logf("%s: %d of %d rows in %v: %.0f rows/s, %.0f MB/s", name, d.Sums[0].Rows, d.Read, took.Round(time.Millisecond),
			float64(d.Read)/took.Seconds(), float64(d.Bytes)/1e6/took.Seconds())
	}
	// A read that is ended early by its time.
	answer, err := b.local.Digest(testContext(t), &scan.Call{Tables: []scan.DigestRequest{{Table: tb, Limit: 1_000_000, MaxTime: 20 * time.Millisecond}}}, nil)
	require.NoError(t, err)
	assert.Less(t, answer.Digests[0].Read, int64(1_000_000))
	assert.Len(t, answer.Digests[0].UpTo, 1)
	t.Logf("%d rows within 20 ms, %v with the end of the statement", answer.Digests[0].Read, answer.ReadView)
}
