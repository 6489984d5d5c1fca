// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"vitess.io/vitess/go/vt/log"
	"vitess.io/vitess/go/vt/topo"

	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/differ"
	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/sidecar"

	topodatapb "vitess.io/vitess/go/vt/proto/topodata"
)

// Topo is the part of *topo.Server that the engine needs.
type Topo interface {
	GetCellInfoNames(ctx context.Context) ([]string, error)
	WatchShard(ctx context.Context, keyspace, shard string) (*topo.WatchShardData, <-chan *topo.WatchShardData, error)
}

// Config is what an engine works with. The durations may be zero: New sets those to their defaults.
type Config struct {
	// Tablet returns the record of this tablet as it is now. It must not be nil.
	Tablet func() *topodatapb.Tablet
	Store  sidecar.VDiffStore
	Runner differ.Runner
	Topo   Topo
	// Repair restores the streams that a dead vdiff has left stopped. It is called before anything
	// runs, and again and again while the engine is open. nil: there is nothing to repair.
	Repair func(ctx context.Context) error

	// MaxRetries is how many retries a vdiff has in a row that do not get beyond what it had compared before.
	MaxRetries int
	// RetryInterval is the time between two looks at the errored vdiffs, and the pause before the
	// first retry. The pause doubles with each one, up to RetryBackoffMax.
	RetryInterval, RetryBackoffMax time.Duration
	// RepairInterval is the time between two calls of Repair. Stopped streams do not wait for a long RetryInterval.
	RepairInterval time.Duration
	// OpenBackoff is the pause after the first attempt to open that failed, OpenBackoffMax the
	// longest. The same for watches of the shard record and for writes of a vdiff's state.
	OpenBackoff, OpenBackoffMax   time.Duration
	WatchBackoff, WatchBackoffMax time.Duration
	WriteBackoff, WriteBackoffMax time.Duration
	// StopWait bounds how long stop and delete wait for a run to end.
	StopWait time.Duration
	// CloseWait bounds how long Close waits.
	CloseWait time.Duration
	// FirstOpenWait is how long an action waits for the first attempt to open.
	FirstOpenWait time.Duration
}

func (c *Config) setDefaults() {
	set := func(d *time.Duration, to time.Duration) {
		if *d <= 0 {
			*d = to
		}
	}
	set(&c.RetryInterval, 30*time.Second)
	set(&c.RetryBackoffMax, max(30*time.Minute, c.RetryInterval))
	set(&c.RepairInterval, min(30*time.Second, c.RetryInterval))
	set(&c.OpenBackoff, time.Second)
	set(&c.OpenBackoffMax, max(30*time.Second, c.OpenBackoff))
	set(&c.WatchBackoff, time.Second)
	set(&c.WatchBackoffMax, max(time.Minute, c.WatchBackoff))
	set(&c.WriteBackoff, 100*time.Millisecond)
	set(&c.WriteBackoffMax, max(10*time.Second, c.WriteBackoff))
	set(&c.StopWait, 10*time.Second)
	set(&c.CloseWait, time.Minute)
	set(&c.FirstOpenWait, 2*time.Second)
}

// Engine runs the vdiffs of one tablet. Its methods are safe for concurrent use.
type Engine struct {
	cfg   Config
	slots slots // one per vdiff: who holds it may change the vdiff

	// mu guards what is below. It is held for moments only, never while waiting.
	mu          sync.Mutex
	controllers map[int64]*controller // by id of the vdiff; globalStats holds the same ones
	session     *session              // nil while closed
	ended       <-chan struct{}       // closed when the newest session has ended; nil before the first
}

// session is the time from an Open to the next Close.
type session struct {
	engine *Engine
	ctx    context.Context
	cancel context.CancelCauseFunc
	before <-chan struct{} // closed when the session before has ended
	done   chan struct{}   // closed when no goroutine of this session is left

	attempted chan struct{} // closed when the first attempt to open has ended
	reopen    chan struct{} // a token: Open was called while fenced

	// Guarded by Engine.mu.
	period *period // nil while the engine is not open
	fenced bool    // another tablet is the primary
}

