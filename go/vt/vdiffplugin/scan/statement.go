// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package scan

import (
	"encoding/binary"
	"fmt"

	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/pkrange"
)

// Commands of the protocol.
const (
	comQuery       = 0x03
	comStmtPrepare = 0x16
	comStmtExecute = 0x17
	comStmtClose   = 0x19
)

// maxStatements is how many prepared statements a connection keeps for further ranges.
const maxStatements = 16

// statement is a prepared statement of one connection.
type statement struct {
	sql     string
	id      uint32
	params  int
	columns []column // as they were when it was prepared
}

// prepare returns a prepared statement, the one that is there already if it can.
func (s *session) prepare(sql string) (*statement, error) {
	for i, st := range s.statements {
		if st.sql == sql {
			copy(s.statements[1:i+1], s.statements[:i]) // the ones used last come first
			s.statements[0] = st
			return st, nil
		}
	}
	if len(s.statements) == maxStatements {
		last := s.statements[maxStatements-1]
		s.statements = s.statements[:maxStatements-1]
		if err := s.closeStatement(last); err != nil {
			return nil, err
		}
	}
	if err := s.command(append(s.scratch(comStmtPrepare), sql...)); err != nil {
		return nil, err
	}
	ok, err := s.in.short()
	if err != nil {
		return nil, err
	}
	if len(ok) < 12 || ok[0] != okPacket {
		return nil, fmt.Errorf("%w: the answer to a prepare", errProtocol)
	}
	st := &statement{sql: sql, id: binary.LittleEndian.Uint32(ok[1:]), params: int(binary.LittleEndian.Uint16(ok[7:]))}
	columns := int(binary.LittleEndian.Uint16(ok[5:]))
	if _, err := s.definitions(nil, st.params, true); err != nil {
		return nil, err
	}
	if st.columns, err = s.definitions(nil, columns, false); err != nil {
		return nil, err
	}
	s.statements = append(s.statements, nil)
	copy(s.statements[1:], s.statements)
	s.statements[0] = st
	return st, nil
}

func (s *session) closeStatement(st *statement) error {
	// The server does not answer this command.
	return s.command(binary.LittleEndian.AppendUint32(s.scratch(comStmtClose), st.id))
}

// definitions reads n column definitions, and the EOF packet behind them where the connection has such. Those of
// parameters are read and forgotten.
func (s *session) definitions(dst []column, n int, forget bool) ([]column, error) {
	for range n {
		b, err := s.in.short()
		if err != nil {
			return nil, err
		}
		if forget {
			continue
		}
		c, err := parseColumn(b)
		if err != nil {
			return nil, err
		}
		dst = append(dst, c)
	}
	if n > 0 && s.eof {
		b, err := s.in.short()
		if err != nil {
			return nil, err
		}
		if b[0] != endPacket {
			return nil, fmt.Errorf("%w: more column definitions than announced", errProtocol)
		}
	}
	return dst, nil
}

// execute begins the execution of a prepared statement and returns the columns of its rows, which follow.
func (s *session) execute(st *statement, params []pkrange.Value) ([]column, error) {
	if len(params) != st.params {
		return nil, fmt.Errorf("%d parameters for a statement that has %d", len(params), st.params)
	}
	command, err := appendExecute(s.out[:packetHeader], st.id, params)
	if err != nil {
		return nil, err
	}
	if err := s.command(command); err != nil {
		return nil, err
	}
	return s.resultColumns()
}

// query begins the execution of a statement in the text protocol.
func (s *session) query(sql string) ([]column, error) {
	if err := s.command(append(s.scratch(comQuery), sql...)); err != nil {
		return nil, err
	}
	return s.resultColumns()
}

func (s *session) resultColumns() ([]column, error) {
	b, err := s.in.short()
	if err != nil {
		return nil, err
	}
	count, size := lenEnc(b)
	if size != len(b) || count == 0 || count > 4096 {
		return nil, fmt.Errorf("%w: a statement has no rows", errProtocol)
	}
	return s.definitions(nil, int(count), false)
}

// next goes on to the next row. row is nil at the end of the rows. For a long row the rest is read by the caller.
func (s *session) next() (row []byte, long bool, err error) {
	row, long, err = s.in.begin()
	if err != nil || long {
		return nil, long, err
	}
	if len(row) == 0 {
		return nil, false, fmt.Errorf("%w: it is empty", errProtocol)
	}
	switch {
	case row[0] == errPacket:
		return nil, false, serverError(row)
	case row[0] == endPacket: // a text row that begins with this byte is a long one
		return nil, false, nil
	}
	return row, false, nil
}

// drain reads the rest of the rows.
func (s *session) drain() error {
	for {
		row, long, err := s.next()
		if err != nil {
			return err
		}
		if long {
			if err := s.in.skip(); err != nil {
				return err
			}
		} else if row == nil {
			return nil
		}
	}
}

func (s *session) scratch(command byte) []byte { return append(s.out[:packetHeader], command) }
