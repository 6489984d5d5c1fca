// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package scan

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"vitess.io/vitess/go/mysql/sqlerror"
	"vitess.io/vitess/go/vt/dbconfigs"
	"vitess.io/vitess/go/vt/log"
	"vitess.io/vitess/go/vt/vterrors"

	vtrpcpb "vitess.io/vitess/go/vt/proto/vtrpc"
)

// Local reads the tablet's own mysqld, as the filtered user. Its methods may be called at the same time.
type Local struct {
	pool *pool
}

var _ Digester = (*Local)(nil)

// NewLocal returns a reader of the mysqld of these configs, with at most so many reads at a time: others wait. It
// connects when there is something to read. Close it.
func NewLocal(configs *dbconfigs.DBConfigs, maxReads int) *Local {
	return &Local{pool: newPool(configs.FilteredWithDB, max(1, maxReads))}
}

// Close closes the connections that are not in use, and waits until those that were cancelled are gone from mysqld. Reads
// that run go on to their end; new ones fail with code UNAVAILABLE.
func (l *Local) Close() { l.pool.close() }

// Digest answers a call. See Call for what is read when. Its errors have codes: FAILED_PRECONDITION for streams that are
// not ready (and for tables that are not there), DEADLINE_EXCEEDED for a position that is not executed in time, UNAVAILABLE for
// what may pass, INVALID_ARGUMENT and UNIMPLEMENTED for what cannot be read this way.
func (l *Local) Digest(ctx context.Context, call *Call, progress Progress) (answer *Answer, err error) {
	tables, err := call.compile()
	if err != nil {
		return nil, err
	}
	err = l.run(ctx, "digest", func(s *session) error {
		var rows atomic.Int64
		defer report(&rows, progress)()
		answer, err = call.answer(s, l.pool.connector().DBName(), tables, &rows)
		return err
	})
	if err != nil {
		return nil, err
	}
	return answer, nil
}

// compile checks everything that the call brings.
func (c *Call) compile() ([]*compiled, error) {
	if len(c.Tables) > maxTables || len(c.Streams) > maxStreams {
		return nil, invalid("%d tables and %d streams", len(c.Tables), len(c.Streams))
	}
	tables, known := make([]*compiled, len(c.Tables)), compiler{}
	for i := range c.Tables {
		var err error
		if tables[i], err = known.compile(c.Tables[i].Table); err != nil {
			return nil, err
		}
		if err := c.Tables[i].check(); err != nil {
			return nil, err
		}
	}
	return tables, nil
}

// Check says whether a call is one that can be answered: see Table.Check.
func (c *Call) Check() error {
	_, err := c.compile()
	return err
}

func (c *Call) answer(s *session, db string, tables []*compiled, rows *atomic.Int64) (*Answer, error) {
	a := &Answer{Digests: make([]Digest, len(tables))}
	if c.WaitFor != "" {
		if err := s.waitFor(c.WaitFor, c.WaitTimeout); err != nil {
			return nil, err
		}
	}
	started := time.Now()
	if len(c.Streams) > 0 {
		if err := s.startSnapshot(); err != nil {
			return nil, err
		}
		var err error
		if a.Positions, err = s.positions(db, c.Streams); err != nil {
			return nil, err
		}
	}
	for i, t := range tables {
		statement := time.Now()
		var err error
		if a.Digests[i], err = t.digest(s, &c.Tables[i], rows); err != nil {
			return nil, vterrors.Wrapf(err, "table %s", t.Name)
		}
		a.ReadView = max(a.ReadView, time.Since(statement))
	}
	var err error
	if a.Executed, err = s.visible(); err != nil {
		return nil, err
	}
	if len(c.Streams) > 0 {
		a.ReadView = time.Since(started)
		if err := s.endSnapshot(); err != nil {
			return nil, err
		}
	}
	return a, nil
}

// run lends f a connection. A cancelled context ends what f does on it; a panic becomes an error.
func (l *Local) run(ctx context.Context, what string, f func(s *session) error) (err error) {
	s, err := l.pool.get(ctx)
	if err != nil {
		return coded(ctx, err)
	}
	release := s.guard(ctx)
	defer func() {
		if p := recover(); p != nil {
			log.Error(fmt.Sprintf("vdiff: panic in a %s: %v\n%s", what, p, debug.Stack()))
			err = vterrors.Errorf(vtrpcpb.Code_INTERNAL, "panic in a %s: %s", what, bounded(fmt.Sprint(p)))
		}
		l.pool.put(s, release() && err == nil)
	}()
	return coded(ctx, f(s))
}

// report tells progress twice a second until it is stopped.
func report(rows *atomic.Int64, progress Progress) (stop func()) {
	if progress == nil {
		return func() {}
	}
	ended := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		defer func() {
			if p := recover(); p != nil {
				log.Error(fmt.Sprintf("vdiff: panic while progress was told: %v\n%s", p, debug.Stack()))
			}
		}()
		ticker := time.NewTicker(500 * time.Millisecond)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				progress(rows.Load(), "")
			case <-ended:
				return
			}
		}
	})
	return func() {
		close(ended)
		wg.Wait()
	}
}

// coded gives an error a code, where it has none.
func coded(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if ctx.Err() != nil { // whatever the error says: it is because the connection was closed
		return vterrors.Wrap(ctx.Err(), "read from mysqld")
	}
	if vterrors.Code(err) != vtrpcpb.Code_UNKNOWN {
		return err
	}
	code := vtrpcpb.Code_UNAVAILABLE // the connection broke, or is about to
	if number, ok := serverCode(err); ok {
		switch sqlerror.ErrorCode(number) {
		case sqlerror.ERNoSuchTable, sqlerror.ERBadDb, sqlerror.ERBadFieldError, sqlerror.ERKeyDoesNotExist:
			code = vtrpcpb.Code_FAILED_PRECONDITION
		case sqlerror.ERAccessDeniedError, sqlerror.ERDBAccessDenied, sqlerror.ERTableAccessDenied, errColumnAccessDenied:
			code = vtrpcpb.Code_PERMISSION_DENIED
		case errInterrupted, errTableDefinitionChanged, sqlerror.ERServerShutdown, sqlerror.ERLockWaitTimeout, sqlerror.ERLockDeadlock,
			sqlerror.ERConCount, errNeedReprepare:
		default:
			code = vtrpcpb.Code_INTERNAL
		}
	} else if errors.Is(rootCause(err), errProtocol) {
		code = vtrpcpb.Code_INTERNAL
	}
	return vterrors.New(code, err.Error())
}
