// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"

	"vitess.io/vitess/go/sqltypes"
	"vitess.io/vitess/go/textutil"
)

// Proof says what it proves that a part of a table is equal on both sides while its workflow runs. It depends on how VReplication
// writes: a plain INSERT for a new row, an UPDATE or a DELETE of the rows that have certain columns, and no error when there is none.
type Proof int

const (
	// ProofAnyTime: these columns are a unique key on both sides. The last event of a key leaves on the target what the source has,
	// whatever was there before, and changes no other key.
	ProofAnyTime Proof = iota
	// ProofSamePosition: these columns are the whole row, which is not unique. An INSERT adds a row to those that are there, so that
	// a part is right only if it is equal when both sides are read at the same position.
	ProofSamePosition
	// ProofAtOnce: these columns are others than the key. An UPDATE gives a row another key, and does nothing where the row was
	// lost: what is wrong in one part is wrong in another one next. The whole table has to be equal in one reading, at the
	// same position.
	ProofAtOnce
)

// setProof sets what equal digests of the table prove, and the columns that decide on the bucket of a row.
func (b *builder) setProof(d *Digest, k *keys) {
	natural, unique := b.pairBy(b.targetColumns(b.in.Target.Key))
	switch {
	case k.unique && !b.keyMoves(k):
		d.BucketKey = k.key
	case unique && !b.keyMoves(&keys{key: natural, unique: true}):
		// Rows are paired by an index that gives them an order. Buckets need none.
		d.BucketKey = natural
	case !k.unique && !b.keyMoves(k):
		d.Proof = ProofSamePosition
	default:
		d.Proof = ProofAtOnce
		if k.unique {
			d.BucketKey = k.key
		}
	}
}

// keyMoves says whether an event that VReplication applies to a row of one key may change what another key has: it finds
// rows by other columns, or one of its keys is several on the source.
func (b *builder) keyMoves(k *keys) bool {
	written := b.writtenBy()
	if !subset(written, k.key) || !subset(k.key, written) {
		return true
	}
	return k.unique && slices.ContainsFunc(k.key, func(i int) bool { return !b.cols[i].oneToOne() })
}

// writtenBy returns the columns by which VReplication finds a row of the target, -1 for one that is not compared or that it leaves out.
func (b *builder) writtenBy() []int {
	names := b.in.Target.Key
	told, err := textutil.SplitUnescape(b.in.Rule.TargetUniqueKeyColumns, ",")
	if err != nil {
		return []int{-1}
	}
	if len(told) > 0 {
		names = told
	}
	more, err := textutil.SplitUnescape(b.in.Rule.SourceUniqueKeyTargetColumns, ",")
	if err != nil {
		return []int{-1}
	}
	columns := b.targetColumns(append(slices.Clone(names), more...))
	for n, i := range columns {
		if i >= 0 && b.cols[i].Generated {
			columns[n] = -1
		}
	}
	return columns
}

// oneToOne says whether unlike values of the source stay unlike on the target, as its unique key sees them.
func (c *column) oneToOne() bool {
	s, t := c.Source.Type, c.Target.Type
	switch {
	case c.TimeZones:
		return false
	case sqltypes.IsIntegral(s) && sqltypes.IsIntegral(t), isBytes(s) && isBytes(t):
		return true
	case hasCharset(s) && hasCharset(t):
		return c.constant || c.Source.Stored == c.Target.Stored
	}
	return c.constant || c.Source.ColumnType == c.Target.ColumnType
}
