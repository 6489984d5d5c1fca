// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package sidecar

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"vitess.io/vitess/go/mysql/sqlerror"
	"vitess.io/vitess/go/vt/vttablet/tabletmanager/vdiff"
)

// change runs f in a transaction that holds the row of a vdiff, with the state and the error that the
// row has now. found is false when the vdiff is not there; f is not called then.
func (db *DB) change(ctx context.Context, what string, id int64, f func(w *work, state vdiff.VDiffState, lastError string) error) (found bool, err error) {
	err = db.tx(ctx, what, func(w *work) error {
		found = false
		qr, err := w.exec("select state as state, last_error as last_error from %#s.vdiff where id = %a and db_name = %a for update", id, db.dbName)
		if err != nil {
			return err
		}
		row := qr.Named().Row()
		if row == nil {
			return nil
		}
		found = true
		return f(w, vdiff.VDiffState(strings.ToLower(row.AsString("state", ""))), row.AsString("last_error", ""))
	})
	return found && err == nil, err
}

// log adds a line to the log of a vdiff whose row the transaction holds.
func (w *work) log(id int64, message string) error {
	_, err := w.exec("insert into %#s.vdiff_log (vdiff_id, message) values (%a, %a)", id, cut(message, maxMessage))
	return err
}

func (w *work) logState(id int64, state vdiff.VDiffState, why string) error {
	return w.log(id, "State changed to: "+string(state)+why)
}

// CreateVDiff is part of VDiffStore.
func (db *DB) CreateVDiff(ctx context.Context, v *VDiff) (int64, error) {
	options, err := encodeOptions(v.Options)
	if err != nil {
		return 0, err
	}
	var id int64
	err = db.do(ctx, "create vdiff", func(w *work) error {
		qr, err := w.exec("insert into %#s.vdiff (vdiff_uuid, keyspace, workflow, shard, db_name, state, options) values (%a, %a, %a, %a, %a, %a, %a)",
			v.UUID, v.Keyspace, v.Workflow, v.Shard, db.dbName, string(v.State), options)
		var se *sqlerror.SQLError
		if errors.As(err, &se) && se.Num == sqlerror.ERDupEntry {
			return ErrExists
		}
		if err != nil {
			return err
		}
		id = int64(qr.InsertID)
		return nil
	})
	return id, err
}

// pendTables makes the tables that are not completed ready to be compared, or with all set every
// table. A table that has a checkpoint is in the middle of its work, so it is started rather than
// pending: its limit counts from its first row.
func (w *work) pendTables(id int64, all bool) error {
	if all {
		_, err := w.exec("update %#s.vdiff_table set state = %a where vdiff_id = %a", string(vdiff.PendingState), id)
		return err
	}
	_, err := w.exec("update %#s.vdiff_table set state = if(lastpk is null, %a, %a) where vdiff_id = %a and (state is null or state <> %a)",
		string(vdiff.PendingState), string(vdiff.StartedState), id, string(vdiff.CompletedState))
	return err
}

// ResumeVDiff is part of VDiffStore.
func (db *DB) ResumeVDiff(ctx context.Context, id int64) error {
	found, err := db.change(ctx, "resume vdiff", id, func(w *work, state vdiff.VDiffState, _ string) error {
		if _, err := w.exec("update %#s.vdiff set state = %a, last_error = '', started_at = null, completed_at = null where id = %a",
			string(vdiff.PendingState), id); err != nil {
			return err
		}
		if err := w.pendTables(id, state == vdiff.CompletedState); err != nil {
			return err
		}
		if err := w.logState(id, vdiff.PendingState, " (by user request)"); err != nil {
			return err
		}
		return w.log(id, (&Failure{Class: resumed}).line())
	})
	if err == nil && !found {
		return fmt.Errorf("resume vdiff: %w", ErrNotFound)
	}
	return err
}

// RetryVDiff is part of VDiffStore.
func (db *DB) RetryVDiff(ctx context.Context, id int64) (bool, error) {
	done := false
	_, err := db.change(ctx, "retry vdiff", id, func(w *work, state vdiff.VDiffState, _ string) error {
		if done = state == vdiff.ErrorState; !done {
			return nil
		}
		if _, err := w.exec("update %#s.vdiff set state = %a, last_error = '' where id = %a", string(vdiff.PendingState), id); err != nil {
			return err
		}
		if err := w.pendTables(id, false); err != nil {
			return err
		}
		return w.logState(id, vdiff.PendingState, " (retry)")
	})
	return done && err == nil, err
}

// StartVDiff is part of VDiffStore.
func (db *DB) StartVDiff(ctx context.Context, id int64) (bool, error) {
	done := false
	_, err := db.change(ctx, "start vdiff", id, func(w *work, state vdiff.VDiffState, _ string) error {
		if done = state == vdiff.PendingState || state == vdiff.StartedState; !done {
			return nil
		}
		if _, err := w.exec("update %#s.vdiff set state = %a, last_error = '', started_at = utc_timestamp() where id = %a",
			string(vdiff.StartedState), id); err != nil {
			return err
		}
		return w.logState(id, vdiff.StartedState, "")
	})
	return done && err == nil, err
}

