// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package scan

import (
	"fmt"
)

// A row of the binary protocol is a zero byte, a bitmap that tells which values are NULL (its first two bits are not
// used), and the other values one after the other.

// bitmapSize is the number of bytes that precede the values.
func bitmapSize(columns int) int { return 1 + (columns+7+2)/8 }

func isNull(row []byte, column int) bool {
	bit := column + 2
	return row[1+bit/8]&(1<<(bit%8)) != 0
}

// maxWanted is the longest value that is taken out of a row that is read in pieces.
const maxWanted = 1 << 20

// rowParser finds values in rows. It allocates nothing for a row that is in memory as a whole.
type rowParser struct {
	columns []column
	wanted  []bool // which columns are taken out of a row
	last    int    // the last of them that every row needs, -1 for none
	// values are those of the row parsed last, nil for NULL, without length bytes. They share the memory of the row,
	// or that of kept.
	values [][]byte
	kept   []byte
}

// want says that the values of columns are needed, of every row or just now and then.
func (p *rowParser) want(always bool, columns ...int) {
	if p.wanted == nil {
		p.wanted, p.values, p.last = make([]bool, len(p.columns)), make([][]byte, len(p.columns)), -1
	}
	for _, c := range columns {
		p.wanted[c] = true
		if always {
			p.last = max(p.last, c)
		}
	}
}

var empty = []byte{}

// parse takes the wanted values of the columns up to last out of a row.
func (p *rowParser) parse(row []byte, last int) error {
	size := bitmapSize(len(p.columns))
	if len(row) < size || row[0] != okPacket {
		return fmt.Errorf("%w: a row without its bitmap", errProtocol)
	}
	rest := row[size:]
	for i := 0; i <= last; i++ {
		c := &p.columns[i]
		if isNull(row, i) {
			p.values[i] = nil
			continue
		}
		n := width[c.class]
		if n == 0 {
			switch c.class {
			case classString:
				length, size := lenEnc(rest)
				if size == 0 || length > uint64(len(rest)-size) {
					return fmt.Errorf("%w: a row ends within a value", errProtocol)
				}
				rest, n = rest[size:], int(length)
			case classDate, classTime:
				if len(rest) == 0 || int(rest[0]) > len(rest)-1 {
					return fmt.Errorf("%w: a row ends within a value", errProtocol)
				}
				rest, n = rest[1:], int(rest[0])
			}
		}
		if n > len(rest) {
			return fmt.Errorf("%w: a row ends within a value", errProtocol)
		}
		if p.wanted[i] {
			p.values[i] = rest[:n:n]
			if n == 0 {
				p.values[i] = empty
			}
		}
		rest = rest[n:]
	}
	return nil
}

// pieces reads a row that does not fit into memory, and lets each byte of it through sink on its way.
type pieces struct {
	from  *packets
	sink  func([]byte)
	piece []byte // of the last chunk, what was not taken yet
}

// take returns up to most bytes, at least one. It is an error that the row has ended.
func (r *pieces) take(most int) ([]byte, error) {
	if len(r.piece) == 0 {
		var err error
		if r.piece, err = r.from.chunk(readBuffer); err != nil {
			return nil, err
		}
		if r.piece == nil {
			return nil, fmt.Errorf("%w: a row ends within a value", errProtocol)
		}
		r.sink(r.piece)
	}
	n := min(most, len(r.piece))
	b := r.piece[:n]
	r.piece = r.piece[n:]
	return b, nil
}

// pass takes n bytes, and appends them to dst when keep says so.
func (r *pieces) pass(dst []byte, n uint64, keep bool) ([]byte, error) {
	for n > 0 {
		b, err := r.take(int(min(n, readBuffer)))
		if err != nil {
			return dst, err
		}
		if keep {
			dst = append(dst, b...)
		}
		n -= uint64(len(b))
	}
	return dst, nil
}

// parsePieces takes the wanted values out of a long row that p has begun, and reads it to its end. Every byte goes
// through sink. The memory is that of the wanted values.
func (p *rowParser) parsePieces(from *packets, sink func([]byte)) error {
	r := &pieces{from: from, sink: sink}
	var head [1 + (4096+7+2)/8]byte
	size := bitmapSize(len(p.columns))
	if size > len(head) {
		return fmt.Errorf("%w: %d columns", errProtocol, len(p.columns))
	}
	row, err := r.pass(head[:0], uint64(size), true)
	if err != nil {
		return err
	}
	if row[0] != okPacket {
		return fmt.Errorf("%w: a long packet that is no row", errProtocol)
	}
	if p.kept = p.kept[:0]; p.kept == nil {
		p.kept = make([]byte, 0, 64) // a value of no bytes is not NULL
	}
	type span struct{ column, start, end int }
	var spans []span
	for i := range p.columns {
		if isNull(row, i) {
			if p.wanted != nil {
				p.values[i] = nil
			}
			continue
		}
		n := uint64(width[p.columns[i].class])
		switch p.columns[i].class {
		case classString, classDate, classTime:
			if n, err = r.length(p.columns[i].class); err != nil {
				return err
			}
		}
		keep := p.wanted != nil && p.wanted[i]
		if keep && n > maxWanted {
			return fmt.Errorf("column %d has a value of %d bytes, too long for a key", i+1, n)
		}
		start := len(p.kept)
		if p.kept, err = r.pass(p.kept, n, keep); err != nil {
			return err
		}
		if keep {
			spans = append(spans, span{i, start, len(p.kept)})
		}
	}
	for _, s := range spans { // only now does kept stay where it is
		p.values[s.column] = p.kept[s.start:s.end:s.end]
	}
	return r.finish()
}

// finish checks that the row has come to its end.
func (r *pieces) finish() error {
	if len(r.piece) == 0 {
		rest, err := r.from.chunk(1)
		if err != nil {
			return err
		}
		r.piece = rest
	}
	if len(r.piece) > 0 {
		return fmt.Errorf("%w: a row has bytes behind its last value", errProtocol)
	}
	return nil
}

// length reads how long a value is, of which the length follows.
func (r *pieces) length(c class) (uint64, error) {
	b, err := r.take(1)
	if err != nil {
		return 0, err
	}
	if c != classString {
		return uint64(b[0]), nil
	}
	return r.lengthFrom(b[0])
}

// lengthFrom reads the rest of a length-encoded integer.
func (r *pieces) lengthFrom(first byte) (uint64, error) {
	var buf [9]byte
	size := lenEncSize(first)
	if size == 0 {
		return 0, fmt.Errorf("%w: the length of a value", errProtocol)
	}
	number, err := r.pass(append(buf[:0], first), uint64(size-1), true)
	if err != nil {
		return 0, err
	}
	value, _ := lenEnc(number)
	return value, nil
}
