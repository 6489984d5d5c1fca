// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package scan

import (
	"bytes"
	"slices"
	"sync"

	"vitess.io/vitess/go/sqltypes"

	querypb "vitess.io/vitess/go/vt/proto/query"
)

// Batch is a run of rows in the order in which they arrived. It owns the memory of its rows, which
// are valid until Release.
type Batch struct {
	columns int
	lengths []int32 // columns entries per row; -1 is NULL
	ends    []int   // end of each row in values
	values  []byte
}

var batchPool = sync.Pool{New: func() any { return new(Batch) }}

// maxPooledBytes keeps the pool from holding on to single huge rows. Packets of wide rows, of a few MB,
// are what the pool helps most with: fresh memory of that size is zeroed and faulted in page by page.
const maxPooledBytes = 16 << 20

// NewBatch copies rows, each of the given number of columns.
func NewBatch(columns int, rows []*querypb.Row) *Batch {
	b := batchPool.Get().(*Batch)
	b.columns = columns
	size := 0
	for _, r := range rows {
		size += len(r.Values)
	}
	b.lengths = slices.Grow(b.lengths[:0], columns*len(rows))
	b.ends = slices.Grow(b.ends[:0], len(rows))
	b.values = slices.Grow(b.values[:0], size+size/8) // the next batch is about as large
	for _, r := range rows {
		for _, l := range r.Lengths {
			b.lengths = append(b.lengths, int32(l))
		}
		b.values = append(b.values, r.Values...)
		b.ends = append(b.ends, len(b.values))
	}
	return b
}

// Len returns the number of rows.
func (b *Batch) Len() int { return len(b.ends) }

// Bytes returns the size of all values.
func (b *Batch) Bytes() int { return len(b.values) }

// Row returns row i. It shares the batch's memory: Clone it to keep it longer.
func (b *Batch) Row(i int) Row {
	start := 0
	if i > 0 {
		start = b.ends[i-1]
	}
	return Row{
		Lengths: b.lengths[i*b.columns : (i+1)*b.columns : (i+1)*b.columns],
		Values:  b.values[start:b.ends[i]:b.ends[i]],
	}
}

// Retain drops the rows for which keep returns false. An error of keep leaves the batch with nothing but the use of being released.
func (b *Batch) Retain(keep func(Row) (bool, error)) error {
	start, kept, size := 0, 0, 0
	for i, end := range b.ends {
		lengths, values := b.lengths[i*b.columns:(i+1)*b.columns:(i+1)*b.columns], b.values[start:end:end]
		start = end
		pass, err := keep(Row{Lengths: lengths, Values: values})
		if err != nil {
			return err
		}
		if !pass {
			continue
		}
		copy(b.lengths[kept*b.columns:], lengths)
		size += copy(b.values[size:], values)
		b.ends[kept] = size
		kept++
	}
	b.lengths, b.values, b.ends = b.lengths[:kept*b.columns], b.values[:size], b.ends[:kept]
	return nil
}

// Truncate leaves the first columns of every row.
func (b *Batch) Truncate(columns int) {
	start, size := 0, 0
	for i, end := range b.ends {
		kept := start
		for _, n := range b.lengths[i*b.columns : i*b.columns+columns] {
			kept += int(max(n, 0))
		}
		size += copy(b.values[size:], b.values[start:kept])
		copy(b.lengths[i*columns:(i+1)*columns], b.lengths[i*b.columns:])
		start, b.ends[i] = end, size
	}
	b.lengths, b.values, b.columns = b.lengths[:len(b.ends)*columns], b.values[:size], columns
}

// Release gives the memory back. Neither the batch nor a row of it may be used afterwards.
func (b *Batch) Release() {
	if cap(b.values) <= maxPooledBytes {
		batchPool.Put(b)
	}
}

// Row is one row: the values one after the other, and the length of each, -1 for NULL.
type Row struct {
	Lengths []int32
	Values  []byte
}

// Value returns the value of column i; ok is false for NULL.
func (r Row) Value(i int) (value []byte, ok bool) {
	n := r.Lengths[i]
	if n < 0 {
		return nil, false
	}
	start := int32(0)
	for _, l := range r.Lengths[:i] {
		if l > 0 {
			start += l
		}
	}
	return r.Values[start : start+n : start+n], true
}

// Equal says whether both rows have the same bytes, column by column.
func (r Row) Equal(other Row) bool {
	return bytes.Equal(r.Values, other.Values) && slices.Equal(r.Lengths, other.Lengths)
}

// Clone returns a copy that owns its memory.
func (r Row) Clone() Row {
	return Row{Lengths: slices.Clone(r.Lengths), Values: slices.Clone(r.Values)}
}

// CopyTo overwrites dst with r, reusing dst's memory.
func (r Row) CopyTo(dst *Row) {
	dst.Lengths = append(dst.Lengths[:0], r.Lengths...)
	dst.Values = append(dst.Values[:0], r.Values...)
}

// Size is about the memory that a clone of the row takes, in bytes.
func (r Row) Size() int {
	return len(r.Values) + 4*len(r.Lengths) + 48
}

// SQLValues returns the row as values of the given types, one per column. They own their memory.
func (r Row) SQLValues(types []querypb.Type) []sqltypes.Value {
	values := slices.Clone(r.Values)
	out := make([]sqltypes.Value, len(r.Lengths))
	start := int32(0)
	for i, n := range r.Lengths {
		if n < 0 {
			out[i] = sqltypes.NULL
			continue
		}
		out[i] = sqltypes.MakeTrusted(types[i], values[start:start+n:start+n])
		start += n
	}
	return out
}
