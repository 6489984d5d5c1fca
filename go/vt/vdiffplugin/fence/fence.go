// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package fence

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"vitess.io/vitess/go/sqltypes"
	"vitess.io/vitess/go/vt/log"
	"vitess.io/vitess/go/vt/topo"
	"vitess.io/vitess/go/vt/vterrors"

	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/sidecar"

	binlogdatapb "vitess.io/vitess/go/vt/proto/binlogdata"
	vtrpcpb "vitess.io/vitess/go/vt/proto/vtrpc"
)

// The messages that a fence leaves with streams. A stream that shows one of them, or a stop position,
// is in the hands of a fence.
const (
	messagePrefix  = "vdiff "
	messageStopped = messagePrefix + "%s stopped this stream for a moment"
	messageRunning = messagePrefix + "%s runs this stream to the position of its snapshot"
	// frozen is the message of a workflow whose writes have been switched.
	frozen = "FROZEN"
)

var (
	stateRunning = binlogdatapb.VReplicationWorkflowState_Running.String()
	stateStopped = binlogdatapb.VReplicationWorkflowState_Stopped.String()
	stateError   = binlogdatapb.VReplicationWorkflowState_Error.String()
)

// VReplication is the part of *vreplication.Engine that fences need.
type VReplication interface {
	Exec(query string) (*sqltypes.Result, error)
}

// Config is what a Manager works with. All fields are required.
type Config struct {
	Store        sidecar.FenceStore
	VReplication VReplication
	// Lock takes the topo lock of a name and renews it while ctx lives; see TopoLock.
	Lock func(ctx context.Context, name, action string) (HeldLock, error)
	// Keyspace is the target's: locks are named keyspace/workflow, as all of Vitess does.
	Keyspace string
	// LockWait bounds one try to get the topo lock; tries are repeated until the context ends.
	LockWait time.Duration
	// RestoreWait is how long a fence that cannot put its streams back keeps trying before its vdiff
	// errs. The record of the fence then stays, and Repair goes on. 0 means DefaultRestoreWait.
	RestoreWait time.Duration
}

// DefaultRestoreWait is Config.RestoreWait where that is 0.
const DefaultRestoreWait = 30 * time.Second

// Manager makes the fences of one tablet.
type Manager struct {
	cfg Config

	mu   sync.Mutex
	live map[string]chan struct{} // the workflows that are in a fence, or being repaired, now; closed when not any more
}

// NewManager returns a manager without fences.
func NewManager(cfg Config) *Manager {
	if cfg.RestoreWait == 0 {
		cfg.RestoreWait = DefaultRestoreWait
	}
	return &Manager{cfg: cfg, live: make(map[string]chan struct{})}
}

// Fence is a moment in which the streams of a workflow are stopped.
type Fence struct {
	m       *Manager
	vdiff   *sidecar.VDiff
	lock    HeldLock
	streams []*sidecar.Stream
	before  *sidecar.Fence
	started time.Time
}

// Streams returns the streams with the positions where they stand.
func (f *Fence) Streams() []*sidecar.Stream { return f.streams }

// Age is how long the streams have been stopped.
func (f *Fence) Age() time.Duration { return time.Since(f.started) }

// Do calls fn inside a fence and restores the streams afterwards. It returns fn's error, or else that
// of the fence itself. waiting is told what the fence waits for, and "" when it goes on.
func (m *Manager) Do(ctx context.Context, v *sidecar.VDiff, waiting func(string), fn func(context.Context, *Fence) error) (err error) {
	// While somebody else has the lock, be it for hours, streams that a fence before this one has left stopped are restored by Repair.
	lock, unlock, err := m.lock(ctx, v, waiting)
	if err != nil {
		return err
	}
	defer unlock()
	if err := m.enter(ctx, v.Workflow); err != nil {
		return err
	}
	defer m.leave(v.Workflow)
	// What a dead process left of this very workflow comes first: its streams are not in the state
	// to which they are to return.
	if err := m.repair(ctx, v.Workflow); err != nil {
		return err
	}
	streams, err := m.cfg.Store.Streams(ctx, v.Workflow)
	if err != nil {
		return err
	}
	if err := Check(v.Workflow, streams); err != nil {
		return err
	}
	f := &Fence{m: m, vdiff: v, lock: lock, before: &sidecar.Fence{VDiffID: v.ID, UUID: v.UUID, Workflow: v.Workflow}, started: time.Now()}
	var running []int32
	for _, s := range streams {
		f.before.Streams = append(f.before.Streams, stateBefore(s))
		if s.State != stateStopped {
			running = append(running, s.ID)
		}
	}
	if err := m.cfg.Store.OpenFence(ctx, f.before); err != nil {
		return vterrors.Wrapf(err, "recording the fence of workflow %s", v.Workflow)
	}
	defer func() {
		if restoreErr := m.restore(f.before, waiting); restoreErr != nil && err == nil {
			err = restoreErr
		}
	}()
	if len(running) > 0 {
		if _, err := m.cfg.VReplication.Exec(sidecar.StopStreamsQuery(running, fmt.Sprintf(messageStopped, v.UUID))); err != nil {
			return vterrors.Wrapf(err, "stopping the streams of workflow %s", v.Workflow)
		}
	}
	if err := f.refresh(ctx); err != nil {
		return err
	}
	return fn(ctx, f)
}

