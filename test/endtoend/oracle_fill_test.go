// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package endtoend

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"vitess.io/vitess/go/mysql"
	"vitess.io/vitess/go/sqltypes"

	"github.com/vttablet-ext/vttablet-ext/test/endtoend/cluster"
)

// twinDB holds, on a server of the source, copies of targets and tables of one row: what is inserted there tells whether
// the target would take a row.
const twinDB = "twin"

// sessions are the connections of a batch to each server. They take what they can of a value that does not fit.
type sessions map[*cluster.Tablet]*mysql.Conn

func (s sessions) close() {
	for _, conn := range s {
		conn.Close()
	}
}

func (s sessions) exec(ctx context.Context, tablet *cluster.Tablet, sql string) (*sqltypes.Result, error) {
	conn := s[tablet]
	if conn == nil || conn.IsClosed() {
		var err error
		if conn, err = tablet.Conn(ctx); err != nil {
			return nil, err
		}
		s[tablet] = conn
		if _, err := conn.ExecuteFetch("set sql_mode = '', time_zone = '+00:00'", 0, false); err != nil {
			return nil, err
		}
	}
	result, err := conn.ExecuteFetch(sql, 1<<20, true)
	if err != nil {
		return nil, errors.Join(err, ctx.Err())
	}
	return result, nil
}

// execAll runs statements one after the other.
func (s sessions) execAll(ctx context.Context, tablet *cluster.Tablet, sqls ...string) error {
	for _, sql := range sqls {
		if _, err := s.exec(ctx, tablet, sql); err != nil {
			return fmt.Errorf("%.300s: %w", sql, err)
		}
	}
	return nil
}

// written are the columns that a row is inserted with, on one side.
func (t *randomTable) written(target bool) (columns []*randomColumn, names string) {
	var list []string
	for _, c := range t.columns {
		if c.computed != "" && (!target || c.targetComputed) || target && c.dropped {
			continue
		}
		columns = append(columns, c)
		if target {
			list = append(list, quote(c.name))
		} else {
			list = append(list, quote(c.source))
		}
	}
	return columns, "(" + strings.Join(list, ", ") + ")"
}

// newRow makes the values of a row.
func (t *randomTable) newRow(target bool) string {
	columns, _ := t.written(target)
	var values []string
	for _, c := range columns {
		nullable, columnType := c.sourceNullable, c.sourceType
		if target {
			nullable, columnType = c.targetNullable, c.targetType
		}
		value := c.kind.value(t.r, columnType)
		if len(c.values) > 0 && t.r.IntN(5) > 0 {
			value = pick(t.r, c.values)
		}
		if target {
			value = c.printed(value)
		}
		if nullable && t.r.IntN(6) == 0 {
			value = "null"
		}
		values = append(values, value)
	}
	return "(" + strings.Join(values, ", ") + ")"
}

// fill makes the table and its rows on the shards of the source. It draws the same random numbers whatever the server says.
func (t *randomTable) fill(ctx context.Context, s sessions, sources []*cluster.Tablet) error {
	for _, tablet := range sources {
		if err := s.execAll(ctx, tablet, t.create(quote(t.source), false)); err != nil {
			return err
		}
	}
	rows := make([]string, t.rows)
	for i := range rows {
		rows[i] = t.newRow(false)
		if t.sourceKey.how == noKey && i > 0 && t.r.IntN(4) == 0 {
			rows[i] = rows[t.r.IntN(i)]
		}
	}
	_, names := t.written(false)
	if !t.needsTwin() {
		for i, part := range [][]string{rows[:t.early()], rows[t.early():]} {
			for some := range slices.Chunk(part, 100) {
				if err := t.insert(ctx, s, sources[0], i > 0, "insert ignore into "+quote(t.source)+" "+names+" values "+strings.Join(some, ", ")); err != nil {
					return err
				}
			}
		}
		return nil
	}
	return t.fillFitting(ctx, s, sources, rows)
}

// early is how many of the rows are there before the workflow is.
func (t *randomTable) early() int {
	if !t.replicates() {
		return t.rows
	}
	return t.rows - t.rows/3
}

// insert inserts rows, now or late, and keeps the statement for copies of the table.
func (t *randomTable) insert(ctx context.Context, s sessions, tablet *cluster.Tablet, late bool, sql string) error {
	if late {
		t.late = append(t.late, lateRow{tablet, sql})
		return nil
	}
	if t.copies() {
		t.inserts = append(t.inserts, sql)
	}
	return s.execAll(ctx, tablet, sql)
}

// fillFitting inserts those rows that fit the keys of both sides.
func (t *randomTable) fillFitting(ctx context.Context, s sessions, sources []*cluster.Tablet, rows []string) error {
	one, twin := twinDB+"."+quote(t.name+"_one"), twinDB+"."+quote(t.name)
	at := sources[0]
	_, names := t.written(false)
	var from, to []string
	for _, c := range t.compared() {
		if c.computed == "" || !c.targetComputed {
			from, to = append(from, quote(c.source)), append(to, quote(c.name))
		}
	}
	err := s.execAll(ctx, at, "create database if not exists "+twinDB, t.create(twin, true), t.create(one, false))
	if err != nil {
		return err
	}
	for i, row := range rows {
		if err := s.execAll(ctx, at, "delete from "+one, "insert ignore into "+one+" "+names+" values "+row); err != nil {
			return err
		}
		result, err := s.exec(ctx, at, "insert ignore into "+twin+" ("+strings.Join(to, ", ")+") select "+strings.Join(from, ", ")+" from "+one)
		if err != nil {
			return err
		}
		if result.RowsAffected == 0 {
			continue
		}
		shard := sources[i%len(sources)]
		if t.reference {
			shard = sources[0]
		}
		if err := t.insert(ctx, s, shard, i >= t.early(), "insert ignore into "+quote(t.source)+" "+names+" values "+row); err != nil {
			return err
		}
	}
	return s.execAll(ctx, at, "drop table "+one, "drop table "+twin)
}
