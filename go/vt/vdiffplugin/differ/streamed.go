// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package differ

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"vitess.io/vitess/go/mysql/replication"
	"vitess.io/vitess/go/vt/topo/topoproto"
	"vitess.io/vitess/go/vt/vterrors"

	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/pkrange"
	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/plan"
	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/rowdiff"
	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/scan"
	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/sidecar"
	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/verify"

	querypb "vitess.io/vitess/go/vt/proto/query"
)

// workStreamed is work where a source has no scan service: the rows of the sources come by VStreamRows and are compared, by
// value, with those of the target. Nothing else is different: the target's read view with its positions comes first, every
// source's read view is opened when the source has executed these positions, and unequal ranges prove nothing yet.
func (d *digests) workStreamed(ctx context.Context, tasks []verify.Task, rs *readers) error {
	for i, task := range tasks {
		walk, outcome, err := d.streamTask(ctx, task, rs)
		switch {
		case err != nil:
			return d.failed(ctx, tasks[i:], rs, err)
		case walk == nil:
			continue
		}
		d.walked([]verify.Task{task}, &scan.Answer{Digests: []scan.Digest{*walk}}, outcome.Took)
		d.learnBounds(ctx, rs, task, walk)
		if err := d.settled(ctx, []verify.Task{task}, []verify.Outcome{outcome}); err != nil {
			return err
		}
	}
	return nil
}

// streamTask compares the rows of one task: how far it came on the target, nil when the table was left to the row way, and what it found. Its
// read views are closed when it returns.
func (d *digests) streamTask(ctx context.Context, task verify.Task, rs *readers) (*scan.Digest, verify.Outcome, error) {
	t := d.table(task)
	j := t.job
	if task.Buckets > 0 || !j.checkpoints() {
		d.toRows(task.Table, "a source has no scan service, and rows that come by VStreamRows have to be in the order of a unique key")
		return nil, verify.Outcome{}, nil
	}
	after, sourcePK, err := rowOfBound(j.table, task.Range.After)
	if err != nil {
		d.toRows(task.Table, err.Error())
		return nil, verify.Outcome{}, nil
	}
	upTo, _, err := rowOfBound(j.table, task.Range.UpTo)
	if err != nil {
		d.toRows(task.Table, err.Error())
		return nil, verify.Outcome{}, nil
	}
	started := time.Now()
	ctx, cancel := context.WithTimeoutCause(ctx, d.r.MaxSnapshotAge, sidecar.AsTransient(errSnapshotAge))
	defer cancel()
	defer d.r.obs.View()()
	vs, err := d.openStreamed(ctx, t, task.Range, sourcePK, rs)
	defer vs.close()
	if err != nil {
		return nil, verify.Outcome{}, err
	}
	rows, err := vs.target.open(ctx, 0)
	if err != nil {
		return nil, verify.Outcome{}, err
	}
	sources, meters := make([]rowdiff.Source, len(vs.sources)), make([]*meter, 1+len(vs.sources))
	meters[0] = &meter{source: rows}
	for i, s := range vs.sources {
		meters[i+1] = &meter{source: s}
		sources[i] = meters[i+1]
	}
	var found tally
	done, err := rowdiff.Compare(ctx, j.table, true, sources, meters[0], &found, rowdiff.Options{
		MaxRows: task.Limit, After: after, UpTo: upTo, MemoryLimit: d.r.MemoryLimit,
		Progress: func(int64, scan.Row) error {
			d.r.obs.Waiting("")
			if task.MaxTime > 0 && time.Since(started) > task.MaxTime || task.MaxBytes > 0 && meters[0].bytes > task.MaxBytes {
				return rowdiff.ErrStop
			}
			return nil
		},
	})
	if err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return nil, verify.Outcome{}, err
	}
	walk := scan.Digest{Read: found.target, Bytes: meters[0].bytes}
	if done.Last.Lengths != nil {
		if walk.Last, err = keyBound(j.table, done.Last.SQLValues(targetTypes(j.table))); err != nil {
			d.toRows(task.Table, err.Error())
			return nil, verify.Outcome{}, nil
		}
	}
	if done.Stopped {
		walk.UpTo = walk.Last
	}
	for _, m := range meters {
		d.r.obs.Read(m.rows, m.bytes)
	}
	return &walk, verify.Outcome{
		Equal: !found.different, TargetRows: found.target, SourceRows: found.source, SamePosition: vs.samePositions(), Took: time.Since(started),
	}, nil
}