// period is a time in which the engine is open.
type period struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	// wg has the controllers, the retry goroutine and the actions. It is added to under Engine.mu
	// while the period is the current one, and waited for when it is not any more.
	wg sync.WaitGroup
}

// Why a controller's context is done.
var (
	errClosed  = errors.New("vdiff engine is closed")
	errFenced  = errors.New("another tablet is the primary of the shard")
	errStopped = errors.New("vdiff is stopped by user request")
	errDeleted = errors.New("vdiff is deleted by user request")
	errReset   = errors.New("vdiff engine opens anew")
)

// New returns a closed engine.
func New(cfg Config) *Engine {
	cfg.setDefaults()
	if cfg.Repair == nil {
		cfg.Repair = func(context.Context) error { return nil }
	}
	return &Engine{cfg: cfg, controllers: make(map[int64]*controller)}
}

// Open lets the engine open. It returns at once; the attempts are made in the background until one
// succeeds, Close is called or ctx is done, which should be as long as the tablet is PRIMARY. It
// changes nothing when the engine is open or opening.
func (e *Engine) Open(ctx context.Context) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if s := e.session; s != nil && s.ctx.Err() == nil {
		if s.fenced {
			select {
			case s.reopen <- struct{}{}:
			default:
			}
		}
		return
	}
	e.endSessionLocked()
	log.Info("vdiff engine: opening")
	s := &session{
		engine:    e,
		before:    e.ended,
		done:      make(chan struct{}),
		attempted: make(chan struct{}),
		reopen:    make(chan struct{}, 1),
	}
	s.ctx, s.cancel = context.WithCancelCause(ctx)
	e.session, e.ended = s, s.done
	go s.supervise()
}

// Close ends everything the engine does. It returns when no goroutine of the engine is left, or when
// a run has ignored that for Config.CloseWait; then the next Open waits for it.
func (e *Engine) Close() {
	e.mu.Lock()
	wasOpen := e.session != nil
	e.endSessionLocked()
	ended := e.ended
	e.mu.Unlock()
	if ended == nil {
		return
	}
	limit := time.NewTimer(e.cfg.CloseWait)
	defer limit.Stop()
	select {
	case <-ended:
		if wasOpen {
			log.Info("vdiff engine: closed")
		}
	case <-limit.C:
		log.Error(fmt.Sprintf("vdiff engine: closed, but a vdiff did not end within %v", e.cfg.CloseWait))
	}
}

// IsOpen says whether the engine runs vdiffs and answers actions.
func (e *Engine) IsOpen() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.session != nil && e.session.period != nil
}

// endSessionLocked ends the session, if there is one: from here on nothing of it is written.
func (e *Engine) endSessionLocked() {
	s := e.session
	if s == nil {
		return
	}
	e.session = nil
	e.endPeriodLocked(s, errClosed)
	s.cancel(errClosed)
}

// endPeriodLocked ends the period of a session, if it has one. Its goroutines are waited for by
// supervise.
func (e *Engine) endPeriodLocked(s *session, cause error) {
	if s.period != nil {
		s.period.cancel(cause)
		s.period = nil
	}
	e.resetLocked(cause)
}

// resetLocked tells all controllers to stop and forgets them, in the engine and in the metrics. It is
// the only place where either map is replaced. It returns the controllers, to be waited for.
func (e *Engine) resetLocked(cause error) []*controller {
	old := make([]*controller, 0, len(e.controllers))
	for _, ct := range e.controllers {
		ct.cancel(cause)
		old = append(old, ct)
	}
	e.controllers = make(map[int64]*controller)
	globalStats.reset(e)
	return old
}

// registerLocked makes ct the controller of its vdiff, in the engine and in the metrics.
func (e *Engine) registerLocked(ct *controller) {
	if before := e.controllers[ct.id]; before != nil {
		ct.metrics.follow(&before.metrics)
	}
	e.controllers[ct.id] = ct
	globalStats.add(e, ct)
}

// remove forgets the controller of a vdiff, if it still is ct.
func (e *Engine) remove(ct *controller) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.controllers[ct.id] == ct {
		delete(e.controllers, ct.id)
		globalStats.remove(e, ct.id)
	}
}

// controller returns the controller of a vdiff, nil if it has none.
func (e *Engine) controller(id int64) *controller {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.controllers[id]
}
