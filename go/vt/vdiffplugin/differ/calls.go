// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package differ

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"vitess.io/vitess/go/mysql/replication"
	"vitess.io/vitess/go/vt/topo/topoproto"
	"vitess.io/vitess/go/vt/vterrors"

	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/digest"
	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/scan"
	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/verify"

	topodatapb "vitess.io/vitess/go/vt/proto/topodata"
	vtrpcpb "vitess.io/vitess/go/vt/proto/vtrpc"
)

// work reads the digests of tasks, the target first and then all sources at positions that are not before
// the target's: the order is what makes a match a proof. Its error ends the run.
func (d *digests) work(ctx context.Context, tasks []verify.Task, rs *readers) error {
	if rs.streamed {
		return d.workStreamed(ctx, tasks, rs)
	}
	started := time.Now()
	closed := d.r.obs.View()
	target, err := rs.target.Digest(ctx, &scan.Call{
		Streams: rs.streams, WaitFor: rs.waitFor, WaitTimeout: d.r.replicationWait(), Tables: d.targetRequests(tasks),
	}, d.r.rowsProgress(rs.picked.target))
	closed()
	if err != nil {
		return d.failed(ctx, tasks, rs, ofTablet(err, "target ", rs.picked.target))
	}
	if len(target.Digests) != len(tasks) {
		return d.failed(ctx, tasks, rs, vterrors.Errorf(vtrpcpb.Code_INTERNAL, "target: %d digests for %d ranges", len(target.Digests), len(tasks)))
	}
	d.walked(tasks, target, time.Since(started))
	for i, task := range tasks {
		d.learnBounds(ctx, rs, task, &target.Digests[i])
	}
	tasks = walkedRanges(tasks, target)

	answers := make([]*scan.Answer, len(rs.sources))
	g, gctx := errgroup.WithContext(ctx)
	for i, source := range rs.sources {
		g.Go(contained(func() error {
			tablet := rs.picked.sources[rs.streams[i]]
			waitFor, err := decodePosition(target.Positions[rs.streams[i]])
			if err != nil {
				return vterrors.Wrapf(err, "position of stream %d", rs.streams[i])
			}
			defer d.r.obs.View()()
			answers[i], err = source.Digest(gctx, &scan.Call{
				WaitFor: waitFor, WaitTimeout: d.r.replicationWait(), Tables: d.sourceRequests(tasks),
			}, d.r.rowsProgress(tablet))
			if err == nil && len(answers[i].Digests) != len(tasks) {
				err = vterrors.Errorf(vtrpcpb.Code_INTERNAL, "%d digests for %d ranges", len(answers[i].Digests), len(tasks))
			}
			return ofTablet(err, "source ", tablet)
		}))
	}
	if err := g.Wait(); err != nil {
		return d.failed(ctx, tasks, rs, err)
	}
	return d.compared(ctx, tasks, rs, target, answers)
}

// rowsProgress tells the observer what one call to a tablet waits for, and for how long.
func (r *run) rowsProgress(tablet *topodatapb.Tablet) scan.Progress {
	var mu sync.Mutex
	var since time.Time // of the last time that it waited, zero while it does not
	return func(_ int64, why string) {
		mu.Lock()
		defer mu.Unlock()
		now := time.Now()
		if !since.IsZero() {
			r.obs.HeldUp(now.Sub(since))
		}
		if since = now; why == "" {
			since = time.Time{}
		}
		if why != "" {
			why = fmt.Sprintf("tablet %s: %s", topoproto.TabletAliasString(tablet.Alias), cut(why))
		}
		r.obs.Waiting(why)
	}
}

// targetRequests asks the target for the tasks.
func (d *digests) targetRequests(tasks []verify.Task) []scan.DigestRequest {
	requests := make([]scan.DigestRequest, len(tasks))
	for i, task := range tasks {
		t := d.table(task)
		requests[i] = scan.DigestRequest{
			Table: t.target, Range: task.Range, Seed: d.seed, Limit: task.Limit, MaxBytes: task.MaxBytes, MaxTime: task.MaxTime,
			Buckets: task.Buckets, BucketKey: t.job.table.Digest.BucketKey,
		}
		if task.Limit == 0 && len(task.Range.UpTo) == 0 && t.job.table.Digest.Ranged {
			requests[i].MaxRows = math.MaxInt64 // so that the answer has the last key of the table
		}
	}
	return requests
}

// sourceRequests asks a source for the ranges that the target has read.
func (d *digests) sourceRequests(tasks []verify.Task) []scan.DigestRequest {
	requests := make([]scan.DigestRequest, len(tasks))
	for i, task := range tasks {
		t := d.table(task)
		requests[i] = scan.DigestRequest{
			Table: t.source, Range: task.Range, Seed: d.seed, MaxRows: task.SourceLimit,
			Buckets: task.Buckets, BucketKey: t.job.table.Digest.BucketKey,
		}
	}
	return requests
}

