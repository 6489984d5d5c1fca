// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package sidecar

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"vitess.io/vitess/go/vt/log"
	"vitess.io/vitess/go/vt/sqlparser"
	"vitess.io/vitess/go/vt/vttablet/tabletmanager/vdiff"
)

// tablesPerStatement bounds the length of a statement about many tables.
const tablesPerStatement = 200

// EnsureTables is part of TableStore.
func (db *DB) EnsureTables(ctx context.Context, vdiffID int64, tables []string, analyze bool) error {
	if analyze {
		if err := db.analyze(ctx, tables); err != nil {
			return err
		}
	}
	for batch := range slices.Chunk(tables, tablesPerStatement) {
		if err := db.ensureTables(ctx, vdiffID, batch); err != nil {
			return err
		}
	}
	return nil
}

func (db *DB) ensureTables(ctx context.Context, vdiffID int64, tables []string) error {
	estimates := make(map[string]int64, len(tables))
	err := db.do(ctx, "estimate the rows of the tables", func(w *work) error {
		// MySQL keeps what it has shown once for a day, and that may be of when the table was empty. Where it knows no such
		// variable it keeps nothing.
		_, _ = w.exec("set session information_schema_stats_expiry = 0")
		qr, err := w.exec("select table_name as table_name, table_rows as table_rows from information_schema.tables where table_schema = %a and table_name in %a",
			db.dbName, tables)
		if err != nil {
			return err
		}
		for _, row := range qr.Named().Rows {
			estimates[row.AsString("table_name", "")] = row.AsInt64("table_rows", 0)
		}
		return nil
	})
	if err != nil {
		return err
	}
	found, err := db.change(ctx, "record the tables of a vdiff", vdiffID, func(w *work, _ vdiff.VDiffState, _ string) error {
		qr, err := w.exec("select table_name as table_name, table_rows as table_rows from %#s.vdiff_table where vdiff_id = %a and table_name in %a", vdiffID, tables)
		if err != nil {
			return err
		}
		known := make(map[string]int64, len(qr.Rows))
		for _, row := range qr.Named().Rows {
			known[row.AsString("table_name", "")] = row.AsInt64("table_rows", -1)
		}
		var rows []string
		var values []any
		for _, table := range tables {
			before, ok := known[table]
			switch {
			case !ok:
				rows = append(rows, "(%a, %a, %a, %a)")
				values = append(values, vdiffID, table, string(vdiff.PendingState), estimates[table])
			case before != estimates[table]:
				if _, err := w.exec("update %#s.vdiff_table set table_rows = %a where vdiff_id = %a and table_name = %a",
					estimates[table], vdiffID, table); err != nil {
					return err
				}
			}
		}
		if len(rows) == 0 {
			return nil
		}
		_, err = w.exec("insert into %#s.vdiff_table (vdiff_id, table_name, state, table_rows) values "+strings.Join(rows, ", "), values...)
		return err
	})
	if err == nil && !found {
		return fmt.Errorf("record the tables of a vdiff: %w", ErrNotFound)
	}
	return err
}

// analyze brings the statistics of tables up to date. MySQL answers what went wrong with one table
// as a row; the estimate is then only older, so that is no reason not to compare.
func (db *DB) analyze(ctx context.Context, tables []string) error {
	for _, table := range tables {
		err := doOn(ctx, db.connectDBA, "analyze table "+table, func(w *work) error {
			query := "analyze table " + sqlparser.String(sqlparser.NewIdentifierCS(db.dbName)) + "." + sqlparser.String(sqlparser.NewIdentifierCS(table))
			qr, err := w.conn.ExecuteFetch(query, -1, true)
			if err != nil {
				return err
			}
			for _, row := range qr.Named().Rows {
				if strings.EqualFold(row.AsString("Msg_type", ""), "error") {
					log.Warn(fmt.Sprintf("analyze table %s: %s", table, cut(row.AsString("Msg_text", ""), maxErrorText)))
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// Tables is part of TableStore.
func (db *DB) Tables(ctx context.Context, vdiffID int64) ([]*Table, error) {
	var tables []*Table
	err := db.do(ctx, "read the tables of a vdiff", func(w *work) error {
		qr, err := w.exec(`select t.table_name as table_name, t.state as state, t.lastpk as lastpk, t.table_rows as table_rows,
			t.rows_compared as rows_compared, t.mismatch as mismatch, t.report as report
			from %#s.vdiff_table as t join %#s.vdiff as v on v.id = t.vdiff_id
			where t.vdiff_id = %a and v.db_name = %a`, vdiffID, db.dbName)
		if err != nil {
			return err
		}
		tables = make([]*Table, 0, len(qr.Rows))
		for _, row := range qr.Named().Rows {
			t := &Table{
				Name:         row.AsString("table_name", ""),
				State:        vdiff.VDiffState(strings.ToLower(row.AsString("state", ""))),
				TableRows:    row.AsInt64("table_rows", 0),
				RowsCompared: row.AsInt64("rows_compared", 0),
				Mismatch:     row.AsInt64("mismatch", 0) != 0,
			}
			// The stock engine stores an empty lastpk where there is none.
			if b := row.AsBytes("lastpk", nil); len(b) > 0 {
				t.LastPK = b
			}
			if b := row.AsBytes("report", nil); len(b) > 0 {
				t.Report = b
			}
			tables = append(tables, t)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	// Not by MySQL: it sorts no row that is larger than its sort buffer, and reports are.
	slices.SortFunc(tables, func(a, b *Table) int { return strings.Compare(a.Name, b.Name) })
	return tables, nil
}

// StartTables is part of TableStore.
func (db *DB) StartTables(ctx context.Context, vdiffID int64, tables []string) error {
	for batch := range slices.Chunk(tables, tablesPerStatement) {
		err := db.do(ctx, "start the tables of a vdiff", func(w *work) error {
			_, err := w.exec(`update %#s.vdiff_table as t join %#s.vdiff as v on v.id = t.vdiff_id set t.state = %a
				where t.vdiff_id = %a and t.table_name in %a and v.db_name = %a`, string(vdiff.StartedState), vdiffID, batch, db.dbName)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// errNoTable says that a table has no record.
var errNoTable = errors.New("the vdiff has no record of this table")

// expectTable tells an update that changed nothing from one that found nothing.
func (w *work) expectTable(vdiffID int64, table string) error {
	qr, err := w.exec("select 1 from %#s.vdiff_table where vdiff_id = %a and table_name = %a", vdiffID, table)
	if err == nil && len(qr.Rows) == 0 {
		err = errNoTable
	}
	return err
}

// Log is part of TableStore.
func (db *DB) Log(ctx context.Context, vdiffID int64, message string) error {
	return db.do(ctx, "write to the log of a vdiff", func(w *work) error {
		// Not for a vdiff that was deleted meanwhile: nothing of it may be left.
		_, err := w.exec("insert into %#s.vdiff_log (vdiff_id, message) select id, %a from %#s.vdiff where id = %a and db_name = %a",
			cut(message, maxLogLine), vdiffID, db.dbName)
		return err
	})
}