// Check says whether the streams of a workflow are in a state in which it can be compared.
func Check(workflow string, streams []*sidecar.Stream) error {
	if len(streams) == 0 {
		return sidecar.AsPermanent(vterrors.Errorf(vtrpcpb.Code_FAILED_PRECONDITION,
			"workflow %s has no streams on this tablet: it was completed or cancelled, delete the vdiff", workflow))
	}
	for _, s := range streams {
		switch {
		case s.Message == frozen:
			return sidecar.AsPermanent(vterrors.Errorf(vtrpcpb.Code_FAILED_PRECONDITION,
				"writes have been switched for workflow %s: its streams must not run any more, diff the reverse workflow", workflow))
		case s.State == stateError:
			return sidecar.AsTransient(vterrors.Errorf(vtrpcpb.Code_FAILED_PRECONDITION,
				"stream %d of workflow %s is in error (%s): repair and restart the workflow first", s.ID, workflow, s.Message))
		case s.Copying:
			return sidecar.AsTransient(vterrors.Errorf(vtrpcpb.Code_UNAVAILABLE,
				"stream %d of workflow %s is still copying", s.ID, workflow))
		case s.Pos == "":
			return sidecar.AsTransient(vterrors.Errorf(vtrpcpb.Code_UNAVAILABLE,
				"stream %d of workflow %s has no position yet", s.ID, workflow))
		}
	}
	return nil
}

// stateBefore is the state to which a stream is to return.
func stateBefore(s *sidecar.Stream) sidecar.StreamState {
	if s.State == stateStopped && s.StopPos != "" && (strings.HasPrefix(s.Message, "Stopped at position") || strings.HasPrefix(s.Message, "Stop position")) {
		// It was run to a position, and who did so never came back: the stock engine, when its tablet is
		// killed in the middle of its own stop. Switching traffic does the same, but holds the lock.
		return sidecar.StreamState{ID: s.ID, State: stateRunning}
	}
	return sidecar.StreamState{ID: s.ID, State: s.State, Message: s.Message, StopPos: s.StopPos}
}

// lock takes the topo lock of the workflow, however often it takes. unlock gives it back.
func (m *Manager) lock(ctx context.Context, v *sidecar.VDiff, waiting func(string)) (lock HeldLock, unlock func(), err error) {
	name := m.cfg.Keyspace + "/" + v.Workflow
	backoff := newBackoff(100*time.Millisecond, 10*time.Second)
	for {
		lock, unlock, err := m.tryLock(ctx, name)
		if err == nil {
			waiting("")
			return lock, unlock, nil
		}
		if ctx.Err() != nil {
			return nil, nil, ctx.Err()
		}
		log.Warn(fmt.Sprintf("vdiff %s: the lock of workflow %s is taken, trying again: %v", v.UUID, name, err))
		waiting("the lock of workflow " + name)
		if err := backoff.wait(ctx); err != nil {
			return nil, nil, err
		}
	}
}

// tryLock bounds the wait for the lock by LockWait and by ctx, but not the lock itself: that is renewed
// until unlock is called.
func (m *Manager) tryLock(ctx context.Context, name string) (HeldLock, func(), error) {
	lockCtx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	timer := time.AfterFunc(m.cfg.LockWait, cancel)
	detach := context.AfterFunc(ctx, cancel)
	lock, err := m.cfg.Lock(lockCtx, name, "vdiff")
	if err != nil {
		timer.Stop()
		detach()
		cancel()
		return nil, nil, err
	}
	unlock := func() {
		defer cancel()
		unlockCtx, stop := context.WithTimeout(context.WithoutCancel(ctx), topo.RemoteOperationTimeout)
		defer stop()
		if err := lock.Unlock(unlockCtx); err != nil {
			log.Warn(fmt.Sprintf("unlocking workflow %s, whose lock ends by itself after %v: %v", name, lockTTL, err))
		}
	}
	inTime, notDone := timer.Stop(), detach()
	if !inTime || !notDone {
		unlock()
		return nil, nil, vterrors.Errorf(vtrpcpb.Code_DEADLINE_EXCEEDED, "the wait for the lock of %s was over just when it was taken", name)
	}
	return lock, unlock, nil
}

// enter waits until no other fence, and no repair, of the workflow is going on here.
func (m *Manager) enter(ctx context.Context, workflow string) error {
	for {
		ended, ok := m.tryEnter(workflow)
		if ok {
			return nil
		}
		select {
		case <-ended:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// tryEnter enters the workflow, or returns the channel that is closed when the one who is in it leaves.
func (m *Manager) tryEnter(workflow string) (ended <-chan struct{}, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if ended, ok := m.live[workflow]; ok {
		return ended, false
	}
	m.live[workflow] = make(chan struct{})
	return nil, true
}

func (m *Manager) leave(workflow string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	close(m.live[workflow])
	delete(m.live, workflow)
}

// isMarked says whether a stream shows that a fence has it in its hands.
func isMarked(s *sidecar.Stream) bool {
	return s.StopPos != "" || strings.HasPrefix(s.Message, messagePrefix)
}
