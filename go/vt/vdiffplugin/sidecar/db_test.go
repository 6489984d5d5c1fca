// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package sidecar

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"vitess.io/vitess/go/mysql/sqlerror"
	"vitess.io/vitess/go/sqltypes"
	"vitess.io/vitess/go/vt/vttablet/tabletmanager/vdiff"
)

// inState answers as if the vdiff were in a state.
func inState(state string) func(string) (*sqltypes.Result, error) {
	return func(q string) (*sqltypes.Result, error) {
		if strings.Contains(q, "for update") {
			return rows("state|last_error", state+"|"), nil
		}
		if strings.Contains(q, "count(*) as tables") {
			return sqltypes.MakeTestResult(sqltypes.MakeTestFields("tables|completed", "int64|int64"), "2|2"), nil
		}
		if strings.Contains(q, "sum(rows_compared)") {
			return sqltypes.MakeTestResult(sqltypes.MakeTestFields("rows_compared", "int64"), "10"), nil
		}
		if strings.HasPrefix(q, "select message") {
			return rows("message"), nil
		}
		return nil, nil
	}
}

// changes returns the statements that write to a table of the sidecar database.
func changes(statements []string, table string) (n int) {
	for _, q := range statements {
		for _, verb := range []string{"update ", "insert into ", "delete from "} {
			if strings.HasPrefix(q, verb+"_vt."+table+" ") {
				n++
			}
		}
	}
	return n
}

// TestTransitions tests for every state which changes it allows, that a change that is not allowed
// writes nothing, and that each is one transaction.
func TestTransitions(t *testing.T) {
	ctx := context.Background()
	f := func(state string, start, complete, fail, retry, stop bool) {
		t.Helper()
		db, m := newFakeDB(inState(state))
		check := func(what string, want bool, change func() (bool, error)) {
			t.Helper()
			m.reset()
			got, err := change()
			require.NoError(t, err, what)
			require.Equal(t, want, got, "%s of a vdiff that is %q", what, state)
			statements := m.reset()
			require.Equal(t, "begin", statements[0])
			require.Equal(t, "commit", statements[len(statements)-1])
			if !want {
				require.Zero(t, changes(statements, "vdiff"), "%s of a vdiff that is %q: %v", what, state, statements)
			}
		}
		check("start", start, func() (bool, error) { return db.StartVDiff(ctx, 1) })
		check("complete", complete, func() (bool, error) { return db.CompleteVDiff(ctx, 1) })
		check("fail", fail, func() (bool, error) {
			failure, err := db.FailVDiff(ctx, 1, "boom", Transient, nil, 1)
			return failure != nil, err
		})
		check("retry", retry, func() (bool, error) { return db.RetryVDiff(ctx, 1) })
		check("stop", stop, func() (bool, error) { return db.StopVDiff(ctx, 1) })
	}
	//             start  complete fail  retry  stop
	f("pending", true, false, true, false, true)
	f("started", true, true, true, false, true)
	f("stopped", false, false, false, false, true)
	f("completed", false, true, false, false, false)
	f("error", false, false, true, true, true)
	f("Started", true, true, true, false, true) // the stock engine takes states in any case
	f("", false, false, true, false, true)
	f("nonsense", false, false, true, false, true)
}

// TestTransitionOfNothing tests that a vdiff that was deleted meanwhile is changed by nobody, and that
// only those who were asked by a person learn of it as an error.
func TestTransitionOfNothing(t *testing.T) {
	ctx := context.Background()
	db, m := newFakeDB(func(q string) (*sqltypes.Result, error) { return rows("state|last_error"), nil })
	ok, err := db.StartVDiff(ctx, 1)
	require.NoError(t, err)
	require.False(t, ok)
	failure, err := db.FailVDiff(ctx, 1, "boom", Permanent, []string{"t"}, 1)
	require.NoError(t, err)
	require.Nil(t, failure)
	ok, err = db.StopVDiff(ctx, 1)
	require.NoError(t, err)
	require.False(t, ok)
	require.NoError(t, db.DeleteVDiff(ctx, 1))
	require.NoError(t, db.CloseFence(ctx, testFence(1, 1, 0)))
	require.ErrorIs(t, db.ResumeVDiff(ctx, 1), ErrNotFound)
	require.ErrorIs(t, db.OpenFence(ctx, testFence(1, 1, 0)), ErrNotFound)
	require.ErrorIs(t, db.EnsureTables(ctx, 1, []string{"t"}, false), ErrNotFound)
	for _, table := range []string{"vdiff", "vdiff_table", "vdiff_log"} {
		require.Zero(t, changes(m.reset(), table))
	}
}

