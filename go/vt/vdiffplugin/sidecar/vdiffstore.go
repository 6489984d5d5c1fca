// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package sidecar

import (
	"context"
	"errors"

	"vitess.io/vitess/go/sqltypes"
)

var (
	// ErrExists says that the database has a vdiff of this UUID already.
	ErrExists = errors.New("vdiff already exists")
	// ErrNotFound says that the vdiff is not, or no longer, there.
	ErrNotFound = errors.New("vdiff not found")
	// ErrIncomplete says that a vdiff cannot be completed because some of its tables are not.
	ErrIncomplete = errors.New("vdiff has tables that are not completed")
	// ErrFenceOpen says that the streams of the workflow are still stopped on behalf of the vdiff.
	ErrFenceOpen = errors.New("vdiff has stopped streams that are not restored yet")
)

// Failure is what is known of the error of a vdiff.
type Failure struct {
	Class Class
	// Attempt counts the failures in a row without progress in between: 1 for the first one. 0 means
	// that nothing was counted: the stock engine left the error, or a person has resumed the vdiff.
	Attempt int
	// Rows is the largest number of rows compared, over all tables, at any failure since the vdiff was
	// created or resumed.
	Rows int64
	// Text is the error, cut as it is stored in last_error.
	Text string
}

// Errored is a vdiff in the state error.
type Errored struct {
	*VDiff
	Failure Failure
}

// VDiffStore is the part of the store that the engine needs. The methods that change a state look at
// the stored state first and return false when it does not allow the change: a person, or another
// process, was faster.
type VDiffStore interface {
	// VDiffByUUID returns nil when there is no such vdiff.
	VDiffByUUID(ctx context.Context, uuid string) (*VDiff, error)
	// VDiffsOfWorkflow returns all vdiffs of a workflow, in whatever state, ordered by id.
	VDiffsOfWorkflow(ctx context.Context, keyspace, workflow string) ([]*VDiff, error)
	// VDiffsToRun returns those that are pending or started, and those whose state is not known:
	// they are to be recorded as errored.
	VDiffsToRun(ctx context.Context) ([]*VDiff, error)
	// ErroredVDiffs returns those in state error that are created with auto_retry.
	ErroredVDiffs(ctx context.Context) ([]*Errored, error)

	// CreateVDiff inserts v, whose State is pending or stopped, and returns its id.
	CreateVDiff(ctx context.Context, v *VDiff) (int64, error)
	// ResumeVDiff makes a vdiff pending because a person asked for it, and forgets its failures.
	// Tables of a completed vdiff are compared again, otherwise those that were not completed. It
	// allows any state: the caller knows whether the vdiff is being run.
	ResumeVDiff(ctx context.Context, id int64) error
	// RetryVDiff makes an errored vdiff pending. Its failures are still counted.
	RetryVDiff(ctx context.Context, id int64) (bool, error)
	// StartVDiff makes a pending or started vdiff started.
	StartVDiff(ctx context.Context, id int64) (bool, error)
	// CompleteVDiff makes a started vdiff completed. It returns ErrIncomplete, and changes nothing,
	// when a table is not completed.
	CompleteVDiff(ctx context.Context, id int64) (bool, error)
	// FailVDiff records an error, with its class, the tables whose it is and the count of failures, in one
	// transaction: whoever sees that something is in error sees why. It returns nil when the vdiff is stopped, completed or deleted by now. When the failure is not
	// going to be retried because there were more than maxRetries in a row, the log says so.
	FailVDiff(ctx context.Context, id int64, text string, class Class, tables []string, maxRetries int) (*Failure, error)
	// StopVDiff makes a vdiff and its tables stopped, unless they are completed. It returns whether
	// the vdiff is stopped now.
	StopVDiff(ctx context.Context, id int64) (bool, error)
	// DeleteVDiff removes the vdiff, its tables and its log. It returns ErrFenceOpen, and removes
	// nothing, while a fence of it is open. A vdiff that is not there is no error.
	DeleteVDiff(ctx context.Context, id int64) error

	// RecentVDiffs returns the rows of _vt.vdiff of a workflow, newest first, as they are shown.
	RecentVDiffs(ctx context.Context, keyspace, workflow string, limit int) (*sqltypes.Result, error)
	// VDiffSummary returns a row per table, with the columns that clients build a summary from.
	VDiffSummary(ctx context.Context, id int64) (*sqltypes.Result, error)

	// HasStreams says whether the workflow has streams on this tablet's database.
	HasStreams(ctx context.Context, workflow string) (bool, error)
	// Tables returns the records of a vdiff's tables, ordered by name.
	Tables(ctx context.Context, vdiffID int64) ([]*Table, error)
}
