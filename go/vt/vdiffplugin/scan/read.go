// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package scan

import (
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"vitess.io/vitess/go/vt/vterrors"

	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/digest"
	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/pkrange"
)

// reader makes the digest of the rows of one statement.
type reader struct {
	req    *DigestRequest
	s      *session
	passed int64         // rows that the filter let pass
	rows   *atomic.Int64 // rows read so far, of this range and those before it
	told   int64         // how many of this range were added to rows
	parser rowParser
	filter *keyRangeFilter
	key    []int // the columns of the key
	// Of a walk: the last row, while it is in memory, and once it is not, or was a long one, the raw values of its key.
	// ends is where each of these ends in kept, -1 for NULL.
	last   []byte
	kept   []byte
	ends   []int
	err    error // in the last row
	hasher *digest.Hasher
	bucket bucketOf
	out    Digest
}

// drainBytes is how much is rather read to its end than stopped, which takes another connection.
const drainBytes = 1 << 20

// digest reads a range.
func (c *compiled) digest(s *session, req *DigestRequest, rows *atomic.Int64) (Digest, error) {
	st, params, key, err := c.statement(s, req, "")
	if err != nil {
		return Digest{}, err
	}
	columns, err := s.execute(st, params)
	if err != nil {
		return Digest{}, err
	}
	if len(columns) != len(c.columns) {
		return Digest{}, errTableChanged(c.Name)
	}
	for i := range key {
		if now := &columns[c.Key[i].Column]; now.kind != key[i].kind || now.collation != key[i].collation {
			return Digest{}, errTableChanged(c.Name)
		}
	}
	r, err := newReader(c, s, req, columns, rows)
	if err != nil {
		return Digest{}, err
	}
	defer func() { s.in.moving = nil }()
	err = r.read()
	return r.out, err
}

func newReader(c *compiled, s *session, req *DigestRequest, columns []column, rows *atomic.Int64) (*reader, error) {
	r := &reader{req: req, s: s, rows: rows, parser: rowParser{columns: columns}}
	r.out = Digest{Sums: make([]digest.Sum, max(1, req.Buckets)), Form: form(columns)}
	for _, k := range c.Key {
		r.key = append(r.key, k.Column)
	}
	r.parser.want(true)
	if req.walks() {
		r.parser.want(false, r.key...)
		r.ends = make([]int, len(r.key))
		s.in.moving = r.note
	}
	var err error
	if r.filter, err = c.filter(columns); err != nil {
		return nil, err
	}
	if r.filter != nil {
		r.parser.want(true, c.Filter.Columns...)
	}
	if req.Buckets > 0 {
		r.parser.want(true, req.BucketKey...)
	}
	r.bucket = bucketOf{seed: req.Seed, buckets: req.Buckets, key: req.BucketKey}
	return r, nil
}

// read reads all rows, or as many as the request's limits allow.
func (r *reader) read() error {
	started, seen := time.Now(), r.s.in.reads
	for {
		row, long, err := r.s.next()
		if err != nil {
			return err
		}
		if row == nil && !long {
			r.report()
			return r.end()
		}
		r.out.Read++
		if err := r.add(row, long); err != nil {
			return err
		}
		late := false
		if r.s.in.reads != seen { // about once for each buffer, since the clock is not free
			seen = r.s.in.reads
			r.report()
			late = r.req.MaxTime > 0 && time.Since(started) >= r.req.MaxTime
		}
		full := r.req.Limit > 0 && r.out.Read == r.req.Limit || r.req.MaxRows > 0 && r.passed == r.req.MaxRows
		if !full && !late && (r.req.MaxBytes == 0 || r.out.Bytes < r.req.MaxBytes) {
			continue
		}
		r.report()
		if err := r.end(); err != nil {
			return err
		}
		r.out.UpTo = r.out.Last
		return r.stop()
	}
}

// report adds what was read to the rows of the call.
func (r *reader) report() {
	r.rows.Add(r.out.Read - r.told)
	r.told = r.out.Read
}

// add puts one row into the digest it belongs to.
func (r *reader) add(row []byte, long bool) error {
	var h digest.Hash
	if long {
		if r.hasher == nil {
			r.hasher = digest.NewHasher(r.req.Seed)
		}
		if err := r.parser.parsePieces(&r.s.in, func(piece []byte) { _, _ = r.hasher.Write(piece) }); err != nil {
			return err
		}
		h = r.hasher.Sum()
		r.out.Bytes += int64(r.s.in.size)
	} else {
		r.out.Bytes += int64(len(row))
		if r.parser.last >= 0 {
			if err := r.parser.parse(row, r.parser.last); err != nil {
				return err
			}
		}
	}
	if r.ends != nil {
		if r.last = row; long {
			r.keep()
		}
	}
	if r.filter != nil {
		pass, err := r.filter.pass(r.parser.columns, r.parser.values)
		if err != nil || !pass {
			return err
		}
	}
	r.passed++
	if !long {
		h = digest.Row(r.req.Seed, row)
	}
	bucket := 0
	if r.req.Buckets > 0 {
		bucket = r.bucket.number(r.parser.values, h)
	}
	r.out.Sums[bucket].Add(h)
	return nil
}

// note keeps the key of the last row, of which the memory is about to be used again. It is not done for every row since
// only the last of all counts.
func (r *reader) note() {
	if r.last == nil {
		return
	}
	if r.err = r.parser.parse(r.last, slices.Max(r.key)); r.err == nil {
		r.keep()
	}
	r.last = nil
}

func (r *reader) keep() {
	r.kept = r.kept[:0]
	for n, i := range r.key {
		if r.parser.values[i] == nil {
			r.ends[n] = -1
			continue
		}
		r.kept = append(r.kept, r.parser.values[i]...)
		r.ends[n] = len(r.kept)
	}
}

// end tells the key of the last row of a walk.
func (r *reader) end() error {
	if !r.req.walks() || r.out.Read == 0 {
		return nil
	}
	if r.note(); r.err != nil {
		return r.err
	}
	r.out.Last = make(pkrange.Bound, 0, len(r.key))
	start := 0
	for n, i := range r.key {
		var raw []byte
		if r.ends[n] >= 0 {
			raw, start = r.kept[start:r.ends[n]:r.ends[n]], r.ends[n]
		}
		v, err := r.parser.columns[i].keyValue(raw)
		if err != nil {
			return err
		}
		r.out.Last = append(r.out.Last, v)
	}
	return nil
}

// stop ends the statement after the last row that is wanted.
func (r *reader) stop() error {
	left := r.req.Limit - r.out.Read
	if r.req.Limit > 0 && left*(r.out.Bytes/r.out.Read) <= drainBytes {
		n := int64(0)
		for {
			row, long, err := r.s.next()
			if err != nil {
				return err
			}
			if row == nil && !long {
				return nil
			}
			if n++; n > left {
				return fmt.Errorf("%w: more rows than asked for", errProtocol)
			}
			if long {
				if err := r.s.in.skip(); err != nil {
					return err
				}
			}
		}
	}
	return vterrors.Wrap(r.s.stopQuery(), "end a read early")
}
