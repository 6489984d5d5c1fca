// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package differ

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"vitess.io/vitess/go/vt/log"
	"vitess.io/vitess/go/vt/vterrors"

	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/plan"
	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/scan"
	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/sidecar"
	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/verify"

	vtrpcpb "vitess.io/vitess/go/vt/proto/vtrpc"
)

// digests verifies tables range by range while the workflow runs: see the package comment of verify for why
// an equal digest is a proof. Its workers share one verify.Machine, which says what is read next; everything
// below mu belongs to them together.
type digests struct {
	r       *run
	seed    uint64
	started time.Time

	mu       sync.Mutex
	readers  *readers
	machine  *verify.Machine
	tables   map[verify.TableID]*digestTable
	failures int   // calls that failed in a row
	err      error // ends all workers
	changed  chan struct{}
}

// verify brings the tables of jobs that can be digested as far as that goes. It returns the jobs that are
// left for the fence as ranges, and those that have to be compared row by row. Tables that are verified are
// completed when it returns.
func (r *run) verify(ctx context.Context, jobs []*job) (ranges []*digestTable, rows []*job, err error) {
	tables, rows := r.digestible(ctx, jobs)
	if len(tables) == 0 {
		return nil, rewound(jobs), nil
	}
	readers, err := r.openReaders(ctx)
	if errors.Is(err, scan.ErrUnsupported) {
		log.Info(fmt.Sprintf("vdiff %s: comparing rows under a fence: %v", r.v.UUID, err))
		return nil, rewound(jobs), nil
	}
	if err != nil {
		return nil, nil, err
	}
	r.setBounds(ctx, readers, tables)
	d := &digests{
		r: r, seed: rand.Uint64(), started: time.Now(), readers: readers,
		machine: verify.New(r.verifyConfig(readers.streamed)), tables: make(map[verify.TableID]*digestTable, len(tables)), changed: make(chan struct{}),
	}
	for _, t := range tables {
		d.tables[t.id] = t
		err := d.machine.Add(t.forMachine())
		if err == nil {
			continue
		}
		log.Warn(fmt.Sprintf("vdiff %s: table %s: its checkpoint cannot be continued, comparing it from the first row: %v", r.v.UUID, t.job.table.Name, err))
		t.job.restart()
		t.segments, t.told, t.last = nil, 0, nil
		r.obs.TableAt(t.job.table.Name, 0)
		if err := d.machine.Add(t.forMachine()); err != nil {
			return nil, nil, err
		}
	}
	g, gctx := errgroup.WithContext(ctx)
	for range r.Concurrency {
		g.Go(contained(func() error { return d.worker(gctx) }))
	}
	if err := g.Wait(); err != nil && !errors.Is(err, scan.ErrUnsupported) {
		return nil, nil, err
	}
	r.obs.Waiting("")
	// A table that had been verified to its end before it was here has had no task that would have completed it.
	if err := d.record(ctx, tables); err != nil {
		return nil, nil, err
	}
	left, more := d.left()
	return left, rewound(append(rows, more...)), nil
}

// rewound brings jobs that are to be compared row by row back to their lastpk: the row way knows no lanes, and the counts that
// the lanes have left out belong to the rows before it.
func rewound(jobs []*job) []*job {
	for _, j := range jobs {
		if err := j.rewind(); err != nil {
			j.restart()
		}
		j.r.obs.TableAt(j.table.Name, j.processed())
	}
	return jobs
}

// verifyConfig sizes the ranges. Where a source is read by VStreamRows every range locks its table there for a moment, so that
// they are larger.
func (r *run) verifyConfig(streamed bool) verify.Config {
	cfg := verify.Config{
		Workers: r.Concurrency, FirstRows: 10_000, MinRows: 1_000, MaxRows: 200_000, MaxBytes: 64 << 20, TaskTime: time.Second,
		Tries: 3, RetryAfter: 100 * time.Millisecond, MaxPending: 64, MaxFence: maxFenceRanges,
	}
	if streamed {
		cfg.FirstRows, cfg.MaxRows, cfg.MaxBytes, cfg.TaskTime = 50_000, 1_000_000, 256<<20, 5*time.Second
	}
	return cfg
}

// maxFenceRanges is how many ranges of a table a fence reads one by one. A table that has more of them differs so much
// that it is compared row by row as a whole.
const maxFenceRanges = 64

// left returns what the machine has not verified.
func (d *digests) left() (ranges []*digestTable, rows []*job) {
	for id, t := range d.tables {
		switch {
		case t.completed:
		case t.rowWay || !d.machine.Finished(id):
			rows = append(rows, t.job)
		case t.job.table.Digest.Proof == plan.ProofAtOnce: // all of it is left
			log.Info(fmt.Sprintf("vdiff %s: table %s is compared row by row: it was not equal as a whole while nothing changed", d.r.v.UUID, t.job.table.Name))
			rows = append(rows, t.job)
		default:
			stats := d.machine.Stats(id)
			t.left, t.verified, t.parts = d.machine.Left(id), stats.Rows, int64(stats.Verified)
			if !t.job.table.Digest.Ranged {
				t.buckets = &scan.BucketFilter{Seed: d.seed, Buckets: buckets, BucketKey: t.job.table.Digest.BucketKey, Wanted: d.machine.LeftBuckets(id)}
			}
			if len(t.left) > maxFenceRanges {
				rows = append(rows, t.job)
				continue
			}
			ranges = append(ranges, t)
		}
	}
	return ranges, rows
}

