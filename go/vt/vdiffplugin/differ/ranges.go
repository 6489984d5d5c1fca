// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package differ

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"vitess.io/vitess/go/vt/log"
	"vitess.io/vitess/go/vt/vterrors"
	"vitess.io/vitess/go/vt/vttablet/tabletmanager/vdiff"

	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/fence"
	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/report"
	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/rowdiff"
	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/scan"
	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/sidecar"

	vtrpcpb "vitess.io/vitess/go/vt/proto/vtrpc"
)

// compareRanges compares the rows of the ranges that digests have left, of all tables in one fence: only here a
// difference is found to be one. Tables that it cannot compare are returned, to be compared row by row as a
// whole.
func (r *run) compareRanges(ctx context.Context, tables []*digestTable) (rows []*job, err error) {
	slices.SortFunc(tables, func(a, b *digestTable) int { return strings.Compare(a.job.table.Name, b.job.table.Name) })
	for try := 1; len(tables) > 0; try++ {
		n, err := r.tryRanges(ctx, tables)
		tables = tables[n:]
		if n > 0 {
			try = 1
		}
		if err == nil {
			continue
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if class, ok := sidecar.ClassOf(err); ok && class == sidecar.Permanent {
			return nil, err // no table's fault: the workflow is gone
		}
		hopeless := try >= maxTries || cannotScan(err) || errors.Is(err, rowdiff.ErrNotOrdered) || errors.Is(err, rowdiff.ErrMemory)
		var one *rangesError
		if hopeless && errors.As(err, &one) {
			log.Warn(fmt.Sprintf("vdiff %s: comparing the table row by row as a whole: %v", r.v.UUID, err))
			rows, tables, try = append(rows, tables[0].job), tables[1:], 0
			continue
		}
		if hopeless {
			log.Warn(fmt.Sprintf("vdiff %s: comparing %d tables row by row as a whole: %v", r.v.UUID, len(tables), err))
			break
		}
		wait := r.retryWait(try)
		log.Warn(fmt.Sprintf("vdiff %s: comparing the ranges that differ, trying again in %v: %v", r.v.UUID, wait, err))
		r.obs.Waiting(cut(fmt.Sprintf("another try, after: %v", err)))
		if err := sleep(ctx, wait); err != nil {
			return nil, err
		}
	}
	for _, t := range tables {
		rows = append(rows, t.job)
	}
	return rewound(rows), nil
}

// tryRanges compares the tables in one fence, one after the other, and returns how many are completed.
func (r *run) tryRanges(ctx context.Context, tables []*digestTable) (int, error) {
	rs, err := r.openReaders(ctx)
	if err != nil {
		return 0, err
	}
	if rs.streamed {
		return 0, scan.ErrUnsupported
	}
	if err := r.catchUp(ctx, rs.picked); err != nil {
		return 0, err
	}
	viewCtx, cancel := context.WithTimeoutCause(ctx, r.MaxSnapshotAge, errSnapshotAge)
	defer cancel()
	sources := make([]*rowStream, len(rs.sources))
	var target *rowStream
	defer func() {
		for _, s := range append(sources, target) {
			if s != nil {
				s.close()
			}
		}
	}()
	start := time.Now()
	err = r.Fences.Do(ctx, r.v, r.obs.Waiting, func(fenceCtx context.Context, f *fence.Fence) error {
		return r.openRanges(viewCtx, fenceCtx, f, rs, tables, sources, &target)
	})
	for _, t := range tables {
		r.obs.Phase(t.job.table.Name, phaseFence, time.Since(start))
	}
	if err != nil {
		return 0, err
	}
	defer r.obs.View()()
	for i, t := range tables {
		if err := r.compareTable(viewCtx, t, i, sources, target); err != nil {
			if ctx.Err() == nil && viewCtx.Err() != nil {
				err = sidecar.AsTransient(context.Cause(viewCtx))
			}
			return i, &rangesError{table: t.job.table.Name, err: err}
		}
	}
	return len(tables), nil
}

// rangesError is an error in the ranges of one table: the others may still be compared.
type rangesError struct {
	table string
	err   error
}

func (e *rangesError) Error() string { return fmt.Sprintf("table %s: %v", e.table, e.err) }

func (e *rangesError) Unwrap() error { return e.err }

// ErrorCode is part of vterrors.ErrorWithCode.
func (e *rangesError) ErrorCode() vtrpcpb.Code { return vterrors.Code(e.err) }

// openRanges opens the read views of all tables inside a fence: the sources' first, then, when the streams are at
// the sources' positions, the target's.
func (r *run) openRanges(ctx, fenceCtx context.Context, f *fence.Fence, rs *readers, tables []*digestTable, sources []*rowStream, target **rowStream) error {
	if err := r.waitForSources(fenceCtx, f.Streams(), rs.picked); err != nil {
		return err
	}
	positions := make(map[int32]string, len(sources))
	bounded, cancel := context.WithTimeoutCause(fenceCtx, 2*r.LockWait, errOpenWait)
	defer cancel()
	var g errgroup.Group
	for i, source := range rs.sources {
		tablet := rs.picked.sources[rs.streams[i]]
		g.Go(contained(func() (err error) {
			sources[i], err = openRows(ctx, bounded, source, r.rowsCall(tables, true), r.rowsProgress(tablet))
			return ofTablet(err, "source ", tablet)
		}))
	}
	if err := g.Wait(); err != nil {
		return err
	}
	for i, id := range rs.streams {
		positions[id] = sources[i].start.Position
	}
	if err := f.RunTo(fenceCtx, positions, r.replicationWait()); err != nil {
		return err
	}
	if err := r.waitForTarget(fenceCtx, rs.picked.target); err != nil {
		return err
	}
	opening, cancelOpening := context.WithTimeoutCause(fenceCtx, 2*r.LockWait, errOpenWait)
	defer cancelOpening()
	s, err := openRows(ctx, opening, rs.target, r.rowsCall(tables, false), r.rowsProgress(rs.picked.target))
	*target = s
	return ofTablet(err, "target ", rs.picked.target)
}

var errOpenWait = errors.New("a read view did not open within twice --vdiff-plugin-lock-wait")

func (r *run) rowsCall(tables []*digestTable, source bool) *scan.RowsCall {
	call := &scan.RowsCall{Lock: source, LockWait: r.LockWait}
	for _, t := range tables {
		read := scan.RowsRead{Table: t.target, Ranges: t.left, Buckets: t.buckets}
		if source {
			read.Table = t.source
		}
		call.Reads = append(call.Reads, read)
	}
	return call
}

// compareTable compares the ranges of table i and completes it.
func (r *run) compareTable(ctx context.Context, t *digestTable, i int, streams []*rowStream, target *rowStream) error {
	start := time.Now()
	j := t.job
	targetRows, err := target.open(ctx, i)
	if err != nil {
		return err
	}
	sources := make([]rowdiff.Source, len(streams))
	var fields *tableRows
	for n, s := range streams {
		rows, err := s.open(ctx, i)
		if err != nil {
			return err
		}
		sources[n], fields = rows, rows
	}
	// A copy of the report, so that a comparison that breaks leaves no counts behind.
	counted := report.NewBuilder(j.table, j.report.Report(), r.reportOptions())
	counted.AddMatching(t.verified)
	out := &sink{report: counted, source: fields.fields, target: targetRows.fields}
	done, err := rowdiff.Compare(ctx, j.table, t.buckets == nil, sources, targetRows, out, rowdiff.Options{MemoryLimit: r.MemoryLimit, Weigher: r})
	if err != nil {
		return err
	}
	doc, err := counted.Marshal()
	if err != nil {
		return err
	}
	result := counted.Report()
	err = r.Store.SaveProgress(ctx, r.v.ID, j.table.Name, &sidecar.Progress{
		RowsCompared: result.ProcessedRows, LastPK: boundPK(j.table, t.lastKey(done.Last)), Report: doc, Mismatch: result.Different(), State: vdiff.CompletedState,
	})
	if err != nil {
		return vterrors.Wrapf(err, "writing the progress of table %s", j.table.Name)
	}
	r.obs.RowsCompared(j.table.Name, done.Done)
	r.obs.Ranges(j.table.Name, t.parts, 0, 0)
	r.obs.Phase(j.table.Name, phaseCompare, time.Since(start))
	parts := fmt.Sprintf("%d ranges", len(t.left))
	if t.buckets != nil {
		parts = fmt.Sprintf("%d of %d buckets", len(t.buckets.Wanted), t.buckets.Buckets)
	}
	log.Info(fmt.Sprintf("vdiff %s: table %s: %d rows verified, %d compared in %s, different: %v", r.v.UUID, j.table.Name, t.verified, done.Done, parts, result.Different()))
	return nil
}