// walkedRanges returns the tasks as what the target has read of them, which is what the machine takes them for from now on. Whoever
// works on one of them again must not walk: another walk may end elsewhere, and the outcome would be of another range.
func walkedRanges(tasks []verify.Task, target *scan.Answer) []verify.Task {
	tasks = slices.Clone(tasks)
	for i := range tasks {
		task := &tasks[i]
		if upTo := target.Digests[i].UpTo; len(upTo) > 0 {
			task.Range.UpTo = upTo
		}
		task.Limit, task.MaxBytes, task.MaxTime = 0, 0, 0
	}
	return tasks
}

// table returns the table of a task. The map does not change while workers run.
func (d *digests) table(task verify.Task) *digestTable { return d.tables[task.Table] }

// walked tells the machine how far the target was read, so that another worker can go on behind.
func (d *digests) walked(tasks []verify.Task, target *scan.Answer, took time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for i, task := range tasks {
		answer := &target.Digests[i]
		d.table(task).reached(task, answer)
		if task.Limit > 0 {
			d.machine.Walked(task.ID, answer.UpTo, answer.Read, answer.Bytes, took)
		}
	}
	d.wakeLocked()
}

// compared tells the machine the verdicts and writes down what they have brought.
func (d *digests) compared(ctx context.Context, tasks []verify.Task, rs *readers, target *scan.Answer, sources []*scan.Answer) error {
	unchanged := samePositions(rs, target, sources)
	var took time.Duration
	for _, source := range sources {
		took = max(took, source.ReadView)
	}
	compared := tasks[:0]
	var outcomes []verify.Outcome
	for i, task := range tasks {
		d.r.obs.Read(target.Digests[i].Read, target.Digests[i].Bytes)
		for _, source := range sources {
			d.r.obs.Read(source.Digests[i].Read, source.Digests[i].Bytes)
		}
		if !sameForm(i, target, sources) {
			d.toRows(task.Table, "MySQL sends its columns in unlike types")
			continue
		}
		o := outcomeOf(i, d.table(task).job.table.Reference, target, sources)
		o.SamePosition, o.Took = unchanged, took
		compared, outcomes = append(compared, task), append(outcomes, o)
	}
	return d.settled(ctx, compared, outcomes)
}

// settled tells the machine the outcomes of tasks and writes down what they have brought.
func (d *digests) settled(ctx context.Context, tasks []verify.Task, outcomes []verify.Outcome) error {
	touched := d.tell(tasks, outcomes)
	slices.SortFunc(touched, func(a, b *digestTable) int { return cmp.Compare(a.id, b.id) })
	return d.record(ctx, slices.Compact(touched))
}

// tell tells the machine the outcomes of tasks, and returns their tables.
func (d *digests) tell(tasks []verify.Task, outcomes []verify.Outcome) (touched []*digestTable) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.failures = 0
	for i, task := range tasks {
		if t := d.table(task); !t.rowWay {
			d.machine.Compared(task.ID, outcomes[i], time.Since(d.started))
			touched = append(touched, t)
		}
	}
	d.wakeLocked()
	return touched
}

// outcomeOf compares the digests of request i. Of a reference table every source shard holds all rows.
func outcomeOf(i int, reference bool, target *scan.Answer, sources []*scan.Answer) verify.Outcome {
	want := target.Digests[i].Sums
	o := verify.Outcome{TargetRows: rowsOf(want)}
	total := make([]digest.Sum, len(want))
	equal := make([]bool, len(want))
	for b := range equal {
		equal[b] = true
	}
	for _, source := range sources {
		got := source.Digests[i]
		if len(got.Sums) != len(want) {
			return verify.Outcome{TargetRows: o.TargetRows, EqualBuckets: make([]bool, len(want)), BucketRows: make([]int64, len(want))}
		}
		if len(got.UpTo) > 0 {
			o.SourceUpTo = got.UpTo
		}
		o.SourceRows += rowsOf(got.Sums)
		for b := range total {
			total[b].Merge(got.Sums[b])
			equal[b] = equal[b] && (!reference || got.Sums[b] == want[b])
		}
	}
	o.Equal = len(o.SourceUpTo) == 0
	for b := range total {
		if !reference {
			equal[b] = total[b] == want[b]
		}
		o.Equal = o.Equal && equal[b]
		o.BucketRows = append(o.BucketRows, int64(want[b].Rows))
	}
	o.EqualBuckets = equal
	return o
}

func rowsOf(sums []digest.Sum) (n int64) {
	for _, s := range sums {
		n += int64(s.Rows)
	}
	return n
}

// sameForm says whether both sides sent the columns of request i in the same types.
func sameForm(i int, target *scan.Answer, sources []*scan.Answer) bool {
	for _, source := range sources {
		if source.Digests[i].Form != target.Digests[i].Form {
			return false
		}
	}
	return true
}

// samePositions says whether no source had executed more than the target's streams had applied: then both
// sides were read at equal positions, and another try would read the same.
func samePositions(rs *readers, target *scan.Answer, sources []*scan.Answer) bool {
	for i, source := range sources {
		executed, err := replication.DecodePosition(source.Executed)
		if err != nil {
			return false
		}
		encoded, err := decodePosition(target.Positions[rs.streams[i]])
		if err != nil {
			return false
		}
		applied, err := replication.DecodePosition(encoded)
		if err != nil || !applied.AtLeast(executed) {
			return false
		}
	}
	return true
}
