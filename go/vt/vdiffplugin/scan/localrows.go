// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package scan

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"vitess.io/vitess/go/sqlescape"
	"vitess.io/vitess/go/vt/vterrors"

	querypb "vitess.io/vitess/go/vt/proto/query"
	vtrpcpb "vitess.io/vitess/go/vt/proto/vtrpc"

	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/pkrange"
)

var _ RowReader = (*Local)(nil)

// defaultLockWait bounds the wait for locks where the call does not.
const defaultLockWait = 30 * time.Second

// Rows is RowReader. With Lock the tables are locked for the moment in which the read view opens. When that takes longer than
// LockWait its error has code DEADLINE_EXCEEDED, and mysqld is told to give up. A read without ranges is of the whole table.
func (l *Local) Rows(ctx context.Context, call *RowsCall, start func(*RowsStart) error, send func(*RowsBatch) error, progress Progress) error {
	tables, err := call.compile()
	if err != nil {
		return err
	}
	return l.run(ctx, "read of rows", func(s *session) error {
		var rows atomic.Int64
		defer report(&rows, progress)()
		opened, err := l.openView(ctx, s, call)
		if err != nil {
			return err
		}
		if err := start(opened); err != nil {
			return err
		}
		for i, t := range tables {
			read := func() error { return t.rows(s, i, call.Reads[i].Ranges, send, &rows) }
			if b := call.Reads[i].Buckets; b != nil {
				read = func() error { return t.bucketRows(s, i, b, send, &rows) }
			}
			if err := read(); err != nil {
				return vterrors.Wrapf(err, "table %s", t.Name)
			}
		}
		return s.endSnapshot()
	})
}

// Check says whether a call is one that can be answered: see Table.Check.
func (c *RowsCall) Check() error {
	_, err := c.compile()
	return err
}

func (c *RowsCall) compile() ([]*compiled, error) {
	if len(c.Reads) > maxTables || len(c.Streams) > maxStreams {
		return nil, invalid("%d tables and %d streams", len(c.Reads), len(c.Streams))
	}
	tables, known, ranges := make([]*compiled, len(c.Reads)), compiler{}, 0
	for i, read := range c.Reads {
		var err error
		if tables[i], err = known.compile(read.Table); err != nil {
			return nil, err
		}
		if ranges += len(read.Ranges); ranges > maxRanges {
			return nil, invalid("more than %d ranges", maxRanges)
		}
		if b := read.Buckets; b != nil {
			if len(read.Ranges) > 0 {
				return nil, invalid("table %s: a read of ranges and of buckets", read.Table.Name)
			}
			if err := b.check(len(read.Table.Columns)); err != nil {
				return nil, vterrors.Wrapf(err, "table %s", read.Table.Name)
			}
		}
		for _, r := range read.Ranges {
			if err := checkRange(read.Table, r); err != nil {
				return nil, err
			}
		}
	}
	return tables, nil
}

// openView opens the read view of a call on s.
func (l *Local) openView(ctx context.Context, s *session, call *RowsCall) (*RowsStart, error) {
	opened := &RowsStart{}
	var err error
	if call.Lock && len(call.Reads) > 0 {
		opened.Position, err = l.openLocked(ctx, s, call)
	} else if opened.Position, _, err = s.executed(); err == nil { // before the view: the view has all of it
		err = s.startSnapshot()
	}
	if err != nil {
		return nil, err
	}
	if len(call.Streams) > 0 {
		if opened.Positions, err = s.positions(l.pool.connector().DBName(), call.Streams); err != nil {
			return nil, err
		}
	}
	return opened, nil
}

