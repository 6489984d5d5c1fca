// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package sidecar

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"

	"vitess.io/vitess/go/sqltypes"
	"vitess.io/vitess/go/vt/vttablet/tabletmanager/vdiff"

	querypb "vitess.io/vitess/go/vt/proto/query"
)

const selectVDiff = `select id as id, vdiff_uuid as vdiff_uuid, workflow as workflow, keyspace as keyspace, shard as shard,
	state as state, options as options, last_error as last_error, started_at as started_at, completed_at as completed_at
	from %#s.vdiff where db_name = %a`

// vdiffOf reads a row of selectVDiff. A record of which parts are garbage is returned all the same:
// its state as it is, its options zero with OptionsErr set.
func vdiffOf(row sqltypes.RowNamedValues) (*VDiff, error) {
	id, err := row.ToInt64("id")
	if err != nil {
		return nil, fmt.Errorf("id of a vdiff: %w", err)
	}
	v := &VDiff{
		ID:          id,
		UUID:        row.AsString("vdiff_uuid", ""),
		Workflow:    row.AsString("workflow", ""),
		Keyspace:    row.AsString("keyspace", ""),
		Shard:       row.AsString("shard", ""),
		State:       vdiff.VDiffState(strings.ToLower(row.AsString("state", ""))),
		LastError:   row.AsString("last_error", ""),
		StartedAt:   row.AsString("started_at", ""),
		CompletedAt: row.AsString("completed_at", ""),
	}
	v.Options, v.OptionsErr = decodeOptions(row.AsBytes("options", nil))
	return v, nil
}

// vdiffs runs selectVDiff with a condition added to it.
func (db *DB) vdiffs(ctx context.Context, what, condition string, values ...any) ([]*VDiff, error) {
	var found []*VDiff
	err := db.do(ctx, what, func(w *work) error {
		var err error
		found, err = db.selectVDiffs(w, condition, values...)
		return err
	})
	if err != nil {
		return nil, err
	}
	return found, nil
}

func (db *DB) selectVDiffs(w *work, condition string, values ...any) ([]*VDiff, error) {
	qr, err := w.exec(selectVDiff+" "+condition, append([]any{db.dbName}, values...)...)
	if err != nil {
		return nil, err
	}
	found := make([]*VDiff, 0, len(qr.Rows))
	for _, row := range qr.Named().Rows {
		v, err := vdiffOf(row)
		if err != nil {
			return nil, err
		}
		found = append(found, v)
	}
	return found, nil
}

// VDiffByUUID is part of VDiffStore.
func (db *DB) VDiffByUUID(ctx context.Context, uuid string) (*VDiff, error) {
	found, err := db.vdiffs(ctx, "read vdiff", "and vdiff_uuid = %a", uuid)
	if err != nil || len(found) == 0 {
		return nil, err
	}
	return found[0], nil
}

// VDiffsOfWorkflow is part of VDiffStore.
func (db *DB) VDiffsOfWorkflow(ctx context.Context, keyspace, workflow string) ([]*VDiff, error) {
	return db.vdiffs(ctx, "read the vdiffs of a workflow", "and keyspace = %a and workflow = %a order by id", keyspace, workflow)
}

// VDiffsToRun is part of VDiffStore.
func (db *DB) VDiffsToRun(ctx context.Context) ([]*VDiff, error) {
	found, err := db.vdiffs(ctx, "read the vdiffs to run", "and (state is null or state not in %a) order by id",
		[]string{string(vdiff.StoppedState), string(vdiff.CompletedState), string(vdiff.ErrorState)})
	if err != nil {
		return nil, err
	}
	// The column compares bytes, while every reader of it takes a state in any case.
	toRun := found[:0]
	for _, v := range found {
		switch v.State {
		case vdiff.StoppedState, vdiff.CompletedState, vdiff.ErrorState:
		default:
			toRun = append(toRun, v)
		}
	}
	return toRun, nil
}

// ErroredVDiffs is part of VDiffStore.
func (db *DB) ErroredVDiffs(ctx context.Context) ([]*Errored, error) {
	var errored []*Errored
	err := db.do(ctx, "read the errored vdiffs", func(w *work) error {
		found, err := db.selectVDiffs(w,
			"and state = %a and json_unquote(json_extract(options, '$.core_options.auto_retry')) = 'true' order by id", string(vdiff.ErrorState))
		if err != nil {
			return err
		}
		errored = make([]*Errored, 0, len(found))
		for _, v := range found {
			newest, err := w.newestFailure(v.ID)
			if err != nil {
				return err
			}
			errored = append(errored, &Errored{VDiff: v, Failure: storedFailure(newest, v.LastError)})
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return errored, nil
}

// newestFailure returns the failureLine that was written last for a vdiff, nil if there is none.
func (w *work) newestFailure(id int64) (*Failure, error) {
	qr, err := w.exec("select message as message from %#s.vdiff_log where vdiff_id = %a and message like %a order by id desc limit 1",
		id, failurePrefix+"%")
	if err != nil {
		return nil, err
	}
	row := qr.Named().Row()
	if row == nil {
		return nil, nil
	}
	return parseFailure(row.AsString("message", "")), nil
}

// RecentVDiffs is part of VDiffStore.
func (db *DB) RecentVDiffs(ctx context.Context, keyspace, workflow string, limit int) (*sqltypes.Result, error) {
	var qr *sqltypes.Result
	err := db.do(ctx, "read the vdiffs of a workflow", func(w *work) (err error) {
		qr, err = w.exec("select * from %#s.vdiff where keyspace = %a and workflow = %a and db_name = %a order by id desc limit %a",
			keyspace, workflow, db.dbName, limit)
		return err
	})
	return qr, err
}

// VDiffSummary is part of VDiffStore. The names of the columns are those that clients look for.
func (db *DB) VDiffSummary(ctx context.Context, id int64) (*sqltypes.Result, error) {
	var qr *sqltypes.Result
	err := db.do(ctx, "read the summary of a vdiff", func(w *work) (err error) {
		qr, err = w.exec(`select v.vdiff_uuid as uuid, v.state as vdiff_state, v.last_error as last_error,
			v.started_at as started_at, v.completed_at as completed_at,
			t.table_name as table_name, t.state as table_state, t.table_rows as table_rows, t.rows_compared as rows_compared,
			coalesce(t.mismatch, 0) <> 0 as has_mismatch, t.report as report
			from %#s.vdiff as v left join %#s.vdiff_table as t on t.vdiff_id = v.id
			where v.id = %a and v.db_name = %a`, id, db.dbName)
		return err
	})
	if err != nil {
		return nil, err
	}
	// As in Tables, MySQL would not sort large reports.
	if name := slices.IndexFunc(qr.Fields, func(f *querypb.Field) bool { return f.Name == "table_name" }); name >= 0 {
		slices.SortFunc(qr.Rows, func(a, b sqltypes.Row) int { return bytes.Compare(a[name].Raw(), b[name].Raw()) })
	}
	return qr, nil
}

// HasStreams is part of VDiffStore.
func (db *DB) HasStreams(ctx context.Context, workflow string) (bool, error) {
	var found bool
	err := db.do(ctx, "look for the streams of the workflow", func(w *work) error {
		qr, err := w.exec("select id as id from %#s.vreplication where workflow = %a and db_name = %a limit 1", workflow, db.dbName)
		found = err == nil && len(qr.Rows) > 0
		return err
	})
	return found, err
}
