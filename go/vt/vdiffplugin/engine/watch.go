// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"vitess.io/vitess/go/protoutil"
	"vitess.io/vitess/go/vt/log"
	"vitess.io/vitess/go/vt/topo"
	"vitess.io/vitess/go/vt/topo/topoproto"

	topodatapb "vitess.io/vitess/go/vt/proto/topodata"
)

// claim is what the shard record says of this tablet.
type claim int

const (
	claimUnknown claim = iota // no primary is named, or an older term than ours: not yet updated
	claimOurs                 // this tablet is the primary
	claimOthers               // another tablet has taken over
)

// claimOf reads a shard record. A tablet that has just become primary sees the record of its
// predecessor for a while; that one has an earlier term and is not meant to stop it.
func claimOf(record *topodatapb.Shard, tablet *topodatapb.Tablet) claim {
	switch {
	case record == nil || topoproto.TabletAliasIsZero(record.PrimaryAlias):
		return claimUnknown
	case topoproto.TabletAliasEqual(record.PrimaryAlias, tablet.Alias):
		return claimOurs
	case protoutil.TimeFromProto(tablet.PrimaryTermStartTime).After(protoutil.TimeFromProto(record.PrimaryTermStartTime)):
		return claimUnknown
	default:
		return claimOthers
	}
}

// What became of one watch.
type watchOutcome int

const (
	watchBroken watchOutcome = iota // to be opened again
	watchEnded                      // the session has ended
	watchReopen                     // a fenced engine is to open again
)

// follow follows the shard record while the session lasts. When another primary takes over it ends p.
// It returns true when after that the engine is to be opened again, and false when the session ends.
func (s *session) follow(p *period) bool {
	w := &shardWatch{session: s, period: p}
	pause := newBackoff(s.engine.cfg.WatchBackoff, s.engine.cfg.WatchBackoffMax)
	for {
		began := time.Now()
		outcome, err := w.once()
		switch outcome {
		case watchEnded:
			return false
		case watchReopen:
			return true
		}
		log.Warn(fmt.Sprintf("vdiff engine: the watch of the shard record ended, opening it again: %v", err))
		if time.Since(began) > s.engine.cfg.WatchBackoffMax {
			pause.reset()
		}
		timer := time.NewTimer(pause.pause())
		reopen := w.mayReopen(timer.C)
		timer.Stop()
		switch {
		case s.ctx.Err() != nil:
			return false
		case reopen:
			return true
		}
	}
}

// shardWatch is what follow knows.
type shardWatch struct {
	session *session
	period  *period           // nil when it was ended because another primary took over
	newest  *topodatapb.Shard // nil when none was read
}

// mayReopen waits until timeout or until the session ends, and returns true early when the engine is
// fenced and Open was called for good reason.
func (w *shardWatch) mayReopen(timeout <-chan time.Time) bool {
	for {
		select {
		case <-w.session.ctx.Done():
			return false
		case <-timeout:
			return false
		case <-w.session.reopen:
			if w.told() {
				return true
			}
		}
	}
}

// told says whether a fenced engine is to open because Open was called. The newest record decides: as
// long as it names another tablet with a later term, that one is the primary.
func (w *shardWatch) told() bool {
	if w.period != nil {
		return false
	}
	if claimOf(w.newest, w.session.engine.cfg.Tablet()) == claimOthers {
		log.Warn("vdiff engine: not opening, since the shard record still names another primary")
		return false
	}
	return true
}

// once opens a watch and follows it until it breaks.
func (w *shardWatch) once() (outcome watchOutcome, err error) {
	defer contain("watching the shard record", &err)
	s := w.session
	ctx, cancel := context.WithCancel(s.ctx)
	tablet := s.engine.cfg.Tablet()
	current, changes, err := s.engine.cfg.Topo.WatchShard(ctx, tablet.Keyspace, tablet.Shard)
	defer func() {
		cancel()
		drain(changes)
	}()
	switch {
	case s.ctx.Err() != nil:
		return watchEnded, nil
	case err != nil:
		globalStats.watchErrors.Add(1)
		return watchBroken, err
	case changes == nil:
		globalStats.nilEvents.Add(1)
		return watchBroken, errors.New("watch without a channel")
	}
	event := current
	for {
		record, err := recordOf(event)
		if err != nil {
			return watchBroken, err
		}
		if w.take(record) {
			return watchReopen, nil
		}
		select {
		case <-s.ctx.Done():
			return watchEnded, nil
		case <-s.reopen:
			if w.told() {
				return watchReopen, nil
			}
			event = &topo.WatchShardData{Value: record}
		case next, ok := <-changes:
			if !ok {
				if s.ctx.Err() != nil {
					return watchEnded, nil
				}
				globalStats.watchErrors.Add(1)
				return watchBroken, errors.New("the channel was closed")
			}
			event = next
		}
	}
}

// take acts on a shard record. It returns true when a fenced engine is to open again.
func (w *shardWatch) take(record *topodatapb.Shard) bool {
	w.newest = record
	e := w.session.engine
	switch c := claimOf(record, e.cfg.Tablet()); {
	case c == claimOthers && w.period != nil:
		log.Warn(fmt.Sprintf("vdiff engine: tablet %s has become primary of the shard: stopping all vdiffs", topoproto.TabletAliasString(record.PrimaryAlias)))
		p := w.period
		w.period = nil
		e.fence(w.session, p)
	case c == claimOurs && w.period == nil:
		log.Info("vdiff engine: this tablet is primary of the shard again")
		return true
	}
	return false
}

// fence ends a period because another tablet is the primary. It returns when nothing of it runs.
func (e *Engine) fence(s *session, p *period) {
	e.mu.Lock()
	if s.period == p {
		e.endPeriodLocked(s, errFenced)
		s.fenced = true
		select {
		case <-s.reopen: // a token of before
		default:
		}
	}
	e.mu.Unlock()
	p.wg.Wait()
}

// recordOf returns the shard record of an event, or why it has none.
func recordOf(event *topo.WatchShardData) (*topodatapb.Shard, error) {
	switch {
	case event == nil:
		globalStats.nilEvents.Add(1)
		return nil, errors.New("nil event")
	case event.Err != nil:
		globalStats.watchErrors.Add(1)
		return nil, event.Err
	case event.Value == nil:
		globalStats.nilEvents.Add(1)
		return nil, errors.New("event without a record")
	}
	return event.Value, nil
}

// drain takes what a cancelled watch still sends, so that its sender can end.
func drain(changes <-chan *topo.WatchShardData) {
	if changes == nil {
		return
	}
	limit := time.NewTimer(time.Second)
	defer limit.Stop()
	for {
		select {
		case _, ok := <-changes:
			if !ok {
				return
			}
		case <-limit.C:
			return
		}
	}
}
