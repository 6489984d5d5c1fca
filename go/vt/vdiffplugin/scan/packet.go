// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package scan

import (
	"errors"
	"fmt"
	"io"

	"vitess.io/vitess/go/mysql/sqlerror"
)

const (
	packetHeader = 4
	// maxPacket is the longest payload of one packet on the wire. A payload of this length goes on in the
	// next packet, which may be empty.
	maxPacket = 1<<24 - 1
	// readBuffer is the memory that a reader takes. A row that does not fit into it is read in pieces.
	readBuffer = 1 << 20
)

// errProtocol is in the chain of every error that says that the server sent what it should not send.
var errProtocol = errors.New("malformed packet")

// packets reads the payloads of MySQL's packets from a connection. The bytes of a payload that fits into the
// buffer are not copied; of one that does not only a piece is in memory at a time.
type packets struct {
	r        io.Reader
	buf      []byte
	pos, end int // buf[pos:end] was read from r and not yet handed out
	sequence uint8
	left     int  // bytes of the packet on the wire that were not handed out yet
	more     bool // this packet is a full one: the payload goes on in the next
	size     int  // bytes of payload that the packets of the last begin had so far
	reads    int  // how often r was read
	// moving, when set, is called before payloads that were handed out lose their memory.
	moving func()
}

// reset makes p read another connection. It keeps the buffer.
func (p *packets) reset(r io.Reader) {
	if p.buf == nil {
		p.buf = make([]byte, readBuffer)
	}
	*p = packets{r: r, buf: p.buf}
}

// fill makes at least n bytes available, n being at most the size of the buffer.
func (p *packets) fill(n int) error {
	if p.end-p.pos >= n {
		return nil
	}
	if p.moving != nil {
		p.moving()
	}
	if p.pos == p.end || len(p.buf)-p.pos < n {
		p.end = copy(p.buf, p.buf[p.pos:p.end])
		p.pos = 0
	}
	for p.end-p.pos < n {
		m, err := p.r.Read(p.buf[p.end:])
		p.end += m
		p.reads++
		if p.end-p.pos >= n {
			return nil
		}
		if err != nil {
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return err
		}
	}
	return nil
}

func (p *packets) header() error {
	if p.pos == p.end {
		p.pos, p.end = 0, 0
	}
	if err := p.fill(packetHeader); err != nil {
		return err
	}
	h := p.buf[p.pos:]
	p.left = int(h[0]) | int(h[1])<<8 | int(h[2])<<16
	sequence := h[3]
	p.pos += packetHeader
	p.more = p.left == maxPacket
	if sequence != p.sequence {
		return fmt.Errorf("%w: number %d where %d is due", errProtocol, sequence, p.sequence)
	}
	p.sequence++
	p.size += p.left
	return nil
}

// begin goes on to the next payload, of which the last must have been read to its end. It returns the payload, which
// is valid until the next call, or long when it does not fit into the buffer: then chunk returns it in pieces.
func (p *packets) begin() (payload []byte, long bool, err error) {
	p.size = 0
	if err := p.header(); err != nil {
		return nil, false, err
	}
	if p.more || p.left > len(p.buf) {
		return nil, true, nil
	}
	if err := p.fill(p.left); err != nil {
		return nil, false, err
	}
	payload = p.buf[p.pos : p.pos+p.left : p.pos+p.left]
	p.pos += p.left
	p.left = 0
	return payload, false, nil
}

// chunk returns the next bytes of a long payload, at least one and at most most, or nil at its end. They are valid until
// the next call.
func (p *packets) chunk(most int) ([]byte, error) {
	for p.left == 0 {
		if !p.more {
			return nil, nil
		}
		if err := p.header(); err != nil {
			return nil, err
		}
	}
	if p.pos == p.end {
		p.pos, p.end = 0, 0
		if err := p.fill(1); err != nil {
			return nil, err
		}
	}
	n := min(most, p.left, p.end-p.pos)
	piece := p.buf[p.pos : p.pos+n : p.pos+n]
	p.pos += n
	p.left -= n
	return piece, nil
}

// skip reads a long payload to its end.
func (p *packets) skip() error {
	for {
		piece, err := p.chunk(len(p.buf))
		if err != nil || piece == nil {
			return err
		}
	}
}

