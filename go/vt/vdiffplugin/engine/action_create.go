// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"

	"vitess.io/vitess/go/vt/vterrors"
	"vitess.io/vitess/go/vt/vttablet/tabletmanager/vdiff"

	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/sidecar"

	tabletmanagerdatapb "vitess.io/vitess/go/vt/proto/tabletmanagerdata"
	vtrpcpb "vitess.io/vitess/go/vt/proto/vtrpc"
)

// create records a vdiff and runs it, unless it is not to be started.
func (a *action) create(ctx context.Context) (*tabletmanagerdatapb.VDiffResponse, error) {
	if err := a.needWorkflow(); err != nil {
		return nil, err
	}
	id, err := uuidOf("vdiff uuid", a.req.VdiffUuid)
	if err != nil {
		return nil, err
	}
	options, err := a.newOptions(ctx, a.req.Options)
	if err != nil {
		return nil, err
	}
	release, err := a.slots.take(ctx, id)
	if err != nil {
		return nil, err
	}
	defer release()
	found, err := a.cfg.Store.HasStreams(ctx, a.req.Workflow)
	if err != nil {
		return nil, err
	}
	if !found {
		return nil, vterrors.Errorf(vtrpcpb.Code_FAILED_PRECONDITION,
			"workflow %s.%s has no streams on tablet %s: check the names of workflow and target keyspace", a.req.Keyspace, a.req.Workflow, a.tablet())
	}
	v := &sidecar.VDiff{
		UUID:     id,
		Keyspace: a.req.Keyspace,
		Workflow: a.req.Workflow,
		Shard:    a.cfg.Tablet().Shard,
		State:    vdiff.PendingState,
		Options:  options,
	}
	if core := options.CoreOptions; core.AutoStart != nil && !core.GetAutoStart() {
		v.State = vdiff.StoppedState
	}
	existing, err := a.cfg.Store.VDiffByUUID(ctx, id)
	if err == nil && existing != nil {
		err = sidecar.ErrExists
	}
	if err == nil {
		v.ID, err = a.cfg.Store.CreateVDiff(ctx, v)
	}
	if errors.Is(err, sidecar.ErrExists) {
		err = vterrors.Errorf(vtrpcpb.Code_ALREADY_EXISTS, "vdiff with UUID %s already exists on tablet %s", id, a.tablet())
	}
	if err != nil {
		return nil, err
	}
	if v.State == vdiff.PendingState {
		a.launch(a.period, v)
	}
	return &tabletmanagerdatapb.VDiffResponse{Id: v.ID, VdiffUuid: a.req.VdiffUuid}, nil
}
