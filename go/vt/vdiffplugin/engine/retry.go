// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"
	"time"

	"vitess.io/vitess/go/vt/log"
	"vitess.io/vitess/go/vt/vttablet/tabletmanager/vdiff"

	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/sidecar"
)

// retryErrored is the retry goroutine of a period. Every RetryInterval it looks at what went wrong, every RepairInterval at what was left
// stopped.
func (e *Engine) retryErrored(p *period) {
	retries, repairs := time.NewTicker(e.cfg.RetryInterval), time.NewTicker(e.cfg.RepairInterval)
	defer retries.Stop()
	defer repairs.Stop()
	due := make(schedule)
	for {
		select {
		case <-p.ctx.Done():
			return
		case <-repairs.C:
			e.repairPass(p)
			continue
		case <-retries.C:
		}
		if err := e.retryPass(p, due); err != nil && p.ctx.Err() == nil {
			log.Error(fmt.Sprintf("vdiff engine: retrying errored vdiffs: %v", err))
		}
	}
}

func (e *Engine) repairPass(p *period) {
	repair := func() (err error) {
		defer contain("repairing stopped streams", &err)
		return e.cfg.Repair(p.ctx)
	}
	if err := repair(); err != nil && p.ctx.Err() == nil {
		log.Error(fmt.Sprintf("vdiff engine: repairing stopped streams: %v", err))
	}
}

func (e *Engine) retryPass(p *period, due schedule) (err error) {
	defer contain("retrying", &err)
	errored, err := e.cfg.Store.ErroredVDiffs(p.ctx)
	if err != nil {
		return err
	}
	for _, v := range due.take(errored, time.Now(), e.cfg) {
		if err := e.retry(p, v); err != nil {
			return err
		}
	}
	return e.runForgotten(p)
}

// retry runs one errored vdiff again, unless somebody is changing it just now.
func (e *Engine) retry(p *period, v *sidecar.Errored) error {
	release, ok := e.slots.try(v.UUID)
	if !ok {
		return nil
	}
	defer release()
	if ct := e.controller(v.ID); ct != nil && !ct.hasEnded() {
		return nil
	}
	retried, err := e.cfg.Store.RetryVDiff(p.ctx, v.ID)
	if err != nil || !retried {
		return err
	}
	log.Info(fmt.Sprintf("vdiff %s of workflow %s: retry %d of at most %d", v.UUID, v.Workflow, max(1, v.Failure.Attempt), e.cfg.MaxRetries))
	again := *v.VDiff
	again.State, again.LastError = vdiff.PendingState, ""
	e.launch(p, &again)
	return nil
}

// runForgotten runs the vdiffs that are pending or started and have no controller: a connection that
// broke while one was created, resumed or retried leaves open whether it was recorded.
func (e *Engine) runForgotten(p *period) error {
	vdiffs, err := e.cfg.Store.VDiffsToRun(p.ctx)
	if err != nil {
		return err
	}
	for _, v := range vdiffs {
		if err := e.runIfForgotten(p, v.ID, v.UUID); err != nil {
			return err
		}
	}
	return nil
}

func (e *Engine) runIfForgotten(p *period, id int64, uuid string) error {
	if !e.forgotten(id) {
		return nil
	}
	release, ok := e.slots.try(uuid)
	if !ok {
		return nil
	}
	defer release()
	// Only now nobody changes it: what was read before may be old.
	v, err := e.cfg.Store.VDiffByUUID(p.ctx, uuid)
	if err != nil || v == nil || !e.forgotten(v.ID) {
		return err
	}
	if v.State != vdiff.PendingState && v.State != vdiff.StartedState {
		return nil
	}
	log.Warn(fmt.Sprintf("vdiff %s of workflow %s: is %s but was not run: running it", v.UUID, v.Workflow, v.State))
	e.launch(p, v)
	return nil
}

// forgotten says whether nothing runs a vdiff and nothing was found unable to.
func (e *Engine) forgotten(id int64) bool {
	ct := e.controller(id)
	return ct == nil || ct.hasEnded() && !ct.metrics.abandoned()
}

// schedule has the time at which each errored vdiff is retried, by its id. It belongs to the retry
// goroutine.
type schedule map[int64]dueTime

type dueTime struct {
	attempt int
	at      time.Time
}

// take returns the vdiffs that are to be retried now, and notes when the others are. Permanent errors
// are not retried, and neither are those that came back too often.
func (s schedule) take(errored []*sidecar.Errored, now time.Time, cfg Config) []*sidecar.Errored {
	var ready []*sidecar.Errored
	seen := make(map[int64]bool, len(errored))
	for _, v := range errored {
		if v.Failure.Class != sidecar.Transient || v.Failure.Attempt > cfg.MaxRetries || cfg.MaxRetries == 0 {
			continue
		}
		seen[v.ID] = true
		d, known := s[v.ID]
		if !known || d.attempt != v.Failure.Attempt {
			d = dueTime{attempt: v.Failure.Attempt, at: now.Add(retryPause(v.Failure.Attempt, cfg))}
			s[v.ID] = d
		}
		if !now.Before(d.at) {
			ready = append(ready, v)
			// Should the retry not happen, or fail before it is counted, it is tried again later.
			s[v.ID] = dueTime{attempt: d.attempt, at: now.Add(cfg.RetryInterval)}
		}
	}
	for id := range s {
		if !seen[id] {
			delete(s, id)
		}
	}
	return ready
}

// retryPause returns how long to wait after a failure is seen. The look at the errored vdiffs that
// sees it comes up to one interval after it, so the first pause has passed by then.
func retryPause(attempt int, cfg Config) time.Duration {
	if attempt <= 1 {
		return 0
	}
	pause := cfg.RetryInterval
	for range attempt - 2 {
		if pause = 2 * pause; pause >= cfg.RetryBackoffMax {
			break
		}
	}
	return min(pause, cfg.RetryBackoffMax)
}
