// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package differ

import (
	"context"
	"errors"
	"time"

	"golang.org/x/sync/errgroup"

	"vitess.io/vitess/go/mysql/replication"
	"vitess.io/vitess/go/vt/binlog/binlogplayer"
	"vitess.io/vitess/go/vt/vterrors"

	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/fence"
	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/scan"
)

// The phases of a table, as the metrics name them.
const (
	phaseFence   = "fence"
	phaseSource  = "opening_source_streams"
	phaseSync    = "syncing_target_streams"
	phaseTarget  = "opening_target_stream"
	phaseCompare = "diffing_table"
)

// views are the read views of one table, on all sides at equal positions.
type views struct {
	sources []*scan.Stream // in the order of run.shards
	target  *scan.Stream
	opened  time.Time
}

func (vs *views) close() {
	for _, s := range vs.sources {
		if s != nil {
			s.Close()
		}
	}
	if vs.target != nil {
		vs.target.Close()
	}
}

// fenceBudget is how long a fence goes on opening views of further tables. The rest gets a fence of
// its own, so that the workflow is never stopped for long.
const fenceBudget = time.Second

// openBatch opens the views of as many of the jobs as one fence has time for, and calls opened or
// failed for each of those, in order. It returns how many jobs that were. An error is one of the
// fence and not of a table.
func (r *run) openBatch(ctx context.Context, jobs []*job, opened func(*job, *views), failed func(*job, error)) (int, error) {
	picked, err := r.pickTablets(ctx)
	if err != nil {
		return 0, err
	}
	if err := r.catchUp(ctx, picked); err != nil {
		return 0, err
	}
	n := 0
	start := time.Now()
	err = r.Fences.Do(ctx, r.v, r.obs.Waiting, func(fenceCtx context.Context, f *fence.Fence) error {
		if err := r.waitForSources(fenceCtx, f.Streams(), picked); err != nil {
			return err
		}
		for _, j := range jobs {
			if n > 0 && f.Age() > fenceBudget {
				return nil
			}
			vs, err := r.openViews(ctx, fenceCtx, f, picked, j)
			var broken *fenceError
			if errors.As(err, &broken) {
				return broken.err
			}
			n++
			if err != nil {
				failed(j, err)
				continue
			}
			opened(j, vs)
		}
		return nil
	})
	for _, j := range jobs[:n] {
		r.obs.Phase(j.table.Name, phaseFence, time.Since(start))
	}
	return n, err
}

// catchUp waits, while the streams still run, for tablets that are replicas and lag: the same waits
// inside the fence are then short.
func (r *run) catchUp(ctx context.Context, picked *tablets) error {
	streams, err := r.Store.Streams(ctx, r.v.Workflow)
	if err != nil {
		return err
	}
	if err := fence.Check(r.v.Workflow, streams); err != nil {
		return err
	}
	r.obs.Waiting("replicas to catch up")
	defer r.obs.Waiting("")
	if err := r.waitForSources(ctx, streams, picked); err != nil {
		return err
	}
	return r.waitForTarget(ctx, picked.target)
}

// fenceError wraps an error that is not one table's: the fence ends with it.
type fenceError struct{ err error }

func (e *fenceError) Error() string { return e.err.Error() }

// openViews opens the read views of one table inside a fence. The views live on under ctx; fenceCtx
// ends with the fence.
func (r *run) openViews(ctx, fenceCtx context.Context, f *fence.Fence, picked *tablets, j *job) (_ *views, err error) {
	vs := &views{sources: make([]*scan.Stream, len(r.shards)), opened: time.Now()}
	defer func() {
		if err != nil {
			vs.close()
		}
	}()
	start := time.Now()
	var g errgroup.Group
	for i, s := range r.shards {
		g.Go(contained(func() (err error) {
			tablet := picked.sources[s.streamID]
			vs.sources[i], err = r.Dialer.Open(ctx, scan.Request{
				Tablet: tablet, OtherCluster: r.sourceTopo != r.TopoServer, Query: j.table.SourceQuery, LastPK: j.sourcePK,
				OpenTimeout: j.openWait(), Throttled: r.throttled(tablet),
			})
			return err
		}))
	}
	if err := g.Wait(); err != nil {
		return nil, vterrors.Wrap(err, "source")
	}
	r.obs.Phase(j.table.Name, phaseSource, time.Since(start))

	start = time.Now()
	positions := make(map[int32]string, len(r.shards))
	for i, s := range r.shards {
		positions[s.streamID] = vs.sources[i].Position()
	}
	if err := f.RunTo(fenceCtx, positions, r.replicationWait()); err != nil {
		return nil, &fenceError{err}
	}
	r.obs.Phase(j.table.Name, phaseSync, time.Since(start))

	start = time.Now()
	if err := r.waitForTarget(fenceCtx, picked.target); err != nil {
		return nil, &fenceError{err}
	}
	vs.target, err = r.Dialer.Open(ctx, scan.Request{
		Tablet: picked.target, Query: j.table.TargetQuery, LastPK: j.targetPK, OpenTimeout: j.openWait(), Throttled: r.throttled(picked.target),
	})
	if err != nil {
		return nil, vterrors.Wrap(err, "target")
	}
	r.obs.Phase(j.table.Name, phaseTarget, time.Since(start))
	vs.opened = time.Now()
	return vs, nil
}

// decodePosition brings a stored position, which may be compressed, to the form that RPCs take.
func decodePosition(stored string) (string, error) {
	pos, err := binlogplayer.DecodePosition(stored)
	if err != nil {
		return "", err
	}
	return replication.EncodePosition(pos), nil
}
