// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package scan

import (
	"encoding/binary"
	"sync/atomic"

	"vitess.io/vitess/go/vt/vterrors"

	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/digest"
)

// bucketOf tells the buckets of rows.
type bucketOf struct {
	seed    uint64
	buckets int
	key     []int // columns, none: all
	scratch []byte
}

// number returns the bucket of a row of which values are the raw ones of all key columns, and whole is the hash. Lengths
// keep neighbours apart.
func (b *bucketOf) number(values [][]byte, whole digest.Hash) int {
	if len(b.key) == 0 {
		return digest.Bucket(whole, b.buckets)
	}
	b.scratch = b.scratch[:0]
	for _, i := range b.key {
		raw := values[i]
		if raw == nil {
			b.scratch = append(b.scratch, 0)
			continue
		}
		b.scratch = binary.AppendUvarint(b.scratch, uint64(len(raw))+1)
		b.scratch = append(b.scratch, raw...)
	}
	return digest.Bucket(digest.Row(b.seed, b.scratch), b.buckets)
}

// check says whether a filter fits a table of so many columns.
func (b *BucketFilter) check(columns int) error {
	if !digest.ValidBuckets(b.Buckets) || len(b.Wanted) > b.Buckets {
		return invalid("%d of %d buckets", len(b.Wanted), b.Buckets)
	}
	for _, n := range b.Wanted {
		if n < 0 || n >= b.Buckets {
			return invalid("bucket %d of %d", n, b.Buckets)
		}
	}
	return vterrors.Wrap(checkIndexes(b.BucketKey, columns), "bucket key")
}

// bucketReader reads the rows of some buckets. What the bucket of a row is depends on its bytes in the binary protocol, so
// that rows are read in that one, and those that pass become text here.
type bucketReader struct {
	c       *compiled
	s       *session
	columns []column
	parser  rowParser
	filter  *keyRangeFilter
	bucket  bucketOf
	wanted  []bool
	long    []byte // a row that came in pieces
	rows    *textRows
}

// bucketRows reads one table.
func (c *compiled) bucketRows(s *session, read int, b *BucketFilter, send func(*RowsBatch) error, count *atomic.Int64) error {
	st, params, _, err := c.statement(s, &DigestRequest{Table: c.Table}, "")
	if err != nil {
		return err
	}
	columns, err := s.execute(st, params)
	if err != nil {
		return err
	}
	if len(columns) != len(c.columns) {
		return errTableChanged(c.Name)
	}
	r := &bucketReader{
		c: c, s: s, columns: columns, parser: rowParser{columns: columns}, rows: newTextRows(len(columns)),
		bucket: bucketOf{seed: b.Seed, buckets: b.Buckets, key: b.BucketKey}, wanted: make([]bool, b.Buckets),
	}
	for _, n := range b.Wanted {
		r.wanted[n] = true
	}
	all := make([]int, len(columns))
	for i := range all {
		all[i] = i
	}
	r.parser.want(false, all...)
	r.parser.want(true, b.BucketKey...)
	if r.filter, err = c.filter(columns); err != nil {
		return err
	}
	if r.filter != nil {
		r.parser.want(true, c.Filter.Columns...)
	}
	batch := &RowsBatch{Read: read}
	for i := range columns {
		batch.Fields = append(batch.Fields, columns[i].field())
	}
	return r.read(batch, send, count)
}

func (r *bucketReader) read(batch *RowsBatch, send func(*RowsBatch) error, count *atomic.Int64) error {
	for {
		row, err := r.next()
		if err != nil {
			return err
		}
		if row != nil {
			count.Add(1)
			if err := r.add(row); err != nil {
				return err
			}
			if len(r.rows.values) < batchBytes && len(r.rows.ends) < 1<<14 {
				continue
			}
		}
		if len(r.rows.ends) > 0 || batch.Fields != nil {
			batch.Rows = r.rows.take()
			if err := send(batch); err != nil {
				return err
			}
			batch = &RowsBatch{Read: batch.Read}
		}
		if row == nil {
			return nil
		}
	}
}

// next returns the next row, nil at the end.
func (r *bucketReader) next() ([]byte, error) {
	row, long, err := r.s.next()
	if err != nil || !long {
		return row, err
	}
	r.long = r.long[:0]
	for {
		piece, err := r.s.in.chunk(readBuffer)
		if err != nil {
			return nil, err
		}
		if piece == nil {
			return r.long, nil
		}
		r.long = append(r.long, piece...)
	}
}

// add adds a row if it is of a wanted bucket.
func (r *bucketReader) add(row []byte) error {
	if r.parser.last >= 0 {
		if err := r.parser.parse(row, r.parser.last); err != nil {
			return err
		}
	}
	if r.filter != nil {
		pass, err := r.filter.pass(r.columns, r.parser.values)
		if err != nil || !pass {
			return err
		}
	}
	var whole digest.Hash
	if len(r.bucket.key) == 0 {
		whole = digest.Row(r.bucket.seed, row)
	}
	if !r.wanted[r.bucket.number(r.parser.values, whole)] {
		return nil
	}
	if err := r.parser.parse(row, len(r.columns)-1); err != nil {
		return err
	}
	return r.rows.addBinary(r.columns, r.parser.values)
}

// addBinary adds a row of the binary protocol, of which values are all raw values.
func (t *textRows) addBinary(columns []column, values [][]byte) (err error) {
	for i, raw := range values {
		if raw == nil {
			t.lengths = append(t.lengths, -1)
			continue
		}
		start := len(t.values)
		if t.values, err = columns[i].appendText(t.values, raw); err != nil {
			return err
		}
		t.lengths = append(t.lengths, int64(len(t.values)-start))
	}
	t.ends = append(t.ends, len(t.values))
	return nil
}
