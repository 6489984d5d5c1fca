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
	// Lock takes the topo lock of a name and returns what unlocks it; see TopoLock.
	Lock func(ctx context.Context, name, action string) (context.Context, func(*error), error)
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
	live map[int64]bool // ids of the vdiffs that are in a fence now
}

// NewManager returns a manager without fences.
func NewManager(cfg Config) *Manager {
	if cfg.RestoreWait == 0 {
		cfg.RestoreWait = DefaultRestoreWait
	}
	return &Manager{cfg: cfg, live: make(map[int64]bool)}
}

// Fence is a moment in which the streams of a workflow are stopped.
type Fence struct {
	m       *Manager
	vdiff   *sidecar.VDiff
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
	if !m.enter(v.ID) {
		return vterrors.Errorf(vtrpcpb.Code_INTERNAL, "vdiff %s is in a fence already", v.UUID)
	}
	defer m.leave(v.ID)
	ctx, unlock, err := m.lock(ctx, v, waiting)
	if err != nil {
		return err
	}
	defer func() {
		unlock(&err)
	}()
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
	f := &Fence{m: m, vdiff: v, before: &sidecar.Fence{VDiffID: v.ID, UUID: v.UUID, Workflow: v.Workflow}, started: time.Now()}
	var running []int32
	for _, s := range streams {
		f.before.Streams = append(f.before.Streams, sidecar.StreamState{ID: s.ID, State: s.State, Message: s.Message, StopPos: s.StopPos})
		if s.State != stateStopped {
			running = append(running, s.ID)
		}
	}
	if err := m.cfg.Store.OpenFence(ctx, f.before); err != nil {
		return vterrors.Wrapf(err, "recording the fence of workflow %s", v.Workflow)
	}
	defer func() {
		if restoreErr := m.restore(f.before, streams, waiting); restoreErr != nil && err == nil {
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

// lock takes the topo lock of the workflow, however often it takes.
func (m *Manager) lock(ctx context.Context, v *sidecar.VDiff, waiting func(string)) (context.Context, func(*error), error) {
	name := m.cfg.Keyspace + "/" + v.Workflow
	backoff := newBackoff(100*time.Millisecond, 10*time.Second)
	for {
		// The lock outlives the bound of the try: only taking it is bounded.
		lockCtx, unlock, err := m.tryLock(ctx, name)
		if err == nil {
			waiting("")
			return lockCtx, unlock, nil
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

func (m *Manager) tryLock(ctx context.Context, name string) (context.Context, func(*error), error) {
	tryCtx, cancel := context.WithTimeout(ctx, m.cfg.LockWait)
	lockCtx, unlock, err := m.cfg.Lock(tryCtx, name, "vdiff")
	if err != nil {
		cancel()
		return nil, nil, err
	}
	// The returned context carries the lock in its values and the bound of the try in its deadline:
	// the values are kept, and the deadline is replaced by the caller's context.
	held, stop := context.WithCancelCause(context.WithoutCancel(lockCtx))
	detach := context.AfterFunc(ctx, func() { stop(context.Cause(ctx)) })
	return held, func(errp *error) {
		unlock(errp)
		detach()
		stop(nil)
		cancel()
	}, nil
}

func (m *Manager) enter(id int64) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.live[id] {
		return false
	}
	m.live[id] = true
	return true
}

func (m *Manager) leave(id int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.live, id)
}

func (m *Manager) isLive(id int64) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.live[id]
}

// isMarked says whether a stream shows that a fence has it in its hands.
func isMarked(s *sidecar.Stream) bool {
	return s.StopPos != "" || strings.HasPrefix(s.Message, messagePrefix)
}
