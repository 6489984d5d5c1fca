// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"

	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/sidecar"

	tabletmanagerdatapb "vitess.io/vitess/go/vt/proto/tabletmanagerdata"
)

// stop stops a vdiff in whatever state it is, except that a completed one stays completed. A vdiff
// that this tablet does not have was created on other shards only: there is nothing to stop.
func (a *action) stop(ctx context.Context) (*tabletmanagerdatapb.VDiffResponse, error) {
	id, err := uuidOf("vdiff uuid", a.req.VdiffUuid)
	if err != nil {
		return nil, err
	}
	release, err := a.slots.take(ctx, id)
	if err != nil {
		return nil, err
	}
	defer release()
	resp := &tabletmanagerdatapb.VDiffResponse{}
	v, err := a.cfg.Store.VDiffByUUID(ctx, id)
	if err != nil || v == nil {
		return resp, err
	}
	return resp, a.stopAndWait(ctx, v)
}

func (a *action) stopAndWait(ctx context.Context, v *sidecar.VDiff) error {
	ct, err := a.halt(ctx, v, errStopped)
	if err != nil || ct == nil || ct.hasEnded() {
		return err
	}
	waitCtx, cancel := context.WithTimeout(ctx, a.cfg.StopWait)
	defer cancel()
	if !a.waitForEnd(waitCtx, ct) {
		return nil // it is recorded as stopped, and can record nothing else any more
	}
	// The states of tables that the run has written after the first time.
	_, err = a.cfg.Store.StopVDiff(ctx, v.ID)
	return err
}
