// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package scan

import (
	"context"
	"fmt"
	"net"
	"sync"
	"time"

	"vitess.io/vitess/go/mysql"
	"vitess.io/vitess/go/sqltypes"
	"vitess.io/vitess/go/vt/log"
	"vitess.io/vitess/go/vt/vterrors"
)

// session is one connection to mysqld. It has one user at a time. Vitess's client connects, authenticates and runs
// plain statements; what it cannot do, prepared statements, is spoken over the same connection by statement.go: between two
// statements neither side has anything to send, so that they can take turns.
type session struct {
	pool       *pool
	conn       *mysql.Conn
	raw        net.Conn // what conn speaks over: with TLS, that
	in         packets
	buffer     *[readBuffer]byte
	out        []byte // for commands: begins with room for a header
	eof        bool   // the server marks the end of column definitions
	statements []*statement
	idleSince  time.Time
}

// sessionSettings make rows the same bytes on every server, whatever its defaults are. Results are not converted. Literals
// of a condition are utf8mb4 and, since literals give way to columns, compared in the column's own collation.
var sessionSettings = []string{
	"set names utf8mb4",
	"set session character_set_results = null, time_zone = '+00:00', sql_mode = '', max_execution_time = 0, " +
		"net_read_timeout = 600, net_write_timeout = 600, wait_timeout = 3600, sql_select_limit = default, " +
		"transaction_isolation = 'REPEATABLE-READ', transaction_read_only = on",
}

var buffers = sync.Pool{New: func() any { return new([readBuffer]byte) }}

func (p *pool) connect(ctx context.Context) (*session, error) {
	params, err := p.connector().MysqlParams()
	if err != nil {
		return nil, vterrors.Wrap(err, "connect to mysqld")
	}
	conn, err := mysql.Connect(ctx, params)
	if err != nil {
		return nil, vterrors.Wrap(err, "connect to mysqld")
	}
	s := &session{
		pool: p, conn: conn, raw: conn.GetRawConn(), eof: conn.Capabilities&mysql.CapabilityClientDeprecateEOF == 0,
		out: make([]byte, packetHeader, 1024),
	}
	done := s.guard(ctx)
	defer done()
	for _, sql := range sessionSettings {
		if err := s.exec(sql); err != nil {
			conn.Close()
			return nil, vterrors.Wrap(err, "prepare a connection to mysqld")
		}
	}
	return s, nil
}

const (
	comPing = 0x0e
	// serverBuffer is how many bytes of a result mysqld is made to send at a time, if it takes packets of twice that length.
	serverBuffer = 1 << 20
)

// enlarge makes mysqld send long results in large pieces. It collects rows in a buffer of 16 KB (net_buffer_length, which a
// session cannot set) and sends that when it is full. The buffer grows when a longer packet arrives (net_realloc in MySQL's
// sql-common/net_serv.cc), and stays so until the connection ends (Percona Server can be told to shrink idle ones). A ping may
// carry anything. Fewer and larger writes, and reads here, save more than a third of the CPU time of both sides.
func (s *session) enlarge() error {
	result, err := s.fetch("select @@max_allowed_packet")
	if err != nil {
		return err
	}
	if len(result.Rows) != 1 {
		return errProtocol
	}
	limit, err := result.Rows[0][0].ToCastInt64()
	if err != nil {
		return err
	}
	return s.ping(min(serverBuffer, limit/2))
}

// ping sends a ping of n bytes, at least one.
func (s *session) ping(n int64) error {
	command := make([]byte, packetHeader+n)
	command[packetHeader] = comPing
	if err := writeCommand(s.raw, command); err != nil {
		return err
	}
	reply := packets{r: s.raw, buf: make([]byte, 1<<10), sequence: 1}
	payload, err := reply.short()
	if err == nil && payload[0] != okPacket {
		err = errProtocol
	}
	return err
}

// guard ends what the session is doing when ctx ends: reads and writes fail at once, and mysqld is told, which would notice
// only when it has something to send. It returns a function that must be called when ctx does not matter any more; that
// returns false when the connection is being closed.
func (s *session) guard(ctx context.Context) (done func() bool) {
	stop := context.AfterFunc(ctx, func() {
		if s.pool.begin() {
			defer s.pool.background.Done()
		}
		s.conn.Close()
		if err := s.pool.kill("kill", s.conn.ID()); err != nil {
			log.Warn(fmt.Sprintf("vdiff: cannot end connection %d to mysqld: %v", s.conn.ID(), err))
		}
	})
	return stop
}

// killTimeout bounds how long another connection tries to end what one is doing.
const killTimeout = 10 * time.Second

// kill runs "kill" or "kill query" on a connection of its own. It is no error when there is nothing to end any more.
func (p *pool) kill(command string, id int64) error {
	ctx, cancel := context.WithTimeout(context.Background(), killTimeout)
	defer cancel()
	params, err := p.connector().MysqlParams()
	if err != nil {
		return err
	}
	conn, err := mysql.Connect(ctx, params)
	if err != nil {
		return err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, conn.Close)()
	_, err = conn.ExecuteFetch(fmt.Sprintf("%s %d", command, id), 0, false)
	if number, _ := serverCode(err); number == errNoSuchThread {
		return nil
	}
	return err
}

// exec runs a statement that has no rows.
func (s *session) exec(sql string) error {
	_, err := s.conn.ExecuteFetch(sql, 0, false)
	return err
}

// fetch runs a statement that has few rows.
func (s *session) fetch(sql string) (*sqltypes.Result, error) {
	return s.conn.ExecuteFetch(sql, 100_000, true)
}

// command sends a command of the protocol. command is built on s.out, see scratch.
func (s *session) command(command []byte) error {
	if cap(command) <= 1<<16 {
		s.out = command[:packetHeader]
	}
	s.in.sequence = 1
	return writeCommand(s.raw, command)
}

// stopQuery ends the statement whose rows are being read, and leaves the connection, and its transaction, as they
// are.
func (s *session) stopQuery() error {
	if err := s.pool.kill("kill query", s.conn.ID()); err != nil {
		return vterrors.Wrap(err, "stop a statement")
	}
	err := s.drain()
	if number, ok := serverCode(err); ok && number == errInterrupted {
		return nil
	}
	if err != nil {
		return vterrors.Wrap(err, "stop a statement")
	}
	// The statement had come to its end. The kill may be left for the next one: give it one.
	if err := s.exec("do 0"); err != nil {
		if number, ok := serverCode(err); !ok || number != errInterrupted {
			return vterrors.Wrap(err, "stop a statement")
		}
	}
	return nil
}