// TestCompleteNeedsTables tests that a vdiff of which a table is not completed, or that has none, is
// not completed.
func TestCompleteNeedsTables(t *testing.T) {
	f := func(counts string, want bool) {
		t.Helper()
		db, _ := newFakeDB(func(q string) (*sqltypes.Result, error) {
			if strings.Contains(q, "count(*) as tables") {
				return sqltypes.MakeTestResult(sqltypes.MakeTestFields("tables|completed", "int64|int64"), counts), nil
			}
			return inState("started")(q)
		})
		ok, err := db.CompleteVDiff(context.Background(), 1)
		require.Equal(t, want, ok)
		require.Equal(t, !want, errors.Is(err, ErrIncomplete))
	}
	f("3|3", true)
	f("3|2", false)
	f("0|0", false)
}

// TestFailCountsAttempts tests that the class and the count are written in the transaction of the
// state, cut to the columns, and that the log says when nothing will be retried any more.
func TestFailCountsAttempts(t *testing.T) {
	f := func(before string, class Class, wantAttempt int, wantGaveUp bool) {
		t.Helper()
		db, m := newFakeDB(func(q string) (*sqltypes.Result, error) {
			if strings.HasPrefix(q, "select message") && before != "" {
				return sqltypes.MakeTestResult(sqltypes.MakeTestFields("message", "varchar"), before), nil
			}
			return inState("started")(q)
		})
		failure, err := db.FailVDiff(context.Background(), 1, "boom "+strings.Repeat("é", 3000), class, []string{"t1", "t2"}, 3)
		require.NoError(t, err)
		require.Equal(t, wantAttempt, failure.Attempt)
		require.LessOrEqual(t, len(failure.Text), maxLastError)
		all := strings.Join(m.reset(), "\n")
		require.Equal(t, wantGaveUp, strings.Contains(all, "gave up"))
		require.Equal(t, 1, strings.Count(all, "begin"))
		require.Regexp(t, `(?s)begin.*vdiff_table set state = 'error' where vdiff_id = 1 and table_name in \('t1', 't2'\).*commit`, all)
	}
	f("", Transient, 1, false)
	f((&Failure{Class: Transient, Attempt: 2, Rows: 10}).line(), Transient, 3, false)
	f((&Failure{Class: Transient, Attempt: 3, Rows: 10}).line(), Transient, 4, true)
	f((&Failure{Class: Transient, Attempt: 3, Rows: 9}).line(), Transient, 1, false)
	f((&Failure{Class: Transient, Attempt: 9, Rows: 10}).line(), Permanent, 10, false)
}

// TestDeleteLeavesNothing tests that a vdiff is removed from all three tables in one transaction, and
// from none while a fence of it is open.
func TestDeleteLeavesNothing(t *testing.T) {
	db, m := newFakeDB(inState("completed"))
	require.NoError(t, db.DeleteVDiff(context.Background(), 1))
	statements := m.reset()
	for _, table := range []string{"vdiff", "vdiff_table", "vdiff_log"} {
		require.Equal(t, 1, changes(statements, table), table)
	}
	open, err := encodeFence(testFence(1, 1, 0))
	require.NoError(t, err)
	db, m = newFakeDB(func(q string) (*sqltypes.Result, error) {
		if strings.HasPrefix(q, "select message") {
			return sqltypes.MakeTestResult(sqltypes.MakeTestFields("message", "varchar"), open[0]), nil
		}
		return inState("completed")(q)
	})
	require.ErrorIs(t, db.DeleteVDiff(context.Background(), 1), ErrFenceOpen)
	statements = m.reset()
	for _, table := range []string{"vdiff", "vdiff_table", "vdiff_log"} {
		require.Zero(t, changes(statements, table), table)
	}
	require.Equal(t, "rollback", statements[len(statements)-1])
}