// short returns the next payload, which must fit into the buffer. An ERR packet is returned as the error that it tells.
func (p *packets) short() ([]byte, error) {
	payload, long, err := p.begin()
	switch {
	case err != nil:
		return nil, err
	case long:
		return nil, fmt.Errorf("%w: it is too long for what it should be", errProtocol)
	case len(payload) == 0:
		return nil, fmt.Errorf("%w: it is empty", errProtocol)
	case payload[0] == errPacket:
		return nil, serverError(payload)
	}
	return payload, nil
}

// The first bytes of packets that are not rows.
const (
	okPacket  = 0x00
	endPacket = 0xfe // of an EOF packet, or of the OK packet that has taken its place
	errPacket = 0xff
	nullText  = 0xfb
)

// serverError returns what an ERR packet tells. Its text is bounded: it ends in logs and records.
func serverError(payload []byte) error {
	if len(payload) < 3 {
		return fmt.Errorf("%w: an error without a number", errProtocol)
	}
	number := sqlerror.ErrorCode(uint16(payload[1]) | uint16(payload[2])<<8)
	state, text := "", payload[3:]
	if len(text) >= 6 && text[0] == '#' {
		state, text = string(text[1:6]), text[6:]
	}
	return sqlerror.NewSQLError(number, state, string(text[:min(len(text), 512)]))
}

// writeCommand sends a command: payload follows packetHeader bytes that are free for the header. A payload of 16 MiB
// and more takes several packets.
func writeCommand(w io.Writer, command []byte) error {
	sequence := uint8(0)
	for payload := command[packetHeader:]; ; {
		n := min(len(payload), maxPacket)
		head := command[len(command)-len(payload)-packetHeader:]
		// The header overwrites bytes that have been sent already.
		head[0], head[1], head[2], head[3] = byte(n), byte(n>>8), byte(n>>16), sequence
		if _, err := w.Write(head[:packetHeader+n]); err != nil {
			return err
		}
		payload = payload[n:]
		if n < maxPacket {
			return nil
		}
		sequence++
	}
}

// lenEnc reads a length-encoded integer. n is the number of bytes that it took, 0 when it is not there whole.
func lenEnc(b []byte) (value uint64, n int) {
	if len(b) == 0 {
		return 0, 0
	}
	switch first := b[0]; {
	case first < nullText:
		return uint64(first), 1
	case first == 0xfc && len(b) >= 3:
		return uint64(b[1]) | uint64(b[2])<<8, 3
	case first == 0xfd && len(b) >= 4:
		return uint64(b[1]) | uint64(b[2])<<8 | uint64(b[3])<<16, 4
	case first == 0xfe && len(b) >= 9:
		return uint64(b[1]) | uint64(b[2])<<8 | uint64(b[3])<<16 | uint64(b[4])<<24 |
			uint64(b[5])<<32 | uint64(b[6])<<40 | uint64(b[7])<<48 | uint64(b[8])<<56, 9
	}
	return 0, 0
}

// lenEncSize is how many bytes a length-encoded integer takes that begins with this byte, 0 for none.
func lenEncSize(first byte) int {
	switch {
	case first < nullText:
		return 1
	case first == 0xfc:
		return 3
	case first == 0xfd:
		return 4
	case first == 0xfe:
		return 9
	}
	return 0
}

// lenEncBytes reads a length-encoded string and returns what follows it. ok is false when it is not there whole.
func lenEncBytes(b []byte) (value, rest []byte, ok bool) {
	length, n := lenEnc(b)
	if n == 0 || length > uint64(len(b)-n) {
		return nil, nil, false
	}
	end := n + int(length)
	return b[n:end:end], b[end:], true
}

func appendLenEnc(dst []byte, value uint64) []byte {
	switch {
	case value < nullText:
		return append(dst, byte(value))
	case value < 1<<16:
		return append(dst, 0xfc, byte(value), byte(value>>8))
	case value < 1<<24:
		return append(dst, 0xfd, byte(value), byte(value>>8), byte(value>>16))
	}
	return append(dst, 0xfe, byte(value), byte(value>>8), byte(value>>16), byte(value>>24),
		byte(value>>32), byte(value>>40), byte(value>>48), byte(value>>56))
}
