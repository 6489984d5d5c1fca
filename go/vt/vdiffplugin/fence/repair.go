// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package fence

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"vitess.io/vitess/go/vt/log"
	"vitess.io/vitess/go/vt/vterrors"

	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/sidecar"

	vtrpcpb "vitess.io/vitess/go/vt/proto/vtrpc"
)

// restore puts the streams of a fence back and strikes out its record. It does so also when the vdiff
// was cancelled: only the end of RestoreWait, or of this tablet's time as primary, stops it. The
// VReplication engine's Exec takes no context: a stream that hangs while it is stopped holds restore up.
func (m *Manager) restore(before *sidecar.Fence, waiting func(string)) error {
	ctx, cancel := context.WithTimeout(context.Background(), m.cfg.RestoreWait)
	defer cancel()
	backoff := newBackoff(50*time.Millisecond, 5*time.Second)
	for {
		streams, err := m.cfg.Store.Streams(ctx, before.Workflow)
		if err == nil {
			err = m.putBack(before, streams)
		}
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

// putBack brings those of the streams back that the fence knows. One that fails does not keep the
// others stopped.
func (m *Manager) putBack(before *sidecar.Fence, streams []*sidecar.Stream) error {
	var failed error
	for _, state := range before.Streams {
		i := slices.IndexFunc(streams, func(s *sidecar.Stream) bool { return s.ID == state.ID })
		if i < 0 {
			continue // the stream is gone, and nothing is to be restored
		}
		s := streams[i]
		if stoppedItself(s) {
			// Only the stop position goes: it must not run past what stopped it.
			state.State, state.Message, state.StopPos = s.State, s.Message, ""
		}
		if _, err := m.cfg.VReplication.Exec(sidecar.RestoreStreamQuery(s.Type, state)); err != nil && failed == nil {
			failed = vterrors.Wrapf(err, "stream %d", state.ID)
		}
	}
	return failed
}

// stoppedItself says whether a stream has a reason of its own not to run any more, which came up while
// a fence ran it to its position: an error, or a DDL of a workflow that is to stop at one.
func stoppedItself(s *sidecar.Stream) bool {
	return s.State == stateError || s.State == stateStopped && strings.HasPrefix(s.Message, "Stopped at DDL")
}

// Repair restores the streams that dead processes have left stopped in fences: those of the records
// that were never struck out, those that show our message but have no record any more, and those that
// show the message of the stock engine. Workflows that are in a fence of this manager are left alone.
// It is called when the engine opens and now and then while it is open.
func (m *Manager) Repair(ctx context.Context) error {
	fences, err := m.cfg.Store.OpenFences(ctx)
	if err != nil {
		return err
	}
	// A workflow that cannot be restored does not keep the others stopped.
	var failed []error
	for _, f := range fences {
		failed = append(failed, m.guarded(f.Workflow, func() error { return m.repair(ctx, f.Workflow) }))
	}
	streams, err := m.cfg.Store.AllStreams(ctx)
	if err != nil {
		return err
	}
	for _, s := range streams {
		if !leftByStock(s) && !leftWithoutRecord(s) {
			continue
		}
		failed = append(failed, m.guarded(s.Workflow, func() error { return m.repairUnrecorded(ctx, s.Workflow) }))
	}
	return errors.Join(failed...)
}

// guarded calls fn while no fence of the workflow can begin, or not at all when one is going on.
func (m *Manager) guarded(workflow string, fn func() error) error {
	if _, ok := m.tryEnter(workflow); !ok {
		return nil
	}
	defer m.leave(workflow)
	return fn()
}

// repair restores what the records of one workflow say. The caller has entered the workflow.
func (m *Manager) repair(ctx context.Context, workflow string) error {
	fences, err := m.cfg.Store.OpenFences(ctx)
	if err != nil {
		return err
	}
	for _, f := range fences {
		if f.Workflow != workflow {
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

// repairUnrecorded restarts the streams of a workflow that were stopped by a vdiff of which no record
// tells. The caller has entered the workflow.
func (m *Manager) repairUnrecorded(ctx context.Context, workflow string) error {
	streams, err := m.cfg.Store.Streams(ctx, workflow)
	if err != nil {
		return err
	}
	for _, s := range streams {
		if !leftByStock(s) && !leftWithoutRecord(s) {
			continue
		}
		log.Info(fmt.Sprintf("stream %d of workflow %s was left stopped by a vdiff (%s): restarting it", s.ID, s.Workflow, s.Message))
		if _, err := m.cfg.VReplication.Exec(sidecar.RestoreStreamQuery(s.Type, sidecar.StreamState{ID: s.ID, State: stateRunning})); err != nil {
			return vterrors.Wrapf(err, "restarting stream %d of workflow %s", s.ID, s.Workflow)
		}
	}
	return nil
}

// leftWithoutRecord says whether a stream shows our own message: with no record of a fence, nobody
// else will bring it back.
func leftWithoutRecord(s *sidecar.Stream) bool {
	return strings.HasPrefix(s.Message, messagePrefix)
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
