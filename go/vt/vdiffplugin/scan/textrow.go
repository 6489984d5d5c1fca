// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package scan

import (
	"fmt"

	querypb "vitess.io/vitess/go/vt/proto/query"
)

// batchBytes is about how many bytes of values a batch of rows has.
const batchBytes = 512 << 10

// textRows collects rows of the text protocol. It uses its memory again and again.
type textRows struct {
	columns int
	values  []byte
	lengths []int64
	row     [][]byte // the values of the row added last; nil for NULL; good until the next one
	rows    []*querypb.Row
	ends    []int // of each row, in values
}

func newTextRows(columns int) *textRows {
	return &textRows{columns: columns, row: make([][]byte, columns)}
}

// add adds a row that is in memory.
func (t *textRows) add(row []byte) error {
	for i := range t.columns {
		if len(row) > 0 && row[0] == nullText {
			t.lengths, t.row[i], row = append(t.lengths, -1), nil, row[1:]
			continue
		}
		value, rest, ok := lenEncBytes(row)
		if !ok {
			return fmt.Errorf("%w: a row ends within a value", errProtocol)
		}
		t.values, t.lengths, t.row[i], row = append(t.values, value...), append(t.lengths, int64(len(value))), value, rest
	}
	if len(row) > 0 {
		return fmt.Errorf("%w: a row has bytes behind its last value", errProtocol)
	}
	t.ends = append(t.ends, len(t.values))
	return nil
}

// addPieces adds a long row that has begun.
func (t *textRows) addPieces(from *packets) error {
	r := &pieces{from: from, sink: func([]byte) {}}
	start := len(t.values)
	for range t.columns {
		first, err := r.take(1)
		if err != nil {
			return err
		}
		if first[0] == nullText {
			t.lengths = append(t.lengths, -1)
			continue
		}
		n, err := r.lengthFrom(first[0])
		if err != nil {
			return err
		}
		if t.values, err = r.pass(t.values, n, true); err != nil {
			return err
		}
		t.lengths = append(t.lengths, int64(n))
	}
	if err := r.finish(); err != nil {
		return err
	}
	at := start
	for i, n := range t.lengths[len(t.lengths)-t.columns:] {
		if t.row[i] = nil; n >= 0 {
			t.row[i], at = t.values[at:at+int(n):at+int(n)], at+int(n)
		}
	}
	t.ends = append(t.ends, len(t.values))
	return nil
}

// drop takes the row added last away again.
func (t *textRows) drop() {
	t.ends = t.ends[:len(t.ends)-1]
	t.lengths = t.lengths[:len(t.lengths)-t.columns]
	start := 0
	if n := len(t.ends); n > 0 {
		start = t.ends[n-1]
	}
	t.values = t.values[:start]
}

// take returns the rows and begins anew. They are valid until the next row is added.
func (t *textRows) take() []*querypb.Row {
	for len(t.rows) < len(t.ends) {
		t.rows = append(t.rows, &querypb.Row{})
	}
	start := 0
	for i, end := range t.ends {
		t.rows[i].Values = t.values[start:end:end]
		t.rows[i].Lengths = t.lengths[i*t.columns : (i+1)*t.columns : (i+1)*t.columns]
		start = end
	}
	rows := t.rows[:len(t.ends)]
	t.ends, t.lengths = t.ends[:0], t.lengths[:0]
	if t.values = t.values[:0]; cap(t.values) > 16*batchBytes { // one huge row
		t.values = nil
	}
	return rows
}
