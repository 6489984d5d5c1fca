// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package fence

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"vitess.io/vitess/go/vt/log"
	"vitess.io/vitess/go/vt/vterrors"

	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/sidecar"

	vtrpcpb "vitess.io/vitess/go/vt/proto/vtrpc"
)

// restore puts the streams of a fence back and strikes out its record. It does so also when the vdiff
// was cancelled: only the end of RestoreWait, or of this tablet's time as primary, stops it.
func (m *Manager) restore(before *sidecar.Fence, streams []*sidecar.Stream, waiting func(string)) error {
	ctx, cancel := context.WithTimeout(context.Background(), m.cfg.RestoreWait)
	defer cancel()
	backoff := newBackoff(50*time.Millisecond, 5*time.Second)
	for {
		err := m.putBack(before, streams)
		if err == nil {
			err = m.cfg.Store.CloseFence(ctx, before)
		}
		if err == nil {
			waiting("")
			return nil
		}
		log.Error(fmt.Sprintf("vdiff %s: restoring the streams of workflow %s: %v", before.UUID, before.Workflow, err))
		waiting("the restart of workflow " + before.Workflow)
		closed := vterrors.Code(err) == vtrpcpb.Code_UNAVAILABLE // the VReplication engine: not primary any more
		if closed || backoff.wait(ctx) != nil {
			return sidecar.AsTransient(vterrors.Wrapf(err, "the streams of workflow %s are still stopped, restoring them is tried again", before.Workflow))
		}
	}
}

func (m *Manager) putBack(before *sidecar.Fence, streams []*sidecar.Stream) error {
	types := make(map[int32]*sidecar.Stream, len(streams))
	for _, s := range streams {
		types[s.ID] = s
	}
	for _, state := range before.Streams {
		s := types[state.ID]
		if s == nil {
			continue // the stream is gone, and nothing is to be restored
		}
		if _, err := m.cfg.VReplication.Exec(sidecar.RestoreStreamQuery(s.Type, state)); err != nil {
			return vterrors.Wrapf(err, "stream %d", state.ID)
		}
	}
	return nil
}

// Repair restores the streams that dead processes have left stopped in fences: those of the records
// that were never struck out, and those that show the message of the stock engine. Fences of this
// manager that are going on are left alone. It is called when the engine opens and now and then while
// it is open.
func (m *Manager) Repair(ctx context.Context) error {
	if err := m.repair(ctx, ""); err != nil {
		return err
	}
	streams, err := m.cfg.Store.AllStreams(ctx)
	if err != nil {
		return err
	}
	for _, s := range streams {
		if !leftByStock(s) {
			continue
		}
		log.Info(fmt.Sprintf("stream %d of workflow %s was left stopped by a vdiff of the stock engine: restarting it", s.ID, s.Workflow))
		if _, err := m.cfg.VReplication.Exec(sidecar.RestoreStreamQuery(s.Type, sidecar.StreamState{ID: s.ID, State: stateRunning})); err != nil {
			return vterrors.Wrapf(err, "restarting stream %d of workflow %s", s.ID, s.Workflow)
		}
	}
	return nil
}

// repair is Repair for the records of one workflow, or of all ("").
func (m *Manager) repair(ctx context.Context, workflow string) error {
	fences, err := m.cfg.Store.OpenFences(ctx)
	if err != nil {
		return err
	}
	for _, f := range fences {
		// Do has entered its own vdiff before it repairs: a record of that vdiff is an old one.
		own := workflow != "" && f.Workflow == workflow
		if workflow != "" && !own || workflow == "" && m.isLive(f.VDiffID) {
			continue
		}
		if err := m.repairOne(ctx, f); err != nil {
			return vterrors.Wrapf(err, "workflow %s", f.Workflow)
		}
	}
	return nil
}

func (m *Manager) repairOne(ctx context.Context, f *sidecar.Fence) error {
	streams, err := m.cfg.Store.Streams(ctx, f.Workflow)
	if err != nil {
		return err
	}
	marked := streams[:0:0]
	for _, s := range streams {
		if isMarked(s) && s.Message != frozen {
			marked = append(marked, s)
		}
	}
	log.Info(fmt.Sprintf("vdiff %s left a fence of workflow %s open: restoring %d streams", f.UUID, f.Workflow, len(marked)))
	if err := m.putBack(f, marked); err != nil {
		return err
	}
	return m.cfg.Store.CloseFence(ctx, f)
}

// leftByStock says whether the stock engine stopped this stream for a vdiff and never came back.
func leftByStock(s *sidecar.Stream) bool {
	switch s.Message {
	case "for vdiff":
		return s.State == stateStopped
	case "synchronizing for vdiff":
		return true
	}
	return false
}

// backoff waits longer each time, with jitter so that shards do not move in step.
type backoff struct {
	next, max time.Duration
}

func newBackoff(first, most time.Duration) *backoff { return &backoff{next: first, max: most} }

func (b *backoff) wait(ctx context.Context) error {
	timer := time.NewTimer(b.next*3/4 + rand.N(b.next/2+1))
	defer timer.Stop()
	b.next = min(b.next*3/2, b.max)
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
