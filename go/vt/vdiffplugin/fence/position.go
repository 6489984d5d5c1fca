// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package fence

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"vitess.io/vitess/go/mysql/replication"
	"vitess.io/vitess/go/vt/binlog/binlogplayer"
	"vitess.io/vitess/go/vt/vterrors"

	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/sidecar"

	vtrpcpb "vitess.io/vitess/go/vt/proto/vtrpc"
)

// RunTo brings every stream to exactly the position that positions names for its id (as a tablet
// encodes it) and returns when it is there. A stream that is at its position already is not touched.
// wait bounds the whole.
func (f *Fence) RunTo(ctx context.Context, positions map[int32]string, wait time.Duration) error {
	ctx, cancel := context.WithTimeoutCause(ctx, wait, errLate)
	defer cancel()
	goals := make(map[int32]replication.Position, len(positions))
	moved := false
	for _, s := range f.streams {
		goal, err := replication.DecodePosition(positions[s.ID])
		if err != nil {
			return vterrors.Wrapf(err, "position of the snapshot for stream %d", s.ID)
		}
		at, err := decode(s)
		if err != nil {
			return err
		}
		goals[s.ID] = goal
		if at.AtLeast(goal) {
			continue
		}
		moved = true
		query := sidecar.RunStreamToQuery(s, positions[s.ID], fmt.Sprintf(messageRunning, f.vdiff.UUID))
		if _, err := f.m.cfg.VReplication.Exec(query); err != nil {
			return vterrors.Wrapf(err, "running stream %d of workflow %s", s.ID, f.vdiff.Workflow)
		}
	}
	if moved {
		// They were Stopped a moment ago, which must not be taken for the end of their way.
		if err := f.refresh(ctx); err != nil {
			return f.causeOf(ctx, err, goals, wait)
		}
	}
	backoff := newBackoff(10*time.Millisecond, 250*time.Millisecond)
	for {
		done, err := f.reached(goals)
		if err != nil {
			return err
		}
		if done {
			// Whoever else may have taken the lock since could move the streams.
			return vterrors.Wrapf(f.lock.Check(ctx), "the topo lock of workflow %s was lost", f.vdiff.Workflow)
		}
		if err := backoff.wait(ctx); err != nil {
			return f.causeOf(ctx, err, goals, wait)
		}
		if err := f.refresh(ctx); err != nil {
			return f.causeOf(ctx, err, goals, wait)
		}
	}
}

func (f *Fence) reached(goals map[int32]replication.Position) (bool, error) {
	all := true
	for _, s := range f.streams {
		goal, ok := goals[s.ID]
		if !ok {
			continue
		}
		at, err := decode(s)
		if err != nil {
			return false, err
		}
		switch {
		case at.AtLeast(goal) && !goal.AtLeast(at):
			// Running further does not help, and a target that is ahead would differ.
			return false, sidecar.AsTransient(vterrors.Errorf(vtrpcpb.Code_FAILED_PRECONDITION,
				"stream %d of workflow %s is at %s, ahead of the source at %s: is the source tablet one that lost transactions?", s.ID, f.vdiff.Workflow, at, goal))
		case at.AtLeast(goal):
		case s.State == stateError || s.State == stateStopped:
			return false, sidecar.AsTransient(vterrors.Errorf(vtrpcpb.Code_ABORTED,
				"stream %d of workflow %s stopped on its way to the position of the snapshot: %s", s.ID, f.vdiff.Workflow, s.Message))
		default:
			all = false
		}
	}
	return all, nil
}

// refresh reads the streams anew.
func (f *Fence) refresh(ctx context.Context) error {
	streams, err := f.m.cfg.Store.Streams(ctx, f.vdiff.Workflow)
	if err != nil {
		return err
	}
	if len(streams) != len(f.before.Streams) {
		return sidecar.AsTransient(vterrors.Errorf(vtrpcpb.Code_ABORTED, "the streams of workflow %s changed during a vdiff", f.vdiff.Workflow))
	}
	for i, s := range streams {
		if s.ID != f.before.Streams[i].ID {
			return sidecar.AsTransient(vterrors.Errorf(vtrpcpb.Code_ABORTED, "the streams of workflow %s changed during a vdiff", f.vdiff.Workflow))
		}
	}
	f.streams = streams
	return nil
}

func decode(s *sidecar.Stream) (replication.Position, error) {
	pos, err := binlogplayer.DecodePosition(s.Pos)
	if err != nil {
		return pos, vterrors.Wrapf(err, "position of stream %d", s.ID)
	}
	return pos, nil
}

// errLate is the cause of a context that ended because the streams took too long.
var errLate = errors.New("the streams took too long")

// causeOf replaces the bare error of an ended context by the reason why it ended. VReplication tries again whatever may pass,
// and tells what it was in the message of a stream that still runs: restore takes that away, so that it is told here.
func (f *Fence) causeOf(ctx context.Context, err error, goals map[int32]replication.Position, wait time.Duration) error {
	cause := context.Cause(ctx)
	if cause == nil {
		return err
	}
	if !errors.Is(cause, errLate) {
		return cause
	}
	var late []string
	for _, s := range f.streams {
		if at, err := decode(s); err == nil && at.AtLeast(goals[s.ID]) {
			continue
		}
		text := fmt.Sprintf("stream %d is %s", s.ID, s.State)
		if s.Message != "" && !strings.HasPrefix(s.Message, messagePrefix) {
			text += ": " + s.Message
		}
		late = append(late, text)
	}
	return vterrors.Errorf(vtrpcpb.Code_DEADLINE_EXCEEDED,
		"the streams of workflow %s did not reach the position of the snapshot within %v: raise --filtered-replication-wait-time, or see why the workflow lags (%s)",
		f.vdiff.Workflow, wait, strings.Join(late, "; "))
}
