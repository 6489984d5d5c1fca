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

	"vitess.io/vitess/go/vt/vterrors"

	vtrpcpb "vitess.io/vitess/go/vt/proto/vtrpc"

	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/digest"
	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/pkrange"
	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/scan"
	"github.com/vttablet-ext/vttablet-ext/test/endtoend/cluster"
)

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
	assert.Less(t, time.Since(started), 30*time.Second, "the lock would never have come")
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
	call := &scan.RowsCall{Lock: true, LockWait: time.Minute, Reads: []scan.RowsRead{
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
	call.LockWait = 300 * time.Millisecond
	started := time.Now()
	err = read()
	assert.Equal(t, vtrpcpb.Code_DEADLINE_EXCEEDED, vterrors.Code(err), "%v", err)
	assert.Less(t, time.Since(started), 30*time.Second, "the lock would never have come")
	require.NoError(t, cluster.WaitFor(ctx, "nothing waits", 10*time.Millisecond, func(ctx context.Context) (bool, error) { return len(b.threads(ctx, t)) == 0, nil }))
	b.exec(t, "update l1 set a = a") // it is not locked
}

// snapPosition is a position that stands for i.
func snapPosition(i int) string {
	return fmt.Sprintf("MySQL56/00000000-0000-0000-0000-000000000001:1-%d", i+2)
}

// testSnapshot: in one view, positions of streams and rows belong together while both are written. Streams that are in
// error, or not there, are refused; one that a person has stopped is not.
func (b *scanBed) testSnapshot(t *testing.T) {
	ctx := testContext(t)
	b.exec(t, "create table snap (id int primary key, a int)", "insert into snap select n, 0 from numbers",
		"insert into _vt.vreplication (id, workflow, source, pos, max_tps, max_replication_lag, time_updated, transaction_timestamp, state, db_name, options) values (77, 'x', '', '"+snapPosition(0)+"', 1, 1, 1, 1, 'Error', '"+b.tablet.DBName()+"', '{}')")
	request := scan.DigestRequest{Table: table("snap", 1, "a", "id"), Seed: 7}
	request.Table.Key = []scan.KeyColumn{{Name: "id", Column: 1}}
	call := &scan.Call{Streams: []int32{77}, Tables: []scan.DigestRequest{request, request}}
	refused := func(want string) {
		t.Helper()
		_, err := b.local.Digest(ctx, call, nil)
		require.ErrorContains(t, err, want)
		assert.Equal(t, vtrpcpb.Code_FAILED_PRECONDITION, vterrors.Code(err))
	}
	refused("stream 77 is in state Error")
	b.exec(t, "update _vt.vreplication set state = 'Stopped' where id = 77", "insert into _vt.copy_state (vrepl_id, table_name) values (77, 'snap')")
	refused("stream 77 has tables still to copy")
	b.exec(t, "delete from _vt.copy_state where vrepl_id = 77")
	call.Streams = []int32{77, 78}
	refused("there is no stream 78")
	call.Streams = []int32{77}

	byPosition := map[string]digest.Sum{}
	for i := range 30 {
		b.exec(t, fmt.Sprintf("update snap set a = %d", i))
		byPosition[snapPosition(i)] = b.whole(t, request.Table).Sums[0]
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
			for _, sql := range []string{"begin", fmt.Sprintf("update snap set a = %d", i%30), fmt.Sprintf("update _vt.vreplication set pos = '%s' where id = 77", snapPosition(i%30)), "commit"} {
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
		if position == snapPosition(0) && len(seen) == 0 {
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

// testMaxTime: a read that is ended early by its time, at a row that it names.
func (b *scanBed) testMaxTime(t *testing.T) {
	b.exec(t, "set sql_log_bin = 0", "create table big (id bigint primary key, a int, b int, c varchar(200))",
		"insert into big select x.n * 1000 + y.n, x.n, y.n, repeat('abcdefghij', 18) from numbers x, numbers y where x.n <= 200")
	tb := table("big", 1, "id", "a", "b", "c")
	answer, err := b.local.Digest(testContext(t), &scan.Call{Tables: []scan.DigestRequest{{Table: tb, Limit: 200_000, MaxTime: 10 * time.Millisecond}}}, nil)
	require.NoError(t, err)
	assert.Less(t, answer.Digests[0].Read, int64(200_000))
	assert.Len(t, answer.Digests[0].UpTo, 1)
}

// testSmallPackets: a server whose packets may not be longer than a few rows, and one that took long packets before.
func (b *scanBed) testSmallPackets(t *testing.T) {
	b.exec(t, "create table several (id int primary key, v varchar(200))", "insert into several select n, repeat('x', 200) from numbers")
	tb := table("several", 1, "id", "v")
	want := b.whole(t, tb)
	b.exec(t, "set global max_allowed_packet = 16384, global net_buffer_length = 1024")
	defer b.exec(t, "set global max_allowed_packet = default, global net_buffer_length = default")
	small := &scanBed{tablet: b.tablet, local: scan.NewLocal(dbConfigs(b.tablet, false), 2)}
	defer small.local.Close()
	assert.Equal(t, want, small.whole(t, tb))
	assert.Equal(t, want, b.whole(t, tb))
}