// TestSaveProgressIsOneStatement tests that a checkpoint is one statement outside any transaction, with
// the state only when one is given, and that a key that does not fit is refused before it is sent.
func TestSaveProgressIsOneStatement(t *testing.T) {
	ctx := context.Background()
	db, m := newFakeDB(nil)
	require.NoError(t, db.SaveProgress(ctx, 7, "t1", &Progress{RowsCompared: 5, LastPK: []byte("k"), Report: []byte(`{"a":1}`), Mismatch: true}))
	statements := m.reset()
	require.Len(t, statements, 1)
	require.NotContains(t, statements[0], "t.state")
	require.Contains(t, statements[0], "vt_ks")

	require.NoError(t, db.SaveProgress(ctx, 7, "t1", &Progress{State: vdiff.CompletedState}))
	statements = m.reset()
	require.Len(t, statements, 1)
	require.Contains(t, statements[0], "t.state = 'completed'")
	require.Contains(t, statements[0], "t.lastpk = null")

	require.Error(t, db.SaveProgress(ctx, 7, "t1", &Progress{LastPK: make([]byte, maxLastPK+1)}))
	require.Empty(t, m.reset())
}

// TestProgressOfNothing tests that an update that finds no record is an error, and one that changes
// nothing is not.
func TestProgressOfNothing(t *testing.T) {
	f := func(found bool) error {
		db, _ := newFakeDB(func(q string) (*sqltypes.Result, error) {
			switch {
			case strings.HasPrefix(q, "update"):
				return &sqltypes.Result{}, nil
			case found:
				return rows("1", "1"), nil
			}
			return rows("1"), nil
		})
		return db.SaveProgress(context.Background(), 1, "t", &Progress{})
	}
	require.NoError(t, f(true))
	require.ErrorIs(t, f(false), errNoTable)
}

