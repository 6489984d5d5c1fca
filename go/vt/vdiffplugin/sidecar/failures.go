// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package sidecar

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"vitess.io/vitess/go/mysql/sqlerror"
)

// failureLine is how a Failure is stored in vdiff_log. The first key tells it from other lines.
type failureLine struct {
	Class   Class  `json:"error_class"`
	Attempt int    `json:"attempt"`
	Rows    int64  `json:"rows_compared"`
	Text    string `json:"error"`
}

// failurePrefix begins every failureLine; it is also a pattern for LIKE when a % follows.
const failurePrefix = `{"error_class":`

// resumed is the class of the line that a resume writes: what was counted before is void.
const resumed Class = "resumed"

func (f *Failure) line() string {
	b, err := json.Marshal(failureLine{Class: f.Class, Attempt: f.Attempt, Rows: f.Rows, Text: f.Text})
	if err != nil {
		panic(err) // two strings and two numbers
	}
	return string(b)
}

// parseFailure reads a line of vdiff_log. It returns nil when it is no failureLine.
func parseFailure(message string) *Failure {
	var l failureLine
	if json.Unmarshal([]byte(message), &l) != nil {
		return nil
	}
	switch l.Class {
	case Transient, Permanent, resumed:
		return &Failure{Class: l.Class, Attempt: max(0, l.Attempt), Rows: max(0, l.Rows), Text: l.Text}
	}
	return nil
}

// NextFailure is a new failure after rows were compared. prev is the one before, nil for none. It is the
// first in a row when more rows were compared than before any failure since the vdiff was created or
// resumed: a table that begins anew in each run, and comes now to more and now to fewer rows, makes no
// progress.
func NextFailure(prev *Failure, class Class, rows int64, text string) *Failure {
	f := &Failure{Class: class, Attempt: 1, Rows: rows, Text: text}
	if prev != nil && rows <= prev.Rows {
		f.Attempt, f.Rows = prev.Attempt+1, prev.Rows
	}
	return f
}

// storedFailure returns what is known of the error text of a vdiff: newest is the newest failureLine
// of its log, nil for none. A line of another text was written before the stock engine had the vdiff
// and failed with it; then only the text is there to go by.
func storedFailure(newest *Failure, text string) Failure {
	if newest != nil && newest.Class != resumed && newest.Text == text {
		return *newest
	}
	return Failure{Class: Classify(errors.New(text)), Text: text}
}

// passing are errors that tell of the state of a server, not of what it was asked, beside those that Vitess calls ephemeral. A primary whose
// mysqld was restarted, or that is being demoted, is read-only for a while.
var passing = []sqlerror.ErrorCode{
	sqlerror.EROptionPreventsStatement, // --super-read-only
	1836,                               // ER_READ_ONLY_MODE
	sqlerror.ERRecordFileFull, sqlerror.ERErrorDuringCommit,
	1026, // ER_ERROR_ON_WRITE
	1030, // ER_GET_ERRNO, an error of the storage engine: no space is one
	3101, // ER_TRANSACTION_ROLLBACK_DURING_COMMIT
}

// Classify returns the class of an error: the one it was marked with, or else transient when Vitess
// calls the MySQL error in it ephemeral, or it is one of the state of a server.
func Classify(err error) Class {
	if class, ok := ClassOf(err); ok {
		return class
	}
	inMySQL := sqlerror.NewSQLErrorFromError(err)
	if sqlerror.IsEphemeralError(inMySQL) {
		return Transient
	}
	if se, ok := inMySQL.(*sqlerror.SQLError); ok && slices.Contains(passing, se.Number()) {
		return Transient
	}
	return Permanent
}

// gaveUpMessage is the log line of a failure that is not retried any more.
func gaveUpMessage(attempts int) string {
	return fmt.Sprintf("gave up after %d attempts without progress: resume the vdiff to try again", attempts)
}
