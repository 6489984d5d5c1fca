// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package scan

import (
	"bytes"
	"encoding/binary"
	"io"
	"net"

	"vitess.io/vitess/go/mysql/binlog"
)

// answer is what a server sends: payloads, split into packets.
type answer struct {
	bytes.Buffer
	sequence uint8
}

func newAnswer() *answer { return &answer{sequence: 1} }

// packet appends one payload.
func (a *answer) packet(payload []byte) *answer {
	for {
		n := min(len(payload), maxPacket)
		a.Write([]byte{byte(n), byte(n >> 8), byte(n >> 16), a.sequence})
		a.Write(payload[:n])
		a.sequence++
		if payload = payload[n:]; n < maxPacket {
			return a
		}
	}
}

// definitions appends column definitions, and the EOF packet that old servers send behind them.
func (a *answer) definitions(columns []column, eof bool) *answer {
	for i := range columns {
		a.packet(definition(&columns[i]))
	}
	if eof && len(columns) > 0 {
		a.end()
	}
	return a
}

func (a *answer) end() *answer { return a.packet([]byte{endPacket, 0, 0, 2, 0}) }

func (a *answer) fail(number int, text string) *answer {
	return a.packet(append([]byte{errPacket, byte(number), byte(number >> 8)}, "#HY000"+text...))
}

func definition(c *column) []byte {
	var b []byte
	for _, text := range []string{"def", "db", "t", "t", c.name, c.name} {
		b = append(appendLenEnc(b, uint64(len(text))), text...)
	}
	b = append(b, 12)
	b = binary.LittleEndian.AppendUint16(b, c.collation)
	b = binary.LittleEndian.AppendUint32(b, c.length)
	b = append(b, c.kind)
	b = binary.LittleEndian.AppendUint16(b, c.flags)
	return append(b, c.decimals, 0, 0)
}

// define returns a column as it is after its definition was read.
func define(name string, kind byte, flags uint16, collation uint16) column {
	c, err := parseColumn(definition(&column{name: name, kind: kind, flags: flags, collation: collation, length: 20}))
	if err != nil {
		panic(err)
	}
	return c
}

func intColumn(name string) column  { return define(name, binlog.TypeLongLong, 0, binaryCollation) }
func textColumn(name string) column { return define(name, binlog.TypeVarString, 0, 255) }

// binaryRow encodes a row: values without their length bytes, nil for NULL.
func binaryRow(columns []column, values ...[]byte) []byte {
	row := make([]byte, bitmapSize(len(columns)))
	for i, v := range values {
		if v == nil {
			row[1+(i+2)/8] |= 1 << ((i + 2) % 8)
			continue
		}
		switch columns[i].class {
		case classString:
			row = appendLenEnc(row, uint64(len(v)))
		case classDate, classTime:
			row = append(row, byte(len(v)))
		}
		row = append(row, v...)
	}
	return row
}

func long(v int64) []byte { return binary.LittleEndian.AppendUint64(nil, uint64(v)) }

// pieceReader returns at most n bytes a time.
type pieceReader struct {
	r io.Reader
	n int
}

func (p *pieceReader) Read(b []byte) (int, error) { return p.r.Read(b[:min(len(b), p.n)]) }

// fakeConn answers with what it was made with, and keeps what was written.
type fakeConn struct {
	net.Conn
	io.Reader
	written bytes.Buffer
}

func (c *fakeConn) Read(b []byte) (int, error)  { return c.Reader.Read(b) }
func (c *fakeConn) Write(b []byte) (int, error) { return c.written.Write(b) }

// fakeSession reads from r, with a buffer of size bytes.
func fakeSession(r io.Reader, size int) *session {
	conn := &fakeConn{Reader: r}
	return &session{raw: conn, in: packets{r: conn, buf: make([]byte, size), sequence: 1}, out: make([]byte, packetHeader, 1024)}
}
