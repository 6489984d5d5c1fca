// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package scan

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"vitess.io/vitess/go/mysql/sqlerror"
	"vitess.io/vitess/go/sqltypes"
	"vitess.io/vitess/go/vt/dbconfigs"
	"vitess.io/vitess/go/vt/log"
	"vitess.io/vitess/go/vt/vterrors"

	vtrpcpb "vitess.io/vitess/go/vt/proto/vtrpc"
)

// idleTimeout is how long a connection that nobody uses is kept.
const idleTimeout = 30 * time.Second

// pool has the connections to one mysqld.
type pool struct {
	connector  func() dbconfigs.Connector
	slots      chan struct{}  // one for each connection in use
	background sync.WaitGroup // of what ends sessions; see begin

	mu         sync.Mutex
	idle       []*session // the one used last is the last
	sweeper    *time.Timer
	closed     bool
	small      bool // this server's buffers cannot be enlarged
	collations map[uint16]*collation
}

func newPool(connector func() dbconfigs.Connector, most int) *pool {
	return &pool{connector: connector, slots: make(chan struct{}, most)}
}

// get returns a connection, when one is free. Put it back in any case.
func (p *pool) get(ctx context.Context) (*session, error) {
	select {
	case p.slots <- struct{}{}:
	case <-ctx.Done():
		return nil, vterrors.Wrap(ctx.Err(), "wait for a connection to mysqld")
	}
	s, err := p.open(ctx)
	if err != nil {
		<-p.slots
		return nil, err
	}
	s.buffer = buffers.Get().(*[readBuffer]byte)
	s.in = packets{buf: s.buffer[:]}
	s.in.reset(s.raw)
	return s, nil
}

func (p *pool) open(ctx context.Context) (*session, error) {
	for {
		p.mu.Lock()
		if p.closed {
			p.mu.Unlock()
			return nil, vterrors.New(vtrpcpb.Code_UNAVAILABLE, "connect to mysqld: the tablet shuts down")
		}
		var s *session
		if n := len(p.idle); n > 0 {
			s, p.idle = p.idle[n-1], p.idle[:n-1]
		}
		p.mu.Unlock()
		if s == nil {
			return p.openNew(ctx)
		}
		done := s.guard(ctx)
		err := s.conn.Ping()
		done()
		if err == nil {
			return s, nil
		}
		s.conn.Close() // mysqld has restarted, or closed it
		if ctx.Err() != nil {
			return nil, vterrors.Wrap(ctx.Err(), "connect to mysqld")
		}
	}
}

// openNew makes a connection for long results.
func (p *pool) openNew(ctx context.Context) (*session, error) {
	s, err := p.connect(ctx)
	p.mu.Lock()
	small := p.small
	p.mu.Unlock()
	if err != nil || small {
		return s, err
	}
	done := s.guard(ctx)
	err = s.enlarge()
	if done(); err == nil {
		return s, nil
	}
	s.conn.Close()
	if ctx.Err() != nil {
		return nil, vterrors.Wrap(ctx.Err(), "connect to mysqld")
	}
	if _, told := serverCode(err); told || errors.Is(err, errProtocol) {
		log.Warn(fmt.Sprintf("vdiff: mysqld does not take a long packet, its results are read as it sends them by itself: %v", err))
		p.mu.Lock()
		p.small = true
		p.mu.Unlock()
	}
	return p.connect(ctx) // without: the connection may just have broken
}

// put takes a connection back. One that is not clean, one that an error happened on, is closed.
func (p *pool) put(s *session, clean bool) {
	buffers.Put(s.buffer)
	s.buffer, s.in = nil, packets{}
	p.mu.Lock()
	if clean = clean && !p.closed && !s.conn.IsClosed(); clean {
		s.idleSince = time.Now()
		p.idle = append(p.idle, s)
		if p.sweeper == nil {
			p.sweeper = time.AfterFunc(idleTimeout, p.sweep)
		}
	}
	p.mu.Unlock()
	if !clean {
		s.conn.Close()
	}
	<-p.slots
}

// sweep closes the connections that nobody has used for a while.
func (p *pool) sweep() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sweeper = nil
	keep := p.idle[:0]
	for _, s := range p.idle {
		if time.Since(s.idleSince) >= idleTimeout {
			s.conn.Close()
		} else {
			keep = append(keep, s)
		}
	}
	clear(p.idle[len(keep):])
	p.idle = keep
	if len(keep) > 0 && !p.closed {
		p.sweeper = time.AfterFunc(idleTimeout, p.sweep)
	}
}

// begin says whether close will wait for what begins now, which then tells background when it has ended. Once the pool is closed it
// does not: a WaitGroup must not grow from nothing while somebody waits.
func (p *pool) begin() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.closed {
		p.background.Add(1)
	}
	return !p.closed
}

// close closes the idle connections, and waits for those that are being ended. Connections in use are closed when
// they are put back.
func (p *pool) close() {
	p.mu.Lock()
	p.closed = true
	if p.sweeper != nil {
		p.sweeper.Stop()
	}
	for _, s := range p.idle {
		s.conn.Close()
	}
	p.idle = nil
	p.mu.Unlock()
	p.background.Wait()
}

// collation is what MySQL calls a collation, and its charset.
type collation struct {
	name, charset string
}

// collationOf returns a collation by its number, nil for the binary one.
func (p *pool) collationOf(s *session, id uint16) (*collation, error) {
	if id == binaryCollation {
		return nil, nil
	}
	p.mu.Lock()
	known := p.collations
	p.mu.Unlock()
	if known == nil {
		result, err := s.fetch("select id, collation_name, character_set_name from information_schema.collations")
		if err != nil {
			return nil, vterrors.Wrap(err, "read collations")
		}
		if known, err = collationsOf(result); err != nil {
			return nil, err
		}
		p.mu.Lock()
		p.collations = known
		p.mu.Unlock()
	}
	c := known[id]
	if c == nil {
		return nil, vterrors.Errorf(vtrpcpb.Code_UNIMPLEMENTED, "collation %d is not known", id)
	}
	return c, nil
}

func collationsOf(result *sqltypes.Result) (map[uint16]*collation, error) {
	known := make(map[uint16]*collation, len(result.Rows))
	for _, row := range result.Rows {
		id, err := row[0].ToCastUint64()
		if err != nil || id >= 1<<16 {
			return nil, vterrors.Errorf(vtrpcpb.Code_INTERNAL, "read collations: a number is malformed")
		}
		known[uint16(id)] = &collation{name: row[1].ToString(), charset: row[2].ToString()}
	}
	return known, nil
}

// Numbers of errors that the server tells, those that Vitess has no names for too.
const (
	errNoSuchThread           = 1094
	errColumnAccessDenied     = 1143
	errInterrupted            = 1317
	errTableDefinitionChanged = 1412
	errNeedReprepare          = 1615
	clientErrors              = 2000 // from here on they are the client's own
	clientErrorsEnd           = 3000
)

// serverCode returns the number of an error that the server told. ok is false for errors of the connection.
func serverCode(err error) (number int, ok bool) {
	var sqlErr *sqlerror.SQLError
	if errors.As(rootCause(err), &sqlErr) {
		n := int(sqlErr.Number())
		return n, n < clientErrors || n >= clientErrorsEnd
	}
	return 0, false
}

// rootCause strips what vterrors has wrapped around an error, which hides it from the package errors.
func rootCause(err error) error {
	for {
		wrapped, inner := vterrors.Unwrap(err)
		if !wrapped {
			return err
		}
		err = inner
	}
}
