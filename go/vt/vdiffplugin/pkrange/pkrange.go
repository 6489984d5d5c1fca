// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package pkrange

// Kind is how a value is handed to MySQL as a parameter.
type Kind int8

const (
	// Int and Uint are integers of any width, YEAR too.
	Int Kind = iota
	Uint
	// Decimal is a DECIMAL as MySQL prints it: handed over as text it would be compared as a DOUBLE.
	Decimal
	// Temporal is a DATE, DATETIME or TIMESTAMP as MySQL prints it.
	Temporal
	// Bytes is text in the column's own charset, or a binary string.
	Bytes
)

// Value is one value of a key column. It is never NULL: a key with NULLs makes no ranges.
type Value struct {
	Kind  Kind
	Int   int64  // of Kind Int
	Uint  uint64 // of Kind Uint
	Bytes []byte // of all other kinds
}

// Bound is a place between two rows: behind every row whose first len(Bound) key columns are equal to it or
// smaller. It may have fewer values than the key has columns. An empty Bound is no bound at all: the
// beginning as a Range's After, the end as its UpTo.
type Bound []Value

// Range is the rows behind After and not behind UpTo: (After, UpTo]. The zero Range is the whole table.
type Range struct {
	After, UpTo Bound
}
