// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package verify

import (
	"time"

	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/pkrange"
)

// TableID names a table to its Machine.
type TableID string

// Table is a table to be verified.
type Table struct {
	ID TableID
	// Rows is an estimate. It decides the order of the tables, which of them are tiny, and where lanes are cut; nothing
	// that is said about the table depends on it.
	Rows int64
	// Buckets is 0 for a table that is compared in ranges. Otherwise the table is compared as a whole, by that many buckets.
	Buckets int
	// Proof is what an equal bucket proves. Ranges need AnyTime.
	Proof Proof
	// Segments is a checkpoint, in key order; nil is a table of which nothing is known.
	Segments []Segment
	// Min and Max are the smallest and the largest value of the first key column, for cutting lanes. They
	// may be out of date; nil: not known.
	Min, Max *pkrange.Value
}

// Proof says when digests that are equal prove a part of a table to be right: see the package comment.
type Proof int

const (
	// AnyTime: whenever they were read. Events write the rows of a key, whatever is there.
	AnyTime Proof = iota
	// SamePosition: when nothing had changed on any source since the position that the target was read at. Events add
	// rows.
	SamePosition
	// AtOnce: when besides the whole table is equal in one reading. Events take rows from one bucket to another, where
	// they are.
	AtOnce
)

// Segment is a part of a table in a checkpoint.
type Segment struct {
	Range pkrange.Range
	Done  bool
	// Rows is how many rows a Done segment had, on the target, when it was verified.
	Rows int64
}

// Task is a range to be compared: read on the target, told by Walked, then read on the sources, told by Compared.
type Task struct {
	ID    int64
	Table TableID
	Range pkrange.Range
	// Limit, if it is not 0, says that the target reads that many rows from the beginning of Range, and the sources
	// as far as the target came: a walk. MaxBytes and MaxTime end it earlier.
	Limit    int64
	MaxBytes int64
	MaxTime  time.Duration
	// SourceLimit, if it is not 0, is how many rows of the target's (those that pass the filter of its key range) a
	// source reads before it stops and says where: then it has far more of them than expected.
	SourceLimit int64
	// Buckets asks for digests of that many buckets, 0 for one digest.
	Buckets int
}

// Outcome is what a comparison showed.
type Outcome struct {
	// Equal says that all rows of the range are the same on both sides.
	Equal bool
	// TargetRows and SourceRows is how many rows there are on each side, of all source shards together.
	TargetRows, SourceRows int64
	// SamePosition says that nothing had changed on any source since the position that the target was read at: what
	// is unequal then stays so.
	SamePosition bool
	// SourceUpTo is where a source stopped that found more than SourceLimit rows; any one of those that did.
	SourceUpTo pkrange.Bound
	// EqualBuckets and BucketRows tell of each bucket whether it is the same on both sides, and its rows on the
	// target. Without them no bucket of an unequal table is.
	EqualBuckets []bool
	BucketRows   []int64
	// Took is how long the slowest source read, without its wait for the position.
	Took time.Duration
}

// task is a task in flight.
type task struct {
	id      int64
	segment *segment
	// limit of a walk, and how it went: whether it read as many rows, in what time.
	limit int64
	full  bool
	took  time.Duration
	// void says that the answer can mean nothing.
	void bool
}
