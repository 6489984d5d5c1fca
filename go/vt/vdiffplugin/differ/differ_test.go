// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package differ

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"vitess.io/vitess/go/mysql/sqlerror"
	"vitess.io/vitess/go/sqltypes"
	"vitess.io/vitess/go/vt/topo/memorytopo"

	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/plan"
	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/sidecar"

	tabletmanagerdatapb "vitess.io/vitess/go/vt/proto/tabletmanagerdata"
)

// Tests the error of a run whose tables failed: it names each table once, and is permanent only when
// no other try can help any of them.
func TestSummary(t *testing.T) {
	permanent := tableError{"a", sidecar.AsPermanent(errors.New("table a: it is gone"))}
	transient := tableError{"b", sidecar.AsTransient(errors.New("no tablet"))}
	unknown := tableError{"c", errors.New("broken pipe")}
	f := func(class sidecar.Class, want string, failed ...tableError) {
		t.Helper()
		err := summary(failed)
		require.EqualError(t, err, want)
		got, ok := sidecar.ClassOf(err)
		assert.True(t, ok)
		assert.Equal(t, class, got)
	}
	require.NoError(t, summary(nil))
	f(sidecar.Permanent, "table a: it is gone", permanent)
	f(sidecar.Transient, "table a: it is gone; table b: no tablet", permanent, transient)
	f(sidecar.Transient, "table c: broken pipe", unknown)
}

// Tests which errors of MySQL, as they come over the wire, are given up on at once.
func TestIsPermanent(t *testing.T) {
	f := func(err error, want bool) {
		t.Helper()
		assert.Equal(t, want, isPermanent(err), "%v", err)
		assert.Equal(t, want, isPermanent(errors.New("rpc error: code = Unknown desc = "+err.Error())), "%v over the wire", err)
	}
	f(sqlerror.NewSQLError(sqlerror.ERNoSuchTable, "42S02", "Table 'x.t' doesn't exist"), true)
	f(sqlerror.NewSQLError(sqlerror.ERAccessDeniedError, "28000", "no"), true)
	f(sqlerror.NewSQLError(sqlerror.ERWrongValue, "HY000", "Incorrect DATETIME value: '0000-00-00 12:07:35'"), true)
	f(sqlerror.NewSQLError(sqlerror.ERLockWaitTimeout, "HY000", "Lock wait timeout exceeded"), false)
	f(sqlerror.NewSQLError(sqlerror.CRServerGone, "HY000", "gone"), false)
	f(errors.New("connection refused"), false)
	assert.True(t, isPermanent(sidecar.AsPermanent(errors.New("x"))))
	assert.False(t, isPermanent(sidecar.AsTransient(sqlerror.NewSQLError(sqlerror.ERNoSuchTable, "42S02", "marked otherwise"))))
}

// Tests which errors that MySQL gives to a table at every try pass with another plan: those of what is there no more.
func TestClassified(t *testing.T) {
	f := func(err error, want sidecar.Class) {
		t.Helper()
		for _, err := range []error{err, errors.New("rpc error: code = Unknown desc = " + err.Error())} {
			class, ok := sidecar.ClassOf(classified(err))
			assert.True(t, ok)
			assert.Equal(t, want, class, "%v", err)
		}
	}
	f(sqlerror.NewSQLError(sqlerror.ERNoSuchTable, "42S02", "Table 'x.t' doesn't exist"), sidecar.Transient)
	f(sqlerror.NewSQLError(sqlerror.ERBadFieldError, "42S22", "Unknown column 'c' in 'field list'"), sidecar.Transient)
	f(sqlerror.NewSQLError(sqlerror.ERAccessDeniedError, "28000", "no"), sidecar.Permanent)
	f(sqlerror.NewSQLError(sqlerror.ERWrongValue, "HY000", "Incorrect DATETIME value"), sidecar.Permanent)
	class, _ := sidecar.ClassOf(classified(sidecar.AsPermanent(sqlerror.NewSQLError(sqlerror.ERNoSuchTable, "42S02", "marked otherwise"))))
	assert.Equal(t, sidecar.Permanent, class)
}

