// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package sidecar

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"vitess.io/vitess/go/mysql/sqlerror"
	"vitess.io/vitess/go/sqltypes"
	"vitess.io/vitess/go/vt/dbconfigs"
)

// Conn is the part of *mysql.Conn that the store needs. Close may be called while ExecuteFetch runs,
// and ends it.
type Conn interface {
	ExecuteFetch(query string, maxrows int, wantfields bool) (*sqltypes.Result, error)
	Close()
}

// ConnectFunc opens a connection.
type ConnectFunc func(ctx context.Context) (Conn, error)

// DB reads and writes the sidecar database on behalf of one tablet's database. It is safe for
// concurrent use. Every operation has a connection of its own: on a mysqld that was restarted none
// is stale, and none is held while nothing is to be done.
type DB struct {
	connect    ConnectFunc
	connectDBA ConnectFunc
	dbName     string
}

var (
	_ TableStore = (*DB)(nil)
	_ FenceStore = (*DB)(nil)
	_ VDiffStore = (*DB)(nil)
)

// New returns a store for the tablet whose database is dbName. connect opens connections of a user
// that may read and write the sidecar database, connectDBA those of one that may run ANALYZE TABLE.
func New(connect, connectDBA ConnectFunc, dbName string) *DB {
	return &DB{connect: connect, connectDBA: connectDBA, dbName: dbName}
}

// NewFromConfigs returns the store of a tablet. It uses the same users as the stock engine does.
func NewFromConfigs(cfgs *dbconfigs.DBConfigs) *DB {
	connector := func(c dbconfigs.Connector) ConnectFunc {
		return func(ctx context.Context) (Conn, error) {
			conn, err := c.Connect(ctx)
			if err != nil {
				return nil, err // not conn: a nil *mysql.Conn would not be a nil Conn
			}
			return conn, nil
		}
	}
	return New(connector(cfgs.FilteredWithDB()), connector(cfgs.DbaWithDB()), cfgs.DBName)
}

// maxTries is how often an operation is tried that MySQL has rolled back in favour of another one.
const maxTries = 5

// maxErrorText bounds the message of a MySQL error: for some errors it quotes data.
const maxErrorText = 200

// work is a connection in use.
type work struct {
	conn Conn
}

// exec runs one statement. See bind for the placeholders.
func (w *work) exec(statement string, values ...any) (*sqltypes.Result, error) {
	query, err := bind(statement, values...)
	if err != nil {
		return nil, err
	}
	return w.conn.ExecuteFetch(query, -1, true)
}

// do runs f on a connection. what says what is being done, for the error.
func (db *DB) do(ctx context.Context, what string, f func(*work) error) error {
	return doOn(ctx, db.connect, what, f)
}

// tx runs f in a transaction. f may be run several times.
func (db *DB) tx(ctx context.Context, what string, f func(*work) error) error {
	return doOn(ctx, db.connect, what, func(w *work) error {
		if _, err := w.exec("begin"); err != nil {
			return err
		}
		if err := f(w); err != nil {
			// The connection is closed next, which rolls back too; this is only sooner.
			_, _ = w.exec("rollback")
			return err
		}
		_, err := w.exec("commit")
		return err
	})
}

func doOn(ctx context.Context, connect ConnectFunc, what string, f func(*work) error) error {
	for try := 1; ; try++ {
		err := once(ctx, connect, f)
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			// What the interrupted statement says of it is of no interest.
			return fmt.Errorf("%s: %w", what, ctx.Err())
		}
		if try == maxTries || !rolledBack(err) {
			return fmt.Errorf("%s: %w", what, withoutData(err))
		}
		pause := time.NewTimer(time.Duration(try)*20*time.Millisecond + rand.N(20*time.Millisecond))
		select {
		case <-ctx.Done():
		case <-pause.C:
		}
		pause.Stop()
	}
}

func once(ctx context.Context, connect ConnectFunc, f func(*work) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	conn, err := connect(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, conn.Close)
	defer stop()
	return f(&work{conn: conn})
}

// rolledBack says whether MySQL gave up the statement for the sake of another transaction.
func rolledBack(err error) bool {
	var se *sqlerror.SQLError
	return errors.As(err, &se) && (se.Num == sqlerror.ERLockDeadlock || se.Num == sqlerror.ERLockWaitTimeout)
}

// withoutData returns err without the statement that caused it and with a short message. Errors that
// are not MySQL's come from the network or from this package and have neither.
func withoutData(err error) error {
	var se *sqlerror.SQLError
	if !errors.As(err, &se) {
		return err
	}
	return &sqlerror.SQLError{Num: se.Num, State: se.State, Message: cut(se.Message, maxErrorText)}
}

// MaxStatement returns how many bytes a statement may have (max_allowed_packet). A report takes up to
// twice its size in one, for backslashes and apostrophes in it are escaped.
func (db *DB) MaxStatement(ctx context.Context) (int, error) {
	var limit int64
	err := db.do(ctx, "read max_allowed_packet", func(w *work) error {
		qr, err := w.exec("select @@max_allowed_packet as max_allowed_packet")
		if err != nil {
			return err
		}
		row := qr.Named().Row()
		if row == nil {
			return errors.New("no row")
		}
		limit, err = row.ToInt64("max_allowed_packet")
		return err
	})
	return int(limit), err
}