// rowOfBound returns a bound as a row with the key's columns, and as the lastpk that a source's VStreamRows takes.
func rowOfBound(t *plan.Table, bound pkrange.Bound) (scan.Row, *querypb.QueryResult, error) {
	if len(bound) == 0 {
		return scan.Row{}, nil, nil
	}
	lastPK := boundPK(t, bound)
	if lastPK == nil {
		return scan.Row{}, nil, fmt.Errorf("a range ends at a key that VStreamRows cannot be told")
	}
	source, target, err := plan.DecodeLastPK(t, lastPK)
	if err != nil {
		return scan.Row{}, nil, err
	}
	row, err := rowOfKey(t, target)
	return row, source, err
}

// streamedViews are the read views of one task.
type streamedViews struct {
	target    *rowStream
	sources   []*scan.Stream // in the order of run.shards
	positions []string       // of the target's streams, likewise
}

func (vs *streamedViews) close() {
	for _, s := range vs.sources {
		if s != nil {
			s.Close()
		}
	}
	if vs.target != nil {
		vs.target.close()
	}
}

// samePositions says whether no source had executed more than the target's streams had applied.
func (vs *streamedViews) samePositions() bool {
	for i, s := range vs.sources {
		applied, err := replication.DecodePosition(vs.positions[i])
		if err != nil {
			return false
		}
		executed, err := replication.DecodePosition(s.Position())
		if err != nil || !applied.AtLeast(executed) {
			return false
		}
	}
	return true
}

// openStreamed opens the read views: the target's, and then those of the sources at positions that are not before the
// target's. What it returns is to be closed in any case.
func (d *digests) openStreamed(ctx context.Context, t *digestTable, r pkrange.Range, sourcePK *querypb.QueryResult, rs *readers) (*streamedViews, error) {
	vs := &streamedViews{sources: make([]*scan.Stream, len(rs.streams)), positions: make([]string, len(rs.streams))}
	var err error
	vs.target, err = openRows(ctx, ctx, rs.target, &scan.RowsCall{
		Streams: rs.streams, Reads: []scan.RowsRead{{Table: t.target, Ranges: []pkrange.Range{r}}},
	}, d.r.rowsProgress(rs.picked.target))
	if err != nil {
		return vs, ofTablet(err, "target ", rs.picked.target)
	}
	g, gctx := errgroup.WithContext(ctx)
	for i, id := range rs.streams {
		g.Go(contained(func() (err error) {
			tablet := rs.picked.sources[id]
			if vs.positions[i], err = decodePosition(vs.target.start.Positions[id]); err != nil {
				return vterrors.Wrapf(err, "position of stream %d", id)
			}
			waitCtx, cancel := context.WithTimeout(gctx, d.r.replicationWait())
			defer cancel()
			if err := d.r.tmc.WaitForPosition(waitCtx, tablet, vs.positions[i]); err != nil {
				return sidecar.AsTransient(vterrors.Wrapf(err, "source tablet %s did not reach the position of the workflow within %v",
					topoproto.TabletAliasString(tablet.Alias), d.r.replicationWait()))
			}
			vs.sources[i], err = d.r.Dialer.Open(ctx, scan.Request{
				Tablet: tablet, OtherCluster: d.r.sourceTopo != d.r.TopoServer, Query: t.job.table.SourceQuery, LastPK: sourcePK,
				OpenTimeout: d.r.LockWait, Throttled: d.r.throttled(tablet),
			})
			return vterrors.Wrap(err, "source")
		}))
	}
	return vs, g.Wait()
}

// meter counts what a source of rows brings.
type meter struct {
	source      rowdiff.Source
	rows, bytes int64
}

// Next is part of rowdiff.Source.
func (m *meter) Next(ctx context.Context) (*scan.Batch, error) {
	b, err := m.source.Next(ctx)
	if err == nil {
		m.rows += int64(b.Len())
		m.bytes += int64(b.Bytes())
	}
	return b, err
}

// tally is a sink that only counts the rows of both sides.
type tally struct {
	source, target int64
	different      bool
}

var _ rowdiff.Sink = (*tally)(nil)

// Match is part of rowdiff.Sink.
func (c *tally) Match() {
	c.source++
	c.target++
}

// Mismatch is part of rowdiff.Sink.
func (c *tally) Mismatch(_, _ scan.Row) error {
	c.Match()
	c.different = true
	return nil
}

// ExtraSource is part of rowdiff.Sink.
func (c *tally) ExtraSource(scan.Row) error {
	c.source++
	c.different = true
	return nil
}

// ExtraTarget is part of rowdiff.Sink.
func (c *tally) ExtraTarget(scan.Row) error {
	c.target++
	c.different = true
	return nil
}
