// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"math"
	"time"

	"golang.org/x/sync/errgroup"

	"vitess.io/vitess/go/protoutil"
	"vitess.io/vitess/go/vt/vtctl/vtctldclient"
	"vitess.io/vitess/go/vt/vtctl/workflow"
	"vitess.io/vitess/go/vt/vttablet/tabletmanager/vdiff"

	tabletmanagerdatapb "vitess.io/vitess/go/vt/proto/tabletmanagerdata"
	topodatapb "vitess.io/vitess/go/vt/proto/topodata"
	vtctldatapb "vitess.io/vitess/go/vt/proto/vtctldata"

	_ "vitess.io/vitess/go/vt/vtctl/grpcvtctldclient" // how vtctldclient.New speaks

	"github.com/vttablet-ext/vttablet-ext/test/endtoend/cluster"
)

// longestRun is when a vdiff that does not complete is given up.
const longestRun = 30 * time.Minute

// measure runs a scenario with both engines in turn, and removes its workflow in the end.
func (b *bench) measure(ctx context.Context, s scenario) (*Result, error) {
	logf("%s: %s, %d tables, %d rows", s.name, s.what, len(s.tables), s.totalRows())
	if err := b.load(ctx, s); err != nil {
		return nil, err
	}
	w, err := b.copy(ctx, s)
	if err != nil {
		return nil, err
	}
	r := &Result{Name: s.name, What: s.what, Tables: len(s.tables), Rows: s.totalRows()}
	if s.floor {
		if r.Floor, err = b.floor(ctx, s); err != nil {
			return nil, err
		}
	}
	for i := range b.cfg.runs {
		for _, stock := range []bool{i%2 == 0, i%2 != 0} { // each engine is the first one in turn
			if err := b.restart(ctx, w, stock); err != nil {
				return nil, err
			}
			m, err := b.vdiff(ctx, s, w)
			if err != nil {
				return nil, fmt.Errorf("%s, run %d: %w", engineName(stock), i+1, err)
			}
			logf("%s: run %d of %d, %s: %s", s.name, i+1, b.cfg.runs, engineName(stock), m)
			if stock {
				r.Stock.Runs = append(r.Stock.Runs, m)
			} else {
				r.Plugin.Runs = append(r.Plugin.Runs, m)
			}
		}
	}
	r.summarize()
	return r, w.Cancel(ctx, "MoveTables")
}

func engineName(stock bool) string {
	if stock {
		return "stock"
	}
	return "plugin"
}

// floor times the least that a comparison can cost: every mysqld reads and hashes its rows, all at once. It also warms both.
func (b *bench) floor(ctx context.Context, s scenario) (Seconds, error) {
	var second time.Duration
	for range 2 {
		started := time.Now()
		group, groupCtx := errgroup.WithContext(ctx)
		for _, t := range append(b.primaries(s.from), b.primaries(s.to)...) {
			group.Go(func() error { return t.Exec(groupCtx, "checksum table "+s.tables[0].Name) })
		}
		if err := group.Wait(); err != nil {
			return 0, err
		}
		second = time.Since(started)
	}
	return seconds(second), nil
}

// vdiff runs one vdiff, measures it, checks its verdict and deletes it.
func (b *bench) vdiff(ctx context.Context, s scenario, w *cluster.Workflow) (m Measurement, err error) {
	ctx, cancel := context.WithTimeout(ctx, longestRun)
	defer cancel()
	targets, sources := b.primaries(s.to), b.primaries(s.from)
	watch, err := newWatch(ctx, w, targets)
	if err != nil {
		return m, err
	}
	defer watch.close()
	usage, err := newUsage(targets, sources)
	if err != nil {
		return m, err
	}
	group, groupCtx := errgroup.WithContext(ctx)
	started := time.Now()
	var id string
	group.Go(func() (err error) {
		id, err = b.create(groupCtx, w)
		return err
	})
	group.Go(func() error { return watch.run(groupCtx, usage.sample) })
	if err := group.Wait(); err != nil {
		return m, err
	}
	if m, err = usage.since(); err != nil {
		return m, err
	}
	elapsed := watch.ended.Sub(started)
	m.Seconds = seconds(elapsed)
	m.RowsPerSecond = int64(math.Round(float64(s.totalRows()) / elapsed.Seconds()))
	m.Stopped, m.LongestStop = seconds(watch.stopped), seconds(watch.longestStop)
	summary, err := w.VDiffShow(ctx, id)
	if err != nil {
		return m, err
	}
	if err := checkVerdict(summary, s); err != nil {
		return m, err
	}
	_, err = w.VDiff(ctx, "delete", id)
	return m, err
}

// create asks vtctld for a vdiff as `vtctldclient VDiff create` does without further flags, but without the time that the
// start of a process takes. It returns the vdiff's UUID.
func (b *bench) create(ctx context.Context, w *cluster.Workflow) (string, error) {
	vtctld, err := vtctldclient.New(ctx, "grpc", b.c.VtctldAddr())
	if err != nil {
		return "", err
	}
	defer vtctld.Close()
	autoStart := true
	resp, err := vtctld.VDiffCreate(ctx, &vtctldatapb.VDiffCreateRequest{
		Workflow:                    w.Name,
		TargetKeyspace:              w.Keyspace,
		TabletTypes:                 []topodatapb.TabletType{topodatapb.TabletType_RDONLY, topodatapb.TabletType_REPLICA, topodatapb.TabletType_PRIMARY},
		TabletSelectionPreference:   tabletmanagerdatapb.TabletSelectionPreference_INORDER,
		Limit:                       math.MaxInt64,
		FilteredReplicationWaitTime: protoutil.DurationToProto(workflow.DefaultTimeout),
		MaxExtraRowsToCompare:       1000,
		MaxReportSampleRows:         10,
		RowDiffColumnTruncateAt:     128,
		WaitUpdateInterval:          protoutil.DurationToProto(time.Minute),
		AutoRetry:                   true,
		AutoStart:                   &autoStart,
	})
	return resp.GetUUID(), err
}

// checkVerdict returns an error unless all rows of all tables were found equal.
func checkVerdict(summary *workflow.Summary, s scenario) error {
	if summary.State != vdiff.CompletedState || len(summary.Errors) > 0 {
		return fmt.Errorf("vdiff %s is %s, errors %v", summary.UUID, summary.State, summary.Errors)
	}
	if len(summary.TableSummaryMap) != len(s.tables) {
		return fmt.Errorf("vdiff %s has %d tables of %d", summary.UUID, len(summary.TableSummaryMap), len(s.tables))
	}
	for name, t := range summary.TableSummaryMap {
		if t.State != vdiff.CompletedState || t.MatchingRows != s.rows || t.RowsCompared != s.rows ||
			t.MismatchedRows != 0 || t.ExtraRowsSource != 0 || t.ExtraRowsTarget != 0 {
			return fmt.Errorf("vdiff %s: table %s has %d rows, all equal, but the verdict is %+v", summary.UUID, name, s.rows, t)
		}
	}
	if summary.HasMismatch {
		return fmt.Errorf("vdiff %s says that there is a mismatch, but no table has one", summary.UUID)
	}
	return nil
}
