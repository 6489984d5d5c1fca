// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package endtoend

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"golang.org/x/sync/errgroup"

	"vitess.io/vitess/go/vt/vtctl/workflow"
	"vitess.io/vitess/go/vt/vttablet/tabletmanager/vdiff"

	"github.com/vttablet-ext/vttablet-ext/test/endtoend/cluster"
)

const (
	defaultRounds = 12
	// roundTime is when a round is given up. Most take a few seconds.
	roundTime = 6 * time.Minute
	// mostAdded is how many columns, and how many indexes, are added to a table.
	mostAdded = 12
)

// TestSoundness runs rounds of vdiffs while writers change the source, and faults are planted on the target behind
// replication: each lasting fault must be found, with exact counts, and nothing else may be reported. Workflows from 1
// to 2 shards and from 2 to 1 are compared, over tables of unlike keys and a column of each kind, with changes
// of the schema now and then. A round depends on its seed alone, as far as time lets it: SOUNDNESS_SEED=<seed> is the
// seed of the first round, SOUNDNESS_ROUNDS=<n> their number. The last third of them has stock vttablets on the unsharded source, all with
// SOUNDNESS_STOCK=1.
func TestSoundness(t *testing.T) {
	leaked := goleak.IgnoreCurrent()
	seed, rounds := uint64(time.Now().UnixNano()%1e9), uint64(defaultRounds)
	for name, to := range map[string]*uint64{"SOUNDNESS_SEED": &seed, "SOUNDNESS_ROUNDS": &rounds} {
		if value := os.Getenv(name); value != "" {
			n, err := strconv.ParseUint(value, 10, 64)
			require.NoError(t, err, name)
			*to = n
		}
	}
	started := time.Now()
	p := newProving(t)
	defer func() {
		if t.Failed() {
			p.c.Fail()
		}
		assert.NoError(t, p.c.Close())
		goleak.VerifyNone(t, leaked)
	}()
	t.Logf("the cluster and its workflows are up after %v", time.Since(started).Round(time.Second))
	started = time.Now()
	stock := false
	for i := range rounds {
		if !stock && (os.Getenv("SOUNDNESS_STOCK") != "" || i > 0 && i >= rounds*2/3) {
			stock = true
			p.makeSourceStock(t)
		}
		roundStarted := time.Now()
		round := p.newRound(seed + i)
		if !t.Run(fmt.Sprintf("seed %d", seed+i), round.run) {
			again := fmt.Sprintf("SOUNDNESS_SEED=%d SOUNDNESS_ROUNDS=1", seed+i)
			if stock {
				again += " SOUNDNESS_STOCK=1"
			}
			t.Fatal("run again: " + again)
		}
		t.Logf("round %d of %d: %v, %v", i+1, rounds, round, time.Since(roundStarted).Round(time.Millisecond))
	}
	t.Logf("%d rounds in %v", rounds, time.Since(started).Round(time.Second))
	noPanics(t, p.c)
}

// round is one round: what it does is chosen before it runs.
type round struct {
	p     *proving
	f     *flow
	r     *rand.Rand
	seed  uint64
	flags []string
	// writers run on the source meanwhile.
	writers int
	// alters changes the schema of a table in the middle.
	alters *subject
	// when the faults are planted, seen from the first vdiff.
	when   moment
	faults []*fault
}

type moment string

const (
	before moment = "before"
	during moment = "during"
	after  moment = "after"
)

func (p *proving) newRound(seed uint64) *round {
	r := rand.New(rand.NewPCG(seed, 0))
	d := &round{p: p, r: r, seed: seed, f: pick(r, p.flows), writers: pick(r, []int{0, 1, 2, 2, 2, 2}), when: pick(r, []moment{before, before, before, before, before, during, during, during, after})}
	if r.IntN(2) == 0 {
		d.flags = []string{"--tablet-types", "primary"}
	}
	if r.IntN(8) == 0 {
		d.alters = pick(r, d.f.subjects)
	}
	if r.IntN(4) == 0 {
		return d
	}
	taken := map[string]bool{}
	for range 1 + r.IntN(5) {
		target, s := pick(r, d.f.w.Primaries()), pick(r, d.f.subjects)
		ident := pick(r, d.f.idents[target.Alias+s.name])
		if key := fmt.Sprint(s.name, ident); !taken[key] {
			taken[key] = true
			p.moved += faultEvery
			d.faults = append(d.faults, newFault(r, s, target, ident, p.moved))
		}
	}
	return d
}

