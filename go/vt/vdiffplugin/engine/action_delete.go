// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"
	"slices"
	"strings"

	"vitess.io/vitess/go/vt/vterrors"
	"vitess.io/vitess/go/vt/vttablet/tabletmanager/vdiff"

	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/sidecar"

	tabletmanagerdatapb "vitess.io/vitess/go/vt/proto/tabletmanagerdata"
	vtrpcpb "vitess.io/vitess/go/vt/proto/vtrpc"
)

// delete removes one vdiff or all of a workflow, with everything that is stored of them.
func (a *action) delete(ctx context.Context) (*tabletmanagerdatapb.VDiffResponse, error) {
	resp := &tabletmanagerdatapb.VDiffResponse{}
	if a.req.ActionArg == vdiff.AllActionArg {
		if err := a.needWorkflow(); err != nil {
			return nil, err
		}
		vdiffs, err := a.cfg.Store.VDiffsOfWorkflow(ctx, a.req.Keyspace, a.req.Workflow)
		if err != nil {
			return nil, err
		}
		return resp, a.deleteAll(ctx, vdiffs)
	}
	id, err := uuidOf("action argument", a.req.ActionArg)
	if err != nil {
		return nil, err
	}
	v, err := a.cfg.Store.VDiffByUUID(ctx, id)
	if err != nil {
		return nil, err
	}
	if v == nil {
		return nil, vterrors.Errorf(vtrpcpb.Code_FAILED_PRECONDITION, "no vdiff found for UUID %s on tablet %s", id, a.tablet())
	}
	return resp, a.deleteAll(ctx, []*sidecar.VDiff{v})
}

// deleteAll tells all of the runs to end before it waits for any, so that the wait of all is bounded.
// Every vdiff that can be deleted is.
func (a *action) deleteAll(ctx context.Context, vdiffs []*sidecar.VDiff) error {
	// In one order everywhere: two requests that need the same slots must not wait for each other.
	slices.SortFunc(vdiffs, func(x, y *sidecar.VDiff) int { return strings.Compare(x.UUID, y.UUID) })
	for _, v := range vdiffs {
		release, err := a.slots.take(ctx, v.UUID)
		if err != nil {
			return err
		}
		defer release()
	}
	runs := make([]*controller, len(vdiffs))
	for i, v := range vdiffs {
		ct, err := a.halt(ctx, v, errDeleted)
		if err != nil {
			return err
		}
		runs[i] = ct
	}
	waitCtx, cancel := context.WithTimeout(ctx, a.cfg.StopWait)
	defer cancel()
	var errs []error
	for i, v := range vdiffs {
		if !a.waitForEnd(waitCtx, runs[i]) {
			errs = append(errs, vterrors.Errorf(vtrpcpb.Code_UNAVAILABLE, "vdiff with UUID %s on tablet %s is still stopping, try again", v.UUID, a.tablet()))
			continue
		}
		if err := a.deleteOne(ctx, v, runs[i]); err != nil {
			errs = append(errs, err)
		}
	}
	return vterrors.Aggregate(errs)
}

func (a *action) deleteOne(ctx context.Context, v *sidecar.VDiff, ct *controller) error {
	err := a.cfg.Store.DeleteVDiff(ctx, v.ID)
	if errors.Is(err, sidecar.ErrFenceOpen) {
		return vterrors.Errorf(vtrpcpb.Code_FAILED_PRECONDITION,
			"vdiff with UUID %s on tablet %s has stopped the workflow and is needed to restart it, which is tried again and again: delete it when the workflow runs", v.UUID, a.tablet())
	}
	if err == nil && ct != nil {
		a.remove(ct)
	}
	return err
}
