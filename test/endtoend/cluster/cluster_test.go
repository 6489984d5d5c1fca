// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"context"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/vttablet-ext/vttablet-ext/test/endtoend/cluster"
)

// TestCluster brings up a keyspace with a primary and a replica, kills and restarts the vttablet and the mysqld
// of the primary, makes the replica the primary, and closes the cluster. The data must be there after each
// step, and no process, no goroutine and no directory after the last.
func TestCluster(t *testing.T) {
	leaked := goleak.IgnoreCurrent()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	started := time.Now()
	step := func(what string) {
		t.Logf("%s: %v", what, time.Since(started).Round(10*time.Millisecond))
		started = time.Now()
	}

	c, err := cluster.New(ctx, cluster.Options{Logf: t.Logf})
	require.NoError(t, err)
	t.Cleanup(func() {
		if t.Failed() {
			c.Fail()
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	step("etcd and vtctld")
	require.NoError(t, c.AddKeyspace(ctx, cluster.Keyspace{
		Name:    "ks",
		Shards:  []cluster.Shard{{Name: "0", Replicas: 1}},
		VSchema: `{"tables": {"t": {}}}`,
	}))
	step("keyspace")

	primary := c.Primary("ks", "0")
	require.NotNil(t, primary)
	require.Equal(t, "zone1-0000000100", primary.Alias)
	replica := c.Shard("ks", "0")[1]
	require.NoError(t, primary.Exec(ctx, "create table t (id int primary key)", "insert into t values (1), (2)"))
	rows := func(tablet *cluster.Tablet, want string) {
		t.Helper()
		require.NoError(t, cluster.WaitFor(ctx, "rows on "+tablet.Alias, 20*time.Millisecond, func(ctx context.Context) (bool, error) {
			result, err := tablet.Query(ctx, "select count(*) from t")
			return err == nil && result.Rows[0][0].ToString() == want, nil
		}))
	}
	rows(replica, "2")
	step("replication")

	primary.Kill()
	require.False(t, primary.Alive())
	require.NoError(t, primary.Start(ctx))
	require.NoError(t, primary.WaitServing(ctx))
	require.NoError(t, primary.WaitType(ctx, "PRIMARY"))
	step("vttablet killed and restarted")

	require.NoError(t, primary.Term(ctx))
	primary.Stock = true
	require.NoError(t, primary.Start(ctx))
	require.NoError(t, primary.WaitServing(ctx))
	step("vttablet ended and restarted as the stock one")

	primary.KillMySQL()
	_, err = primary.Query(ctx, "select 1")
	require.Error(t, err)
	require.NoError(t, primary.StartMySQL(ctx))
	rows(primary, "2")
	require.NoError(t, primary.WaitServing(ctx))
	step("mysqld killed and restarted")

	require.NoError(t, c.Reparent(ctx, "ks", "0", replica.Alias))
	require.Equal(t, replica, c.Primary("ks", "0"))
	require.NoError(t, replica.WaitType(ctx, "PRIMARY"))
	require.NoError(t, replica.Exec(ctx, "insert into t values (3)"))
	rows(primary, "3")
	step("reparent")
	_, err = c.Vtctl(ctx, "PlannedReparentShard", "ks/0", "--new-primary", primary.Alias)
	require.NoError(t, err)
	require.Equal(t, primary, c.Primary("ks", "0"), "a reparent by command is noticed")

	_, err = c.Vtctl(ctx, "GetKeyspace", "nosuch")
	require.ErrorContains(t, err, "nosuch")
	lines, err := primary.GrepLogs(regexp.MustCompile(`ready for connections`))
	require.NoError(t, err)
	require.NotEmpty(t, lines)
	lines, err = c.GrepLogs(regexp.MustCompile(`^panic:|DATA RACE`))
	require.NoError(t, err)
	require.Empty(t, lines)

	require.Len(t, processesOf(t, c.Dir()), 6, "etcd, vtctld, two mysqlds, two vttablets")
	require.NoError(t, c.Close())
	require.NoDirExists(t, c.Dir())
	require.Empty(t, processesOf(t, c.Dir()))
	step("close")
	goleak.VerifyNone(t, leaked)
}