func (d *round) String() string {
	text := fmt.Sprintf("%s, %d writers, %d faults", d.f.w.Name, d.writers, len(d.faults))
	if len(d.faults) > 0 {
		text += " " + string(d.when)
	}
	if d.alters != nil {
		text += ", DDL on " + d.alters.name
	}
	return text
}

func (d *round) run(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), roundTime)
	defer cancel()
	defer func() {
		if t.Failed() {
			t.Logf("seed %d: %v; faults: %v", d.seed, d, d.faults)
			d.describe(t)
		}
	}()
	writing, stop := context.WithCancel(ctx)
	defer stop()
	var writers errgroup.Group
	for i := range d.writers {
		r := rand.New(rand.NewPCG(d.seed, uint64(1+i)))
		writers.Go(func() error { return write(writing, d.p.source(), d.p.subjects, r) })
	}
	defer func() {
		stop()
		require.NoError(t, writers.Wait())
	}()
	for _, f := range d.faults {
		require.NoError(t, f.prepare(ctx, d.p.source(), d.r))
	}
	if d.when == before {
		d.plant(t, ctx)
	}
	d.first(t, ctx)
	if d.when == after {
		d.plant(t, ctx)
	}
	if d.when != before && len(d.faults) > 0 {
		for _, f := range d.faults {
			if f.reversed {
				require.NoError(t, f.reverse(ctx))
			}
		}
		d.check(t, ctx, d.diff(t, ctx), false)
	}
	for _, f := range d.faults {
		require.NoError(t, f.repair(ctx))
	}
	if d.seed%16 == 0 {
		_, err := d.f.w.VDiff(ctx, "delete", "all")
		require.NoError(t, err)
	}
}

func (d *round) plant(t *testing.T, ctx context.Context) {
	t.Helper()
	for _, f := range d.faults {
		require.NoError(t, f.plant(ctx))
	}
}

// first runs the first vdiff, and meanwhile what the round does while it runs: faults that are planted or reversed,
// and DDL.
func (d *round) first(t *testing.T, ctx context.Context) {
	t.Helper()
	group, groupCtx := errgroup.WithContext(ctx)
	at := func(do func(context.Context) error) {
		delay := time.Duration(d.r.Int64N(int64(2 * time.Second)))
		group.Go(func() error {
			select {
			case <-groupCtx.Done():
				return groupCtx.Err()
			case <-time.After(delay):
				return do(groupCtx)
			}
		})
	}
	for _, f := range d.faults {
		switch {
		case d.when == during:
			at(f.plant)
		case d.when == before && f.reversed:
			at(f.reverse)
		}
	}
	if s := d.alters; s != nil {
		index := d.r.IntN(2) == 0
		at(func(ctx context.Context) error { return d.p.alter(ctx, s, index) })
	}
	summary := d.diff(t, ctx)
	require.NoError(t, group.Wait())
	d.check(t, ctx, summary, true)
}