// CompleteVDiff is part of VDiffStore.
func (db *DB) CompleteVDiff(ctx context.Context, id int64) (bool, error) {
	done := false
	_, err := db.change(ctx, "complete vdiff", id, func(w *work, state vdiff.VDiffState, _ string) error {
		switch state {
		case vdiff.CompletedState:
			done = true // the answer to the first try was lost
			return nil
		case vdiff.StartedState:
		default:
			done = false
			return nil
		}
		qr, err := w.exec("select count(*) as tables, count(if(state = %a, 1, null)) as completed from %#s.vdiff_table where vdiff_id = %a",
			string(vdiff.CompletedState), id)
		if err != nil {
			return err
		}
		row := qr.Named().Row()
		tables, err := row.ToInt64("tables")
		if err != nil {
			return err
		}
		completed, err := row.ToInt64("completed")
		if err != nil {
			return err
		}
		if tables == 0 || completed != tables {
			return fmt.Errorf("%w: %d of %d are", ErrIncomplete, completed, tables)
		}
		if _, err := w.exec("update %#s.vdiff set state = %a, last_error = '', completed_at = utc_timestamp() where id = %a",
			string(vdiff.CompletedState), id); err != nil {
			return err
		}
		done = true
		return w.logState(id, vdiff.CompletedState, "")
	})
	return done && err == nil, err
}

// FailVDiff is part of VDiffStore.
func (db *DB) FailVDiff(ctx context.Context, id int64, text string, class Class, tables []string, maxRetries int) (*Failure, error) {
	text = cut(text, maxLastError)
	var failure *Failure
	_, err := db.change(ctx, "record the error of a vdiff", id, func(w *work, state vdiff.VDiffState, lastError string) error {
		failure = nil
		newest, err := w.newestFailure(id)
		if err != nil {
			return err
		}
		switch state {
		case vdiff.StoppedState, vdiff.CompletedState:
			return nil
		case vdiff.ErrorState:
			known := storedFailure(newest, lastError) // the answer to the first try was lost
			failure = &known
			return nil
		}
		qr, err := w.exec("select cast(coalesce(sum(rows_compared), 0) as signed) as rows_compared from %#s.vdiff_table where vdiff_id = %a", id)
		if err != nil {
			return err
		}
		rows, err := qr.Named().Row().ToInt64("rows_compared")
		if err != nil {
			return err
		}
		failure = NextFailure(newest, class, rows, text)
		if _, err := w.exec("update %#s.vdiff set state = %a, last_error = %a where id = %a", string(vdiff.ErrorState), text, id); err != nil {
			return err
		}
		for batch := range slices.Chunk(tables, tablesPerStatement) {
			if _, err := w.exec("update %#s.vdiff_table set state = %a where vdiff_id = %a and table_name in %a", string(vdiff.ErrorState), id, batch); err != nil {
				return err
			}
		}
		if err := w.logState(id, vdiff.ErrorState, ""); err != nil {
			return err
		}
		if err := w.log(id, failure.line()); err != nil {
			return err
		}
		if class == Transient && failure.Attempt > maxRetries {
			return w.log(id, gaveUpMessage(failure.Attempt))
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return failure, nil
}

// StopVDiff is part of VDiffStore.
func (db *DB) StopVDiff(ctx context.Context, id int64) (bool, error) {
	done := false
	_, err := db.change(ctx, "stop vdiff", id, func(w *work, state vdiff.VDiffState, _ string) error {
		if done = state != vdiff.CompletedState; !done {
			return nil
		}
		if _, err := w.exec("update %#s.vdiff_table set state = %a where vdiff_id = %a and (state is null or state <> %a)",
			string(vdiff.StoppedState), id, string(vdiff.CompletedState)); err != nil {
			return err
		}
		// The stock engine resumes a vdiff without tables only when it never started.
		if _, err := w.exec(`update %#s.vdiff as v set v.state = %a, v.last_error = '',
			v.started_at = if((select count(*) from %#s.vdiff_table as t where t.vdiff_id = %a) = 0, null, v.started_at) where v.id = %a`,
			string(vdiff.StoppedState), id, id); err != nil {
			return err
		}
		if state == vdiff.StoppedState {
			return nil
		}
		return w.logState(id, vdiff.StoppedState, " (by user request)")
	})
	return done && err == nil, err
}

// DeleteVDiff is part of VDiffStore.
func (db *DB) DeleteVDiff(ctx context.Context, id int64) error {
	_, err := db.change(ctx, "delete vdiff", id, func(w *work, _ vdiff.VDiffState, _ string) error {
		open, err := w.openFence(id)
		if err != nil {
			return err
		}
		if open {
			return ErrFenceOpen
		}
		// One after the other: a join of tables and log lines would have their product of rows.
		for _, statement := range []string{
			"delete from %#s.vdiff_log where vdiff_id = %a",
			"delete from %#s.vdiff_table where vdiff_id = %a",
			"delete from %#s.vdiff where id = %a",
		} {
			if _, err := w.exec(statement, id); err != nil {
				return err
			}
		}
		return nil
	})
	return err
}
