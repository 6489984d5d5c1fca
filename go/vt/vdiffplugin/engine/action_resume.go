// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"

	"vitess.io/vitess/go/vt/vterrors"
	"vitess.io/vitess/go/vt/vttablet/tabletmanager/vdiff"

	tabletmanagerdatapb "vitess.io/vitess/go/vt/proto/tabletmanagerdata"
	vtrpcpb "vitess.io/vitess/go/vt/proto/vtrpc"
)

// resume runs a vdiff again that is stopped, completed or errored, with the options it was created
// with.
func (a *action) resume(ctx context.Context) (*tabletmanagerdatapb.VDiffResponse, error) {
	id, err := uuidOf("vdiff uuid", a.req.VdiffUuid)
	if err != nil {
		return nil, err
	}
	release, err := a.slots.take(ctx, id)
	if err != nil {
		return nil, err
	}
	defer release()
	v, err := a.cfg.Store.VDiffByUUID(ctx, id)
	switch {
	case err != nil:
		return nil, err
	case v == nil:
		return nil, vterrors.Errorf(vtrpcpb.Code_NOT_FOUND, "vdiff with UUID %s not found on tablet %s", id, a.tablet())
	case v.OptionsErr != nil:
		return nil, vterrors.Errorf(vtrpcpb.Code_FAILED_PRECONDITION,
			"vdiff with UUID %s on tablet %s cannot run, delete it and create it anew: %v", id, a.tablet(), v.OptionsErr)
	}
	if ct := a.controller(v.ID); ct != nil && !ct.hasEnded() {
		if running := v.State == vdiff.PendingState || v.State == vdiff.StartedState; running && ct.ctx.Err() == nil {
			return nil, vterrors.Errorf(vtrpcpb.Code_FAILED_PRECONDITION,
				"no completed or stopped vdiff found for UUID %s on tablet %s: it is %s, stop it first", id, a.tablet(), v.State)
		}
		// It was stopped, or has just recorded how it ended: two runs must not overlap.
		if !ct.ended(ctx) {
			return nil, vterrors.Errorf(vtrpcpb.Code_UNAVAILABLE, "vdiff with UUID %s on tablet %s is still stopping, try again", id, a.tablet())
		}
	}
	if err := a.cfg.Store.ResumeVDiff(ctx, v.ID); err != nil {
		return nil, err
	}
	v.State, v.LastError, v.StartedAt, v.CompletedAt = vdiff.PendingState, "", "", ""
	a.launch(a.period, v)
	return &tabletmanagerdatapb.VDiffResponse{Id: v.ID, VdiffUuid: a.req.VdiffUuid}, nil
}
