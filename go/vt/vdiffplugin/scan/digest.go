// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package scan

import (
	"context"
	"errors"
	"time"

	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/digest"
	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/pkrange"
)

// Table says what MySQL is asked for to read one side of a table. Everything in it may come over the
// network: see Table.Check.
type Table struct {
	// Name is the table, not quoted, in the tablet's own database.
	Name string
	// Columns is the select list: SQL expressions in the columns of this table, without aliases.
	Columns []string
	// Key has the columns that ranges are in. Without any only the whole table can be read.
	Key []KeyColumn
	// Index is the name of the index that has the columns of Key, in their order. Required with Key.
	Index string
	// Where is a condition in the columns of this table, "" for none.
	Where string
	// Filter, when set, passes only the rows that belong to a key range.
	Filter *VindexFilter
}

// KeyColumn is a column of a Table's key.
type KeyColumn struct {
	// Name is the column in MySQL, not quoted.
	Name string
	// Column is the index in Columns where its value is selected, unchanged or cast to a wider integer.
	Column int
}

// VindexFilter is in_keyrange: rows pass whose keyspace id is in KeyRange.
type VindexFilter struct {
	// Type and Params make the vindex, as in a VSchema. It must be functional.
	Type   string
	Params map[string]string
	// Columns are indexes in Table.Columns: the input of the vindex, in its order.
	Columns []int
	// KeyRange as text, "-80".
	KeyRange string
}

// DigestRequest asks for the digest of the rows of one range.
type DigestRequest struct {
	Table *Table
	Range pkrange.Range
	// Limit, when it is not 0, ends the read after that many rows in key order (before Filter). MaxBytes
	// and MaxTime, when they are not 0, end it earlier, but never before the first row. They need a Key.
	Limit    int64
	MaxBytes int64
	MaxTime  time.Duration
	// MaxRows, when it is not 0, ends the read when it has found that many rows that pass the Filter. It needs a Key.
	MaxRows int64
	// Seed of the hash: one for each vdiff.
	Seed uint64
	// Buckets, when it is not 0, asks for that many digests (a power of two). A row is in the bucket that the
	// hash of its columns BucketKey says, nil: of all columns.
	Buckets   int
	BucketKey []int
}

// Digest is the answer.
type Digest struct {
	// Sums has one digest, or one for each bucket.
	Sums []digest.Sum
	// UpTo is where a read with a limit of any kind ended: the key of its last row. It is empty when there are no
	// more rows in the Range.
	UpTo pkrange.Bound
	// Last is the key of the last row of a read with a limit of any kind, empty when it had none.
	Last pkrange.Bound
	// Form tells the wire types and charsets of the columns. Digests of unlike forms must not be compared, even if they are
	// equal: the same bytes may mean different values.
	Form uint64
	// Read is the number of rows that MySQL sent, those included that Filter did not pass; Bytes is their
	// size.
	Read  int64
	Bytes int64
}

// Call is what one tablet is asked for at once.
type Call struct {
	// Streams asks for the positions of these streams (ids of _vt.vreplication), and for all digests to be read in
	// the one read view in which these positions were read.
	Streams []int32
	// WaitFor is a position, as Vitess encodes it, that the tablet must have executed before anything is read, and
	// WaitTimeout the bound of that wait.
	WaitFor     string
	WaitTimeout time.Duration
	// Tables are read one after the other.
	Tables []DigestRequest
}

// Answer is what it answers.
type Answer struct {
	// Positions are those of Call.Streams, as stored.
	Positions map[int32]string
	// Executed has all that may have been visible when the last range was read, as Vitess encodes it: what the tablet had executed and was
	// committing. Equal to the positions on the other side it says that nothing changed in between.
	Executed string
	Digests  []Digest
	// ReadView is how long the read view of Streams was open, the longest statement's otherwise.
	ReadView time.Duration
}

// Progress is told while a call is being worked on, at least once a second: rows read so far, and why the throttler
// holds it up, "" when it does not.
type Progress func(rows int64, throttled string)

// Digester makes digests on one tablet.
type Digester interface {
	Digest(ctx context.Context, call *Call, progress Progress) (*Answer, error)
}

// ErrUnsupported says that a tablet does not serve scans, or speaks another version of it: its rows are read by
// VStreamRows.
var ErrUnsupported = errors.New("the tablet has no scan service of this version")
