// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package sidecar

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"vitess.io/vitess/go/mysql/sqlerror"
	"vitess.io/vitess/go/vt/vterrors"

	vtrpcpb "vitess.io/vitess/go/vt/proto/vtrpc"
)

// TestFailureLine tests that a failure comes back from its line as it was, whatever the error says,
// and that the line begins with what it is looked for by.
func TestFailureLine(t *testing.T) {
	f := func(text string) {
		t.Helper()
		want := &Failure{Class: Permanent, Attempt: 3, Rows: 12345678901, Text: text}
		line := want.line()
		require.True(t, strings.HasPrefix(line, failurePrefix), line)
		require.Equal(t, want, parseFailure(line))
	}
	f("")
	f("table t: no such column")
	f(`it's "quoted" \ <b> & é世` + "\n\t\x00")
}

// TestParseFailureGarbage tests that lines of other kinds, or spoiled ones, are no failures.
func TestParseFailureGarbage(t *testing.T) {
	f := func(line string) {
		t.Helper()
		require.Nil(t, parseFailure(line))
	}
	f("")
	f("State changed to: error")
	f(`{"error_class":`)
	f(`{"error_class":5}`)
	f(`{"error_class":"strange","attempt":1}`)
	f(`{"error_class":"transient","attempt":"x"}`)
	require.Equal(t, &Failure{Class: Transient}, parseFailure(`{"error_class":"transient","attempt":-5,"rows_compared":-1}`))
}

// TestNextFailure tests that failures are counted in a row, and anew after progress or a resume; and that
// to fail early and late in turn, over the same rows, is no progress.
func TestNextFailure(t *testing.T) {
	attempt := func(prev *Failure, rows int64) int { return NextFailure(prev, Transient, rows, "lost").Attempt }
	require.Equal(t, 1, attempt(nil, 0))
	require.Equal(t, 2, attempt(&Failure{Attempt: 1, Rows: 10}, 10))
	require.Equal(t, 3, attempt(&Failure{Attempt: 2, Rows: 10}, 5))
	require.Equal(t, 1, attempt(&Failure{Attempt: 9, Rows: 10}, 11))
	require.Equal(t, 1, attempt(&Failure{Class: resumed}, 0))
	require.Equal(t, 1, attempt(&Failure{Class: resumed}, 100))

	var newest *Failure
	for i, rows := range []int64{100, 50, 100, 20, 90, 100} {
		newest = NextFailure(newest, Transient, rows, "lost")
		require.Equal(t, &Failure{Class: Transient, Attempt: i + 1, Rows: 100, Text: "lost"}, newest)
	}
	require.Equal(t, &Failure{Class: Transient, Attempt: 1, Rows: 101, Text: "lost"}, NextFailure(newest, Transient, 101, "lost"))
}

// TestStoredFailure tests that the class of a line counts only for the error it was written for, and
// that the text decides on errors that the stock engine has left.
func TestStoredFailure(t *testing.T) {
	ours := &Failure{Class: Permanent, Attempt: 2, Text: "vttablet: rpc error: code = Canceled"}
	require.Equal(t, *ours, storedFailure(ours, ours.Text))

	stock := storedFailure(ours, "Lost connection to MySQL server during query (errno 2013) (sqlstate HY000)")
	require.Equal(t, Transient, stock.Class)
	require.Zero(t, stock.Attempt)

	stock = storedFailure(nil, "Unknown column 'x' in 'field list' (errno 1054) (sqlstate 42S22)")
	require.Equal(t, Permanent, stock.Class)

	stock = storedFailure(&Failure{Class: resumed}, "")
	require.Equal(t, Transient, stock.Class)
	require.Zero(t, stock.Attempt)
}

// TestClassify tests that a mark decides, however deep it is wrapped, and that MySQL's number does
// where there is none. The state of a server passes: read-only, full.
func TestClassify(t *testing.T) {
	f := func(err error, want Class) {
		t.Helper()
		require.Equal(t, want, Classify(err), "%v", err)
	}
	lost := sqlerror.NewSQLError(sqlerror.CRServerLost, "", "lost")
	noTable := sqlerror.NewSQLError(sqlerror.ERNoSuchTable, "", "no table")
	f(lost, Transient)
	f(noTable, Permanent)
	f(fmt.Errorf("reading: %w", noTable), Permanent)
	f(vterrors.Wrap(noTable, "reading"), Permanent)
	f(AsPermanent(lost), Permanent)
	f(vterrors.Wrapf(AsPermanent(lost), "table %s", "t"), Permanent)
	f(fmt.Errorf("table t: %w", AsTransient(noTable)), Transient)
	f(errors.New("anything else"), Transient)
	for _, number := range []sqlerror.ErrorCode{1290, 1836, 1114, 1021, 1026, 1030, 1180, 3101} {
		full := sqlerror.NewSQLError(number, "HY000", "no")
		f(vterrors.Wrap(fmt.Errorf("save the progress: %w", withoutData(full)), "writing"), Transient)
		f(errors.New(full.Error()), Transient)
		f(AsPermanent(full), Permanent)
	}
	f(vterrors.New(vtrpcpb.Code_PERMISSION_DENIED, "no"), Permanent)
}

// TestErrorsHaveNoData tests that an error of MySQL keeps its number but neither the statement nor a
// long message.
func TestErrorsHaveNoData(t *testing.T) {
	in := sqlerror.NewSQLError(sqlerror.ERDupEntry, "23000", "Duplicate entry '"+strings.Repeat("é", 500)+"' for key")
	in.Query = "insert into t values ('secret')"
	out := withoutData(fmt.Errorf("wrapped: %w", in))
	require.NotContains(t, out.Error(), "secret")
	require.Less(t, len(out.Error()), 300)
	var se *sqlerror.SQLError
	require.ErrorAs(t, out, &se)
	require.Equal(t, sqlerror.ERDupEntry, se.Num)
	require.Equal(t, "23000", se.State)
	require.Contains(t, in.Query, "secret", "the original is not changed")
}