// TestDBNameEverywhere tests that every operation names the tablet's database, since several tablets
// may share one mysqld.
func TestDBNameEverywhere(t *testing.T) {
	ctx := context.Background()
	db, m := newFakeDB(inState("started"))
	for what, f := range map[string]func() error{
		"VDiffByUUID":      func() error { _, err := db.VDiffByUUID(ctx, "u"); return err },
		"VDiffsOfWorkflow": func() error { _, err := db.VDiffsOfWorkflow(ctx, "k", "w"); return err },
		"VDiffsToRun":      func() error { _, err := db.VDiffsToRun(ctx); return err },
		"ErroredVDiffs":    func() error { _, err := db.ErroredVDiffs(ctx); return err },
		"CreateVDiff":      func() error { _, err := db.CreateVDiff(ctx, &VDiff{}); return err },
		"ResumeVDiff":      func() error { return db.ResumeVDiff(ctx, 1) },
		"StartVDiff":       func() error { _, err := db.StartVDiff(ctx, 1); return err },
		"StopVDiff":        func() error { _, err := db.StopVDiff(ctx, 1); return err },
		"DeleteVDiff":      func() error { return db.DeleteVDiff(ctx, 1) },
		"RecentVDiffs":     func() error { _, err := db.RecentVDiffs(ctx, "k", "w", 1); return err },
		"VDiffSummary":     func() error { _, err := db.VDiffSummary(ctx, 1); return err },
		"HasStreams":       func() error { _, err := db.HasStreams(ctx, "w"); return err },
		"Tables":           func() error { _, err := db.Tables(ctx, 1); return err },
		"EnsureTables":     func() error { return db.EnsureTables(ctx, 1, []string{"t"}, true) },
		"Streams":          func() error { _, err := db.Streams(ctx, "w"); return err },
		"AllStreams":       func() error { _, err := db.AllStreams(ctx); return err },
		"OpenFences":       func() error { _, err := db.OpenFences(ctx); return err },
		"OpenFence":        func() error { return db.OpenFence(ctx, testFence(1, 1, 0)) },
		"CloseFence":       func() error { return db.CloseFence(ctx, testFence(1, 1, 0)) },
		"Log":              func() error { return db.Log(ctx, 1, "m") },
		"SaveProgress":     func() error { return db.SaveProgress(ctx, 1, "t", &Progress{}) },
	} {
		m.reset()
		require.NoError(t, f(), what)
		require.Contains(t, strings.Join(m.reset(), "\n"), "vt_ks", what)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	require.Equal(t, m.opened, m.closed, "connections left open")
}

// TestRetryAfterRollback tests that an operation that MySQL rolled back in favour of another one is
// tried again from its beginning, a few times, and that other errors are not.
func TestRetryAfterRollback(t *testing.T) {
	f := func(num sqlerror.ErrorCode, failures, wantTries int, wantErr bool) {
		t.Helper()
		tries := 0
		db, _ := newFakeDB(func(q string) (*sqltypes.Result, error) {
			if strings.Contains(q, "for update") {
				if tries++; tries <= failures {
					return nil, sqlerror.NewSQLError(num, "", "sorry")
				}
			}
			return inState("pending")(q)
		})
		ok, err := db.StartVDiff(context.Background(), 1)
		require.Equal(t, wantErr, err != nil)
		require.Equal(t, !wantErr, ok)
		require.Equal(t, wantTries, tries)
	}
	f(sqlerror.ERLockDeadlock, 0, 1, false)
	f(sqlerror.ERLockDeadlock, 2, 3, false)
	f(sqlerror.ERLockWaitTimeout, 1, 2, false)
	f(sqlerror.ERLockDeadlock, 100, maxTries, true)
	f(sqlerror.ERNoSuchTable, 1, 1, true)
	f(sqlerror.CRServerLost, 1, 1, true)
}

// TestCancelInterrupts tests that a statement that hangs ends at once with its context, that the error
// says so, and that the connection is closed.
func TestCancelInterrupts(t *testing.T) {
	db, m := newFakeDB(nil)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- db.Log(ctx, 1, "sleep for ever") }()
	require.Eventually(t, func() bool {
		m.mu.Lock()
		defer m.mu.Unlock()
		return len(m.statements) > 0
	}, 10*time.Second, time.Millisecond)
	cancel()
	select {
	case err := <-done:
		require.ErrorIs(t, err, context.Canceled)
	case <-time.After(10 * time.Second):
		t.Fatal("the statement was not interrupted")
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	require.Equal(t, m.opened, m.closed)
}

// TestGarbageRecords tests that a vdiff of which parts are garbage is read all the same.
func TestGarbageRecords(t *testing.T) {
	db, _ := newFakeDB(func(q string) (*sqltypes.Result, error) {
		fields := sqltypes.MakeTestFields("id|vdiff_uuid|workflow|keyspace|shard|state|options|last_error|started_at|completed_at",
			"int64|varchar|varbinary|varbinary|varchar|varbinary|json|varbinary|timestamp|timestamp")
		return sqltypes.MakeTestResult(fields,
			`1|u1|w|k|0|pending|{"core_options":"x"}|null|null|null`,
			`2|u2|null|null|0|null|null|null|null|null`,
			`3|u3|w|k|0|Strange|[]||2026-01-02 03:04:05|null`), nil
	})
	found, err := db.VDiffsToRun(context.Background())
	require.NoError(t, err)
	require.Len(t, found, 3)
	require.Error(t, found[0].OptionsErr)
	require.NoError(t, found[1].OptionsErr)
	require.Equal(t, vdiff.UnknownState, found[1].State)
	require.Equal(t, vdiff.VDiffState("strange"), found[2].State)
	require.Equal(t, "2026-01-02 03:04:05", found[2].StartedAt)
	for _, v := range found {
		require.NotNil(t, v.Options.CoreOptions)
	}
}
