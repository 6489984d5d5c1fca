// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
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
	"github.com/vttablet-ext/vttablet-ext/test/endtoend/load"
)

// longestRun is when a vdiff that does not complete is given up.
const longestRun = 30 * time.Minute

// measure runs a scenario with both engines in turn, and removes its workflow in the end.
func (b *bench) measure(ctx context.Context, s scenario) (*Result, error) {
	logf("%s: %s, %d tables, %d rows", s.name, s.what, len(s.tables), s.totalRows())
	if err := b.load(ctx, s); err != nil {
		return nil, err
	}
	if err := b.restartSources(ctx, s.from, s.stockSource); err != nil {
		return nil, err
	}
	w, err := b.copy(ctx, s)
	if err != nil {
		return nil, err
	}
	r := &Result{Name: s.name, What: s.what, Tables: len(s.tables), Rows: s.totalRows()}
	if s.floor { // the first one warms all mysqlds
		if _, err := b.floor(ctx, s); err != nil {
			return nil, err
		}
	}
	var floors []Seconds
	for i := range b.cfg.runs {
		if s.floor {
			floor, err := b.floor(ctx, s)
			if err != nil {
				return nil, err
			}
			floors = append(floors, floor)
		}
		for _, stock := range []bool{i%2 == 0, i%2 != 0} { // each engine is the first one in turn
			if err := b.restart(ctx, w, stock); err != nil {
				return nil, err
			}
			m, err := b.run(ctx, s, w)
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
	if s.floor {
		r.Floor = median(floors, func(f Seconds) Seconds { return f })
	}
	r.summarize(s.limits)
	return r, errors.Join(w.Cancel(ctx, "MoveTables"), b.restartSources(ctx, s.from, false))
}

func engineName(stock bool) string {
	if stock {
		return "stock"
	}
	return "plugin"
}

// floor times the least that a comparison can cost: every mysqld reads and hashes its rows, all at once.
func (b *bench) floor(ctx context.Context, s scenario) (Seconds, error) {
	started := time.Now()
	group, groupCtx := errgroup.WithContext(ctx)
	for _, t := range append(b.primaries(s.from), b.primaries(s.to)...) {
		group.Go(func() error { return t.Exec(groupCtx, "checksum table "+s.tables[0].Name) })
	}
	err := group.Wait()
	return seconds(time.Since(started)), err
}

// run measures one vdiff, with the writes of the scenario meanwhile. When they have ended, another vdiff must find that
// every row is there and equal.
func (b *bench) run(ctx context.Context, s scenario, w *cluster.Workflow) (m Measurement, err error) {
	if s.writes == 0 {
		return b.vdiff(ctx, s, w, func() int64 { return 0 })
	}
	churn := &load.Churn{Table: s.tables[0], Rows: s.rows, Set: churned, PerSecond: s.writes}
	churn.Start(ctx, b.primaries(s.from)[0])
	m, err = b.vdiffOfChurn(ctx, s, w, churn)
	perSecond, stopErr := churn.Stop()
	if err := errors.Join(err, stopErr); err != nil {
		return m, err
	}
	m.ChangesPerSecond = int64(math.Round(perSecond))
	if _, err := b.vdiff(ctx, s, w, func() int64 { return 0 }); err != nil {
		return m, fmt.Errorf("after the writes: %w", err)
	}
	return m, nil
}

// vdiffOfChurn measures a vdiff that begins when the writes have reached their rate.
func (b *bench) vdiffOfChurn(ctx context.Context, s scenario, w *cluster.Workflow, churn *load.Churn) (Measurement, error) {
	waitCtx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	err := cluster.WaitFor(waitCtx, "the first writes", pollEvery, func(context.Context) (bool, error) {
		return churn.Changes() >= int64(s.writes), nil
	})
	if err != nil {
		return Measurement{}, err
	}
	return b.vdiff(ctx, s, w, churn.MostMissing)
}

// vdiff runs one vdiff, measures it, checks its verdict and deletes it. missing is how many rows of the table may be missing, asked
// for in the end.
func (b *bench) vdiff(ctx context.Context, s scenario, w *cluster.Workflow, missing func() int64) (m Measurement, err error) {
	ctx, cancel := context.WithTimeout(ctx, longestRun)
	defer cancel()
	o, err := b.observe(ctx, s, w)
	if err != nil {
		return m, err
	}
	defer o.close()
	var id string
	if m, id, err = o.run(ctx, func(ctx context.Context) (string, error) { return b.create(ctx, w) }); err != nil {
		return m, err
	}
	m.RowsPerSecond = int64(math.Round(float64(s.totalRows()) / float64(m.Seconds)))
	summary, err := w.VDiffShow(ctx, id)
	if err != nil {
		return m, err
	}
	if err := checkVerdict(summary, s, missing()); err != nil {
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
	request := &vtctldatapb.VDiffCreateRequest{
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
	}
	resp, err := vtctld.VDiffCreate(ctx, request)
	return resp.GetUUID(), err
}

// checkVerdict returns an error unless all rows of all tables were found equal. In each so many may be missing.
func checkVerdict(summary *workflow.Summary, s scenario, missing int64) error {
	if summary.State != vdiff.CompletedState || len(summary.Errors) > 0 {
		return fmt.Errorf("vdiff %s is %s, errors %v", summary.UUID, summary.State, summary.Errors)
	}
	if len(summary.TableSummaryMap) != len(s.tables) {
		return fmt.Errorf("vdiff %s has %d tables of %d", summary.UUID, len(summary.TableSummaryMap), len(s.tables))
	}
	for name, t := range summary.TableSummaryMap {
		if t.State != vdiff.CompletedState || t.MatchingRows > s.rows || t.MatchingRows < s.rows-missing || t.RowsCompared != t.MatchingRows ||
			t.MismatchedRows != 0 || t.ExtraRowsSource != 0 || t.ExtraRowsTarget != 0 {
			return fmt.Errorf("vdiff %s: table %s has %d rows (at most %d of them deleted), all equal, but the verdict is %+v", summary.UUID, name, s.rows, missing, t)
		}
	}
	if summary.HasMismatch {
		return fmt.Errorf("vdiff %s says that there is a mismatch, but no table has one", summary.UUID)
	}
	return nil
}