// diff runs a vdiff until it is completed. It may be in error in between: the engine tries again.
func (d *round) diff(t *testing.T, ctx context.Context) *workflow.Summary {
	t.Helper()
	uuid, err := d.f.w.VDiffCreate(ctx, d.flags...)
	require.NoError(t, err)
	last := ""
	err = cluster.WaitFor(ctx, "vdiff "+uuid, 50*time.Millisecond, func(ctx context.Context) (bool, error) {
		for _, target := range d.f.w.Primaries() {
			result, err := target.Query(ctx, "select state, last_error from _vt.vdiff where vdiff_uuid = '"+uuid+"'")
			if err != nil || len(result.Rows) != 1 {
				return false, err
			}
			if message := result.Rows[0][1].ToString(); message != "" && message != last {
				last = message
				t.Logf("vdiff %s on %s: %s", uuid, target.Alias, message)
			}
			if result.Rows[0][0].ToString() != string(vdiff.CompletedState) {
				return false, nil
			}
		}
		return true, nil
	})
	require.NoError(t, err, "last error: %s", last)
	s, err := d.f.w.VDiffShow(ctx, uuid)
	require.NoError(t, err)
	return s
}

// expected is what the first or the second vdiff of the round may report of a table, and the rows that may be named.
func (d *round) expected(s *subject, first bool) (least, most found, idents map[string]bool) {
	idents = map[string]bool{}
	for _, f := range d.faults {
		if f.s != s || first && d.when == after || !first && f.reversed { // it is not there
			continue
		}
		idents[fmt.Sprint(f.ident)], idents[fmt.Sprint(f.moved)] = true, true
		most = most.plus(f.found())
		if !first || d.when == before && !f.reversed { // else it comes or goes while the vdiff runs, which may see a part of it
			least = least.plus(f.found())
		}
	}
	return least, most, idents
}

// check compares what a vdiff reports with the faults.
func (d *round) check(t *testing.T, ctx context.Context, s *workflow.Summary, first bool) {
	t.Helper()
	require.Equal(t, vdiff.CompletedState, s.State)
	require.Empty(t, s.Errors)
	require.Len(t, s.TableSummaryMap, len(d.f.subjects))
	var all found
	for _, sub := range d.f.subjects {
		least, most, idents := d.expected(sub, first)
		table := s.TableSummaryMap[sub.name]
		got := found{table.MismatchedRows, table.ExtraRowsSource, table.ExtraRowsTarget}
		all = all.plus(got)
		assert.True(t, got.within(least, most), "%s: reported are %+v, there are %+v to %+v", sub.name, got, least, most)
		assert.Equal(t, table.RowsCompared, table.MatchingRows+got.mismatched+got.extraSource+got.extraTarget, sub.name)
		for shard, report := range s.Reports[sub.name] {
			for _, ident := range sampled(report, sub.ident) {
				assert.True(t, idents[ident], "%s of shard %s: %s=%s is reported, but is no fault", sub.name, shard, sub.ident, ident)
			}
		}
		// A source that is not a replica, and that nobody writes to, has all rows that were ever written.
		if d.writers == 0 && len(d.flags) > 0 && d.f.unsharded && least == most {
			d.checkRows(t, ctx, sub, table, got)
		}
	}
	assert.Equal(t, all != found{}, s.HasMismatch)
	if t.Failed() {
		text, err := json.MarshalIndent(s, "", "  ")
		require.NoError(t, err)
		t.Logf("the report: %s", text)
		t.FailNow()
	}
}

// checkRows checks that each row of the source is in the counts.
func (d *round) checkRows(t *testing.T, ctx context.Context, s *subject, table workflow.TableSummary, got found) {
	t.Helper()
	result, err := d.p.source().Query(ctx, "select count(*) from "+s.name)
	require.NoError(t, err)
	rows, err := result.Rows[0][0].ToInt64()
	require.NoError(t, err)
	assert.Equal(t, rows, table.MatchingRows+got.mismatched+got.extraSource, "%s: rows of the source", s.name)
}

// sampled are the identities of the rows that a report shows.
func sampled(report vdiff.DiffReport, ident string) []string {
	var idents []string
	add := func(row *vdiff.RowDiff) {
		if row != nil {
			idents = append(idents, row.Row[ident])
		}
	}
	for _, m := range report.MismatchedRowsDiffs {
		add(m.Source)
		add(m.Target)
	}
	for _, row := range report.ExtraRowsSourceDiffs {
		add(row)
	}
	for _, row := range report.ExtraRowsTargetDiffs {
		add(row)
	}
	return idents
}
