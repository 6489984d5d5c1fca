// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package scan

import (
	"context"
	"time"

	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/pkrange"

	querypb "vitess.io/vitess/go/vt/proto/query"
)

// RowsCall asks one tablet for rows of several tables, all in one read view.
type RowsCall struct {
	// Lock locks the tables against writes until the read view is open, so that the position of the view is exact.
	// LockWait bounds the wait for these locks.
	Lock     bool
	LockWait time.Duration
	// Streams asks for the positions of these streams, read in the view: see Call.Streams.
	Streams []int32
	// Reads are done one after the other.
	Reads []RowsRead
}

// RowsRead asks for ranges of one table. Rows come range by range, in key order within each.
type RowsRead struct {
	Table  *Table
	Ranges []pkrange.Range
	// Buckets, when set, passes only the rows of some buckets, of the whole table and in no order. It excludes Ranges.
	Buckets *BucketFilter
}

// BucketFilter passes the rows of some of the buckets that a DigestRequest with the same Seed, Buckets and BucketKey has.
type BucketFilter struct {
	Seed      uint64
	Buckets   int
	BucketKey []int
	// Wanted has the numbers of the buckets whose rows pass.
	Wanted []int
}

// RowsStart says that the read view is open.
type RowsStart struct {
	// Position is what the tablet has executed in the view, as Vitess encodes it. It is exact with Lock only.
	Position  string
	Positions map[int32]string
}

// RowsBatch is a run of rows of one read, in MySQL's text values.
type RowsBatch struct {
	// Read and Range are indexes in RowsCall.Reads and its Ranges.
	Read, Range int
	// Fields are the columns of the read; set in its first batch, which may have no rows. There is one for every read.
	Fields []*querypb.Field
	// Rows are valid during the call only.
	Rows []*querypb.Row
}

// RowReader reads rows on one tablet.
type RowReader interface {
	// Rows calls start once, when the read view is open, and then send for every batch. An error of either ends it.
	Rows(ctx context.Context, call *RowsCall, start func(*RowsStart) error, send func(*RowsBatch) error, progress Progress) error
}