// openLocked opens the read view while the call's tables are locked. A writer holds its own lock on a table until its GTID
// is in the executed set, so that the position read under the lock is that of the view for these tables.
func (l *Local) openLocked(ctx context.Context, s *session, call *RowsCall) (position string, err error) {
	wait := call.LockWait
	if wait <= 0 {
		wait = defaultLockWait
	}
	lockCtx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	defer func() {
		if err != nil && ctx.Err() == nil && lockCtx.Err() != nil {
			err = vterrors.Errorf(vtrpcpb.Code_DEADLINE_EXCEEDED, "no locks on the tables within %v: statements or transactions that are older hold them", wait)
		}
	}()
	locker, err := l.pool.connect(lockCtx)
	if err != nil {
		return "", err
	}
	// Closing the connection gives the locks back, whatever happens.
	defer locker.conn.Close()
	done := locker.guard(lockCtx)
	defer done()
	if err := locker.exec(fmt.Sprintf("set session lock_wait_timeout = %d", int(wait/time.Second)+1)); err != nil {
		return "", vterrors.Wrap(err, "lock tables")
	}
	if err := locker.exec(call.lockSQL()); err != nil {
		return "", vterrors.Wrap(err, "lock tables")
	}
	if position, _, err = locker.executed(); err != nil {
		return "", err
	}
	if err := s.startSnapshot(); err != nil {
		return "", err
	}
	// When the time was up before, the locks may have been lost before the view was open.
	if !done() {
		return "", lockCtx.Err()
	}
	return position, vterrors.Wrap(locker.exec("unlock tables"), "unlock tables")
}

func (c *RowsCall) lockSQL() string {
	var b strings.Builder
	seen := map[string]bool{}
	for _, read := range c.Reads {
		if seen[read.Table.Name] {
			continue
		}
		seen[read.Table.Name] = true
		if b.Len() > 0 {
			b.WriteString(", ")
		}
		sqlescape.WriteEscapeID(&b, read.Table.Name)
		b.WriteString(" read")
	}
	return "lock tables " + b.String()
}

// rows reads the ranges of one table.
func (c *compiled) rows(s *session, read int, ranges []pkrange.Range, send func(*RowsBatch) error, count *atomic.Int64) error {
	if len(ranges) == 0 {
		ranges = []pkrange.Range{{}}
	}
	var fields []*querypb.Field
	for n, r := range ranges {
		sql, err := c.rowsSQL(s, r)
		if err != nil {
			return err
		}
		columns, err := s.query(sql)
		if err != nil {
			return err
		}
		if len(columns) != len(c.columns) {
			return errTableChanged(c.Name)
		}
		batch := &RowsBatch{Read: read, Range: n}
		if fields == nil {
			for i := range columns {
				fields = append(fields, columns[i].field())
			}
			batch.Fields = fields
		}
		if err := c.rangeRows(s, columns, batch, send, count); err != nil {
			return err
		}
	}
	return nil
}

func (c *compiled) rowsSQL(s *session, r pkrange.Range) (string, error) {
	var key []column
	var err error
	if !r.Whole() {
		if key, err = c.keyColumns(s); err != nil {
			return "", err
		}
	}
	condition, _, err := c.condition(s, r, key, literal)
	return c.selectSQL(condition, true, ""), err
}

// rangeRows sends the rows of one statement. batch is the first one, which is sent even if it is empty when it has fields.
func (c *compiled) rangeRows(s *session, columns []column, batch *RowsBatch, send func(*RowsBatch) error, count *atomic.Int64) error {
	filter, err := c.filter(columns)
	if err != nil {
		return err
	}
	rows := newTextRows(len(columns))
	for {
		row, long, err := s.next()
		if err != nil {
			return err
		}
		ended := row == nil && !long
		switch {
		case long:
			err = rows.addPieces(&s.in)
		case !ended:
			err = rows.add(row)
		}
		if err != nil {
			return err
		}
		if !ended {
			count.Add(1)
			if filter != nil {
				pass, err := filter.passText(columns, rows.row)
				if err != nil {
					return err
				}
				if !pass {
					rows.drop()
				}
			}
		}
		if !ended && len(rows.values) < batchBytes && len(rows.ends) < 1<<14 {
			continue
		}
		if len(rows.ends) > 0 || batch.Fields != nil {
			batch.Rows = rows.take()
			if err := send(batch); err != nil {
				return err
			}
			batch = &RowsBatch{Read: batch.Read, Range: batch.Range}
		}
		if ended {
			return nil
		}
	}
}