// worker takes tasks until there are no more.
func (d *digests) worker(ctx context.Context) error {
	for {
		tasks, readers, err := d.next(ctx)
		if err != nil || len(tasks) == 0 {
			return err
		}
		if err := d.work(ctx, tasks, readers); err != nil {
			d.end(err)
			return err
		}
	}
}

// next waits for tasks. None means that nothing is left to be done.
func (d *digests) next(ctx context.Context) ([]verify.Task, *readers, error) {
	for {
		l := d.look()
		if l.done || len(l.tasks) > 0 {
			return l.tasks, l.readers, l.err
		}
		if err := l.await(ctx, d.started); err != nil {
			return nil, nil, err
		}
	}
}

// looked is what a worker finds: tasks, the end, or what it has to wait for.
type looked struct {
	tasks   []verify.Task
	readers *readers
	done    bool
	err     error
	changed <-chan struct{}
	wake    time.Duration // since the start, if timed
	timed   bool
}

// look has mu, as all that calls the machine does, in a function of its own: a panic of the machine must not leave it locked.
func (d *digests) look() looked {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.err != nil || d.machine.Done() {
		return looked{done: true, err: d.err}
	}
	l := looked{tasks: d.machine.Next(time.Since(d.started)), readers: d.readers, changed: d.changed}
	l.wake, l.timed = d.machine.Wake()
	return l
}

// await waits until something has changed, or it is time to look again.
func (l *looked) await(ctx context.Context, started time.Time) error {
	var timer <-chan time.Time
	if l.timed {
		t := time.NewTimer(l.wake - time.Since(started))
		defer t.Stop()
		timer = t.C
	}
	select {
	case <-l.changed:
	case <-timer:
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}

// wakeLocked lets waiting workers look again.
func (d *digests) wakeLocked() {
	close(d.changed)
	d.changed = make(chan struct{})
}

// end makes all workers return.
func (d *digests) end(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.err == nil {
		d.err = err
	}
	d.wakeLocked()
}

// failed lets the ranges of a call that failed wait. A table that MySQL refuses goes the row way, which
// says why; a tablet that is gone is replaced. The error that it returns ends the run.
func (d *digests) failed(ctx context.Context, tasks []verify.Task, used *readers, err error) error {
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, scan.ErrUnsupported):
		return err
	case cannotScan(err):
		if len(tasks) > 1 {
			// One of them it is. Each for itself.
			for _, task := range tasks {
				if err := d.work(ctx, []verify.Task{task}, used); err != nil {
					return err
				}
			}
			return nil
		}
		d.toRows(tasks[0].Table, err.Error())
		return nil
	}
	failures := d.countFailed(tasks)
	if failures > maxTries*d.r.Concurrency {
		return sidecar.AsTransient(err)
	}
	wait := d.r.retryWait(min(failures, 4))
	log.Warn(fmt.Sprintf("vdiff %s: reading digests, trying again in %v: %v", d.r.v.UUID, wait, err))
	d.r.obs.Waiting(cut(fmt.Sprintf("another try, after: %v", err)))
	if err := sleep(ctx, wait); err != nil {
		return err
	}
	readers, pickErr := d.r.openReaders(ctx)
	switch {
	case errors.Is(pickErr, scan.ErrUnsupported), ctx.Err() != nil:
		return pickErr
	case pickErr != nil:
		log.Warn(fmt.Sprintf("vdiff %s: choosing other tablets: %v", d.r.v.UUID, pickErr))
		return nil
	}
	d.mu.Lock()
	d.readers = readers
	d.mu.Unlock()
	return nil
}

// countFailed tells the machine that tasks have failed, and returns how many calls have in a row.
func (d *digests) countFailed(tasks []verify.Task) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.failures++
	for _, task := range tasks {
		d.machine.Failed(task.ID, time.Since(d.started))
	}
	d.wakeLocked()
	return d.failures
}

// cannotScan says whether a tablet will never answer this way what it was asked.
func cannotScan(err error) bool {
	switch vterrors.Code(err) {
	case vtrpcpb.Code_UNIMPLEMENTED, vtrpcpb.Code_INVALID_ARGUMENT, vtrpcpb.Code_PERMISSION_DENIED:
		return true
	}
	return isPermanent(err) || errors.Is(err, scan.ErrUnsupported)
}

// toRows takes a table out: its rows are compared under a fence.
func (d *digests) toRows(id verify.TableID, why string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	t := d.tables[id]
	if !t.rowWay {
		log.Warn(fmt.Sprintf("vdiff %s: table %s is compared row by row: %s", d.r.v.UUID, t.job.table.Name, cut(why)))
	}
	t.rowWay = true
	d.machine.Remove(id)
	d.wakeLocked()
}
