// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package scan

import (
	"bytes"
	"io"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"vitess.io/vitess/go/mysql/sqlerror"
)

// all reads payloads until the stream ends, in pieces of most bytes where they are long.
func all(t *testing.T, p *packets, most int) (payloads [][]byte) {
	t.Helper()
	for {
		payload, long, err := p.begin()
		if err == io.ErrUnexpectedEOF && p.pos == p.end {
			return payloads
		}
		require.NoError(t, err)
		got := append([]byte{}, payload...)
		for long {
			piece, err := p.chunk(most)
			require.NoError(t, err)
			if piece == nil {
				break
			}
			got = append(got, piece...)
		}
		require.Equal(t, len(got), p.size)
		payloads = append(payloads, got)
	}
}

// Tests that payloads are read right whatever the network makes of them: cut at every byte, a byte at a time, and with
// buffers that they do not fit into.
func TestPacketsCut(t *testing.T) {
	want := [][]byte{[]byte("a"), {}, bytes.Repeat([]byte("long"), 20), []byte("bcd"), bytes.Repeat([]byte("x"), 64), []byte("end")}
	a := newAnswer()
	for _, payload := range want {
		a.packet(payload)
	}
	stream := a.Bytes()
	f := func(r io.Reader, size, most int) {
		t.Helper()
		p := &packets{r: r, buf: make([]byte, size), sequence: 1}
		require.Equal(t, want, all(t, p, most))
	}
	for _, size := range []int{8, 63, 64, 65, 100, 4096} {
		for cut := range stream {
			f(io.MultiReader(bytes.NewReader(stream[:cut]), bytes.NewReader(stream[cut:])), size, 7)
		}
		for n := 1; n < 20; n++ {
			f(&pieceReader{bytes.NewReader(stream), n}, size, n)
		}
	}
}

// Tests payloads around 16 MiB, where the wire splits them, written by the commands' writer and read back.
func TestPacketsSplit(t *testing.T) {
	for _, n := range []int{maxPacket - 1, maxPacket, maxPacket + 1, 2 * maxPacket} {
		command := make([]byte, packetHeader+n)
		for i := range n {
			command[packetHeader+i] = byte(i % 251)
		}
		want := bytes.Clone(command[packetHeader:])
		var wire bytes.Buffer
		require.NoError(t, writeCommand(&wire, command))
		assert.Equal(t, n+packetHeader*(1+n/maxPacket), wire.Len())
		p := &packets{r: &wire, buf: make([]byte, readBuffer)}
		got := all(t, p, 100_000)
		require.Len(t, got, 1)
		require.True(t, bytes.Equal(want, got[0]), "%d bytes", n)
	}
}

// Tests what is no well-formed answer, and errors of the server.
func TestPacketsBroken(t *testing.T) {
	f := func(want string, stream []byte) error {
		t.Helper()
		p := &packets{r: bytes.NewReader(stream), buf: make([]byte, 64), sequence: 1}
		_, err := p.short()
		require.ErrorContains(t, err, want)
		return err
	}
	f("unexpected EOF", nil)
	f("unexpected EOF", []byte{3, 0, 0})
	f("unexpected EOF", []byte{3, 0, 0, 1, 'a'})
	assert.ErrorIs(t, f("number 2 where 1 is due", []byte{1, 0, 0, 2, 'a'}), errProtocol)
	f("it is empty", newAnswer().packet(nil).Bytes())
	f("too long", newAnswer().packet(make([]byte, 100)).Bytes())
	f("without a number", newAnswer().packet([]byte{errPacket}).Bytes())
	err := f("no such table", newAnswer().fail(1146, "no such table").Bytes())
	var sqlErr *sqlerror.SQLError
	require.ErrorAs(t, err, &sqlErr)
	assert.Equal(t, sqlerror.ERNoSuchTable, sqlErr.Number())
	assert.Equal(t, "HY000", sqlErr.SQLState())
	p := &packets{r: bytes.NewReader(newAnswer().fail(1, string(make([]byte, 2000))).Bytes()), buf: make([]byte, 4096), sequence: 1}
	_, err = p.short()
	assert.Less(t, len(err.Error()), 700, "the text of an error is bounded")
}

// Tests length-encoded integers of every length, written and read.
func TestLenEnc(t *testing.T) {
	for _, v := range []uint64{0, 250, 251, 252, 65535, 65536, 1<<24 - 1, 1 << 24, 1<<64 - 1} {
		b := appendLenEnc(nil, v)
		got, n := lenEnc(b)
		assert.Equal(t, v, got)
		assert.Equal(t, len(b), n)
		assert.Equal(t, len(b), lenEncSize(b[0]))
		for cut := range b {
			_, n := lenEnc(b[:cut])
			assert.Zero(t, n)
		}
	}
	_, n := lenEnc([]byte{nullText})
	assert.Zero(t, n)
	_, n = lenEnc([]byte{errPacket, 1, 1, 1, 1, 1, 1, 1, 1})
	assert.Zero(t, n)
}

// Fuzzes the reading of the answer to a statement, in both protocols: garbage never panics, and no length in it makes the
// reader take memory that the stream does not fill.
func FuzzAnswer(f *testing.F) {
	columns := []column{intColumn("id"), textColumn("a"), define("d", 12, 0, binaryCollation)}
	seed := newAnswer().packet([]byte{3}).definitions(columns, false)
	seed.packet(binaryRow(columns, long(1), []byte("abc"), []byte{0xe4, 7, 1, 2}))
	seed.packet(binaryRow(columns, long(2), nil, []byte{})).end()
	f.Add(seed.Bytes(), true, false, 64)
	f.Add(newAnswer().packet([]byte{3}).definitions(columns, true).packet([]byte("\x011\xfb\x012")).end().Bytes(), false, true, 64)
	f.Add(newAnswer().fail(1064, "x").Bytes(), true, false, 1024)
	f.Fuzz(func(t *testing.T, stream []byte, binary, eof bool, size int) {
		s := fakeSession(bytes.NewReader(stream), 16+(size&0xfff))
		s.eof = eof
		columns, err := s.resultColumns()
		if err != nil {
			return
		}
		parser := rowParser{columns: columns}
		for i := range columns {
			parser.want(true, i)
		}
		rows := newTextRows(len(columns))
		var text []byte
		for {
			row, long, err := s.next()
			if err != nil || row == nil && !long {
				return
			}
			switch {
			case binary && long:
				err = parser.parsePieces(&s.in, func([]byte) {})
			case binary:
				err = parser.parse(row, parser.last)
			case long:
				err = rows.addPieces(&s.in)
			default:
				err = rows.add(row)
			}
			if err != nil {
				return
			}
			for i := range columns {
				if binary && parser.values[i] != nil {
					text, _ = columns[i].appendText(text[:0], parser.values[i])
					_, _ = columns[i].keyValue(parser.values[i])
				}
			}
			rows.take()
		}
	})
}
