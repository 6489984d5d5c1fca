// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package endtoend

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"vitess.io/vitess/go/mysql/collations"
	"vitess.io/vitess/go/vt/dbconfigs"

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
	t.Run("buckets", b.testBuckets)
	t.Run("cancel", b.testCancel)
	t.Run("snapshot", b.testSnapshot)
	t.Run("positions", b.testWaitFor)
	t.Run("locks", b.testLocks)
	t.Run("tls", b.testTLS)
	t.Run("max time", b.testMaxTime)
	t.Run("small packets", b.testSmallPackets)
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
