// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"vitess.io/vitess/go/sqltypes"
	"vitess.io/vitess/go/vt/log"
	"vitess.io/vitess/go/vt/vterrors"
	"vitess.io/vitess/go/vt/vttablet/tabletmanager/vdiff"

	querypb "vitess.io/vitess/go/vt/proto/query"
	tabletmanagerdatapb "vitess.io/vitess/go/vt/proto/tabletmanagerdata"
	vtrpcpb "vitess.io/vitess/go/vt/proto/vtrpc"
)

// maxShown bounds what "show all" lists.
const maxShown = 100

// show answers with a list of the vdiffs of a workflow, or with the summary of one of them.
func (a *action) show(ctx context.Context) (*tabletmanagerdatapb.VDiffResponse, error) {
	if err := a.needWorkflow(); err != nil {
		return nil, err
	}
	switch a.req.ActionArg {
	case vdiff.AllActionArg:
		recent, err := a.cfg.Store.RecentVDiffs(ctx, a.req.Keyspace, a.req.Workflow, maxShown)
		if err != nil {
			return nil, err
		}
		return &tabletmanagerdatapb.VDiffResponse{Output: sqltypes.ResultToProto3(recent)}, nil
	case vdiff.LastActionArg:
		recent, err := a.cfg.Store.RecentVDiffs(ctx, a.req.Keyspace, a.req.Workflow, 1)
		if err != nil {
			return nil, err
		}
		row := recent.Named().Row()
		if row == nil {
			return &tabletmanagerdatapb.VDiffResponse{}, nil
		}
		id, err := row.ToInt64("id")
		if err != nil {
			return nil, fmt.Errorf("id of the last vdiff: %w", err)
		}
		return a.summary(ctx, id, row.AsString("vdiff_uuid", ""))
	}
	id, err := uuidOf(fmt.Sprintf("action argument (%s, %s or a UUID)", vdiff.AllActionArg, vdiff.LastActionArg), a.req.ActionArg)
	if err != nil {
		return nil, err
	}
	v, err := a.cfg.Store.VDiffByUUID(ctx, id)
	if err != nil {
		return nil, err
	}
	if v == nil || v.Keyspace != a.req.Keyspace || v.Workflow != a.req.Workflow {
		return nil, vterrors.Errorf(vtrpcpb.Code_NOT_FOUND, "no vdiff found for UUID %s keyspace %s and workflow %s on tablet %s",
			id, a.req.Keyspace, a.req.Workflow, a.tablet())
	}
	return a.summary(ctx, v.ID, id)
}

func (a *action) summary(ctx context.Context, id int64, uuid string) (*tabletmanagerdatapb.VDiffResponse, error) {
	summary, err := a.cfg.Store.VDiffSummary(ctx, id)
	if err != nil {
		return nil, err
	}
	if ct := a.controller(id); ct != nil && !ct.hasEnded() {
		if began, ok := ct.metrics.pace(time.Now()); ok {
			setStartedAt(summary, began)
		}
	}
	return &tabletmanagerdatapb.VDiffResponse{VdiffUuid: uuid, Output: sqltypes.ResultToProto3(withoutGarbage(uuid, summary))}, nil
}

// setStartedAt changes when a vdiff was started in its summary. Clients derive its end from that time and from all rows compared: of a vdiff that
// was resumed they would take the rows of earlier runs for those of a moment.
func setStartedAt(summary *sqltypes.Result, began time.Time) {
	column := slices.IndexFunc(summary.Fields, func(f *querypb.Field) bool { return strings.EqualFold(f.Name, "started_at") })
	if column < 0 {
		return
	}
	for _, row := range summary.Rows {
		row[column] = sqltypes.MakeTrusted(summary.Fields[column].Type, []byte(began.UTC().Format(vdiff.TimestampFormat)))
	}
}

// withoutGarbage leaves out stored reports that are none: a client would show nothing of the whole
// vdiff because of one.
func withoutGarbage(uuid string, qr *sqltypes.Result) *sqltypes.Result {
	column := slices.IndexFunc(qr.Fields, func(f *querypb.Field) bool { return strings.EqualFold(f.Name, "report") })
	if column < 0 {
		return qr
	}
	for _, row := range qr.Rows {
		if row[column].IsNull() {
			continue
		}
		var report vdiff.DiffReport
		if err := json.Unmarshal(row[column].Raw(), &report); err != nil {
			log.Warn(fmt.Sprintf("vdiff %s: a stored report cannot be read: %v", uuid, err))
			row[column] = sqltypes.NULL
		}
	}
	return qr
}
