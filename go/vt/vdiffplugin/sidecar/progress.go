// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package sidecar

import (
	"context"
	"fmt"
	"slices"
)

// SaveProgress is part of TableStore.
func (db *DB) SaveProgress(ctx context.Context, vdiffID int64, table string, p *Progress) error {
	if err := checkProgress(table, p); err != nil {
		return err
	}
	return db.do(ctx, "save the progress of table "+table, func(w *work) error {
		return w.saveProgress(vdiffID, db.dbName, table, p)
	})
}

// SaveProgressOf is part of TableStore.
func (db *DB) SaveProgressOf(ctx context.Context, vdiffID int64, tables []TableProgress) error {
	if len(tables) == 1 {
		return db.SaveProgress(ctx, vdiffID, tables[0].Table, tables[0].Progress)
	}
	for _, t := range tables {
		if err := checkProgress(t.Table, t.Progress); err != nil {
			return err
		}
	}
	for batch := range slices.Chunk(tables, tablesPerStatement) {
		err := db.tx(ctx, "save the progress of the tables of a vdiff", func(w *work) error {
			for _, t := range batch {
				if err := w.saveProgress(vdiffID, db.dbName, t.Table, t.Progress); err != nil {
					return fmt.Errorf("table %s: %w", t.Table, err)
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

func checkProgress(table string, p *Progress) error {
	if len(p.LastPK) > maxLastPK {
		return fmt.Errorf("save the progress of table %s: the key has %d bytes, of which %d can be stored", table, len(p.LastPK), maxLastPK)
	}
	return nil
}

// saveProgress writes p in one statement.
func (w *work) saveProgress(vdiffID int64, dbName, table string, p *Progress) error {
	statement := `update %#s.vdiff_table as t join %#s.vdiff as v on v.id = t.vdiff_id
		set t.rows_compared = %a, t.lastpk = %a, t.report = %a, t.mismatch = %a`
	values := []any{p.RowsCompared, nullable(p.LastPK), nullable(p.Report), p.Mismatch}
	if p.State != "" {
		statement += ", t.state = %a"
		values = append(values, string(p.State))
	}
	statement += " where t.vdiff_id = %a and t.table_name = %a and v.db_name = %a"
	values = append(values, vdiffID, table, dbName)
	qr, err := w.exec(statement, values...)
	if err != nil || qr.RowsAffected > 0 {
		return err
	}
	return w.expectTable(vdiffID, table)
}