// Tests the choice of cells: those that are asked for, all by default, all of a mounted cluster that
// has none of them, and a clear error for cells that are nowhere.
func TestCellsOf(t *testing.T) {
	ts := memorytopo.NewServer(t.Context(), "zone1", "zone2")
	defer ts.Close()
	f := func(wanted string, mounted bool, want ...string) {
		t.Helper()
		got, err := cellsOf(t.Context(), ts, wanted, mounted)
		require.NoError(t, err)
		assert.ElementsMatch(t, want, got)
	}
	f("", false, "zone1", "zone2")
	f("zone2", false, "zone2")
	f(" zone2 , zone1", false, "zone1", "zone2")
	f("elsewhere", true, "zone1", "zone2")
	f("elsewhere,zone1", true, "zone1")
	_, err := cellsOf(t.Context(), ts, "zone1,zoen2", false)
	require.ErrorContains(t, err, "no such cells in the topo: zoen2")
	class, _ := sidecar.ClassOf(err)
	assert.Equal(t, sidecar.Permanent, class)
}

// Tests the order and the room that the scheduler gives to tables: the largest first, several small
// ones in the place of one large, and none that has to wait for another try.
func TestNext(t *testing.T) {
	table := func(name string, rows int64) *job { return &job{table: &plan.Table{Name: name}, rows: rows} }
	r := &run{Config: Config{Concurrency: 2}, v: &sidecar.VDiff{}}
	s := newScheduler(r, []*job{table("small1", 10), table("big1", 1e6), table("big2", 2e6), table("big3", 3e6), table("small2", 10), table("small3", 10)})
	names := func(batch []*job) (out []string) {
		for _, j := range batch {
			out = append(out, j.table.Name)
		}
		return out
	}
	assert.Equal(t, []string{"big3", "big2"}, names(s.next()))
	s.used = smallTablesEach // one of them has ended
	assert.Equal(t, []string{"big1"}, names(s.next()))
	s.used = 0
	s.waiting[0].retryAt = time.Now().Add(time.Hour)
	assert.Equal(t, []string{"small2", "small3"}, names(s.next()))
	at, ok := s.nextTry()
	assert.True(t, ok)
	assert.Greater(t, time.Until(at), 50*time.Minute)
	s.fatal = errors.New("no fence")
	s.waiting[0].retryAt = time.Time{}
	assert.Empty(t, s.next())
}

// Tests the age at which read views are given up: --max-diff-duration holds for every table, the flag
// only for those that can be continued.
func TestMaxAge(t *testing.T) {
	f := func(ordered bool, seconds int64, want time.Duration, cause error) {
		t.Helper()
		core := &tabletmanagerdatapb.VDiffCoreOptions{MaxDiffSeconds: seconds}
		r := &run{Config: Config{MaxSnapshotAge: time.Hour}, v: &sidecar.VDiff{Options: &tabletmanagerdatapb.VDiffOptions{CoreOptions: core}}}
		j := &job{r: r, merge: true, table: &plan.Table{Ordered: ordered, KeyUnique: true}}
		age, err := j.maxAge()
		assert.Equal(t, want, age)
		assert.Equal(t, cause, err)
	}
	f(true, 0, time.Hour, errSnapshotAge)
	f(true, 60, time.Minute, errMaxDiff)
	f(true, 7200, time.Hour, errSnapshotAge)
	f(false, 60, time.Minute, errMaxDiff)
	f(false, 0, 0, nil)
}

// Tests the row that a merge is told to begin behind.
func TestRowOfKey(t *testing.T) {
	table := &plan.Table{Name: "t", Columns: make([]plan.Column, 3), TargetKey: []int{2, 0}}
	result := sqltypes.ResultToProto3(&sqltypes.Result{
		Fields: sqltypes.MakeTestFields("b|a", "int64|varchar"), Rows: [][]sqltypes.Value{{sqltypes.NewInt64(7), sqltypes.NewVarChar("key")}},
	})
	row, err := rowOfKey(table, result)
	require.NoError(t, err)
	assert.Equal(t, []int32{3, -1, 1}, row.Lengths)
	assert.Equal(t, "key7", string(row.Values))
	table.TargetKey = []int{0}
	_, err = rowOfKey(table, result)
	require.ErrorContains(t, err, "1 key columns")
}

// Tests that a panic in a helper goroutine becomes an error that nobody tries again.
func TestContained(t *testing.T) {
	err := contained(func() error { panic("oops") })()
	require.ErrorContains(t, err, "oops")
	class, _ := sidecar.ClassOf(err)
	assert.Equal(t, sidecar.Permanent, class)
	require.NoError(t, contained(func() error { return nil })())
}
