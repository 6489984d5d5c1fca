// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package differ

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"vitess.io/vitess/go/vt/log"
	"vitess.io/vitess/go/vt/vterrors"
	"vitess.io/vitess/go/vt/vttablet/tabletmanager/vdiff"

	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/plan"
	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/report"
	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/rowdiff"
	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/scan"
	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/sidecar"

	querypb "vitess.io/vitess/go/vt/proto/query"
	vtrpcpb "vitess.io/vitess/go/vt/proto/vtrpc"
)

// job is one table that is being compared. The scheduler owns it, except while compare runs.
type job struct {
	r     *run
	table *plan.Table
	rows  int64 // estimate of the whole table

	// The checkpoint: what has been counted, and the key up to which. lastPK is nil when nothing has
	// been, or when the table has no checkpoints. sourcePK and targetPK are the same key, for
	// VStreamRows, and after is it as a row.
	report             *report.Builder
	lastPK             []byte
	sourcePK, targetPK *querypb.QueryResult
	after              scan.Row

	// merge is false once the rows have turned out not to be in order.
	merge bool
	// passes and pass are those of a pairing that does not fit into memory at once.
	passes, pass uint64
	// limit is the count at which --limit ends the table, 0 when there is none.
	limit int64
	// saved is the report as the last checkpoint has it.
	saved []byte
	// stored is the checkpoint that the record has of a comparison by digests.
	stored *checkpoint

	tries      int // failures in a row
	retryAt    time.Time
	progressed bool // a checkpoint was written since the last failure
}

// weight is the share of the capacity that the job takes.
func (j *job) weight() int {
	if j.rows <= smallTableRows {
		return 1
	}
	return smallTablesEach
}

// openWait is how long the opening of a read view may take in this try: longer after the first ones,
// since a table whose rows have to be sorted first takes its time before it sends any. But the workflow
// is stopped meanwhile.
func (j *job) openWait() time.Duration { return j.r.LockWait << min(j.tries, 2) }

// checkpoints says whether the job can be continued at a key.
func (j *job) checkpoints() bool {
	return j.merge && j.table.Ordered && j.table.KeyUnique && !j.table.KeyMoves && !j.table.Aggregated
}

// processed is how many rows have been counted.
func (j *job) processed() int64 { return j.report.Report().ProcessedRows }

// restart forgets everything that was counted.
func (j *job) restart() {
	j.report = report.NewBuilder(j.table, nil, j.r.reportOptions())
	j.lastPK, j.saved, j.sourcePK, j.targetPK, j.after = nil, nil, nil, nil, scan.Row{}
	j.stored, j.pass = nil, 0
}

// compare compares the table in its read views and closes them.
func (j *job) compare(ctx context.Context, vs *views) (res result) {
	defer vs.close()
	defer func() {
		// The engine contains a panic of its own goroutine only.
		if p := recover(); p != nil {
			res = result{job: j, outcome: outcomeFailed, err: panicError(j.table.Name, p)}
		}
	}()
	start := time.Now()
	defer func() { j.r.obs.Phase(j.table.Name, phaseCompare, time.Since(start)) }()

	sources := make([]rowdiff.Source, len(vs.sources))
	for i, s := range vs.sources {
		sources[i] = choose(s, j.table, j.table.SourceConditions, s.Fields(), s.Fields())
	}
	target := choose(vs.target, j.table, j.table.TargetConditions, vs.target.Fields(), vs.sources[0].Fields())
	j.r.obs.TableAt(j.table.Name, j.processed())
	// Progress enforces the age while rows are compared; where none are, the watchdog does.
	compareCtx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	a := &attempt{job: j, ctx: ctx, opened: vs.opened, saved: time.Now(), from: j.lastPK, giveUp: cancel}
	if limit, cause := j.maxAge(); cause != nil {
		a.watchdog = time.AfterFunc(time.Until(vs.opened.Add(limit+ageGrace)), func() { cancel(cause) })
		defer a.watchdog.Stop()
	}
	done, err := rowdiff.Compare(compareCtx, j.table, j.merge, sources, target, newSink(j, vs), rowdiff.Options{
		MaxRows: j.left(), After: j.after, MemoryLimit: j.r.MemoryLimit, Weigher: j.r, Passes: j.passes, Pass: j.pass, Progress: a.progress,
	})
	a.count(done.Done)
	switch {
	case ctx.Err() != nil:
		return result{job: j, outcome: outcomeFailed, err: ctx.Err()}
	case err != nil && compareCtx.Err() != nil:
		a.tooOld = context.Cause(compareCtx)
		if err := j.rewind(); err != nil {
			return result{job: j, outcome: outcomeFailed, err: err}
		}
		return a.reopened()
	case errors.Is(err, rowdiff.ErrNotOrdered):
		log.Warn(fmt.Sprintf("vdiff %s: %v: pairing its rows by key instead, from the start", j.r.v.UUID, err))
		j.merge = false
		return j.again()
	case errors.Is(err, rowdiff.ErrIndivisible):
		return result{job: j, outcome: outcomeFailed, err: sidecar.AsPermanent(vterrors.Errorf(vtrpcpb.Code_RESOURCE_EXHAUSTED, "%v: raise --vdiff-plugin-memory-limit", err))}
	case errors.Is(err, rowdiff.ErrMemory):
		return j.morePasses(err)
	case err != nil:
		return j.broken(err)
	case a.tooOld != nil:
		return a.reopen(done)
	case j.pass+1 < j.passes && !done.Stopped:
		j.pass++
		return result{job: j, outcome: outcomeAgain}
	}
	if err := a.save(done.Last, vdiff.CompletedState); err != nil {
		return j.broken(err)
	}
	return result{job: j, outcome: outcomeDone}
}

// left is how many rows --limit still allows; 0 is no limit.
func (j *job) left() int64 {
	if j.limit == 0 {
		return 0
	}
	return max(1, j.limit-j.processed())
}

// again lets the whole table be compared anew.
func (j *job) again() result {
	j.restart()
	return result{job: j, outcome: outcomeAgain}
}

// broken lets the table be continued at its last checkpoint, if it has any, after another try.
func (j *job) broken(err error) result {
	if err := j.rewind(); err != nil {
		return result{job: j, outcome: outcomeFailed, err: err}
	}
	return result{job: j, outcome: outcomeFailed, err: err}
}

// maxPasses bounds the number of times that a table is read.
const maxPasses = 256

func (j *job) morePasses(err error) result {
	if j.passes = max(2, 2*j.passes); j.passes > maxPasses {
		return result{job: j, outcome: outcomeFailed, err: sidecar.AsPermanent(vterrors.Errorf(vtrpcpb.Code_RESOURCE_EXHAUSTED,
			"%v even in %d passes: raise --vdiff-plugin-memory-limit", err, maxPasses))}
	}
	log.Warn(fmt.Sprintf("vdiff %s: %v: comparing it in %d passes", j.r.v.UUID, err, j.passes))
	return j.again()
}

// attempt is one comparison of a job in one set of read views.
type attempt struct {
	job     *job
	ctx     context.Context
	opened  time.Time // when the read views were
	saved   time.Time // when the last checkpoint was
	counted int64     // rows told to the observer
	tooOld  error     // why the read views were given up
	from    []byte    // the lastpk at its beginning
	giveUp  context.CancelCauseFunc
	// unstorable says that the last key that was to be a checkpoint cannot be stored.
	unstorable bool
	// watchdog gives the read views up when they have become too old without a row; nil when they may grow old.
	watchdog *time.Timer
}

// count tells the observer of the rows up to done.
func (a *attempt) count(done int64) {
	if n := done - a.counted; n > 0 {
		a.job.r.obs.RowsCompared(a.job.table.Name, n)
		a.counted = done
	}
}

// progress is called by the comparison every few thousand rows.
func (a *attempt) progress(done int64, last scan.Row) error {
	a.count(done)
	now := time.Now()
	if now.Sub(a.saved) < a.job.r.CheckpointInterval {
		return nil
	}
	a.saved = now
	age := now.Sub(a.opened)
	if limit, tooOld := a.job.maxAge(); tooOld != nil && age > limit {
		_, err := a.job.encode(last)
		a.unstorable = err != nil
		switch {
		case err == nil || !a.job.checkpoints():
			a.tooOld = tooOld
			return rowdiff.ErrStop
		case a.job.maxDiff() > 0 && age > a.job.maxDiff()+ageGrace:
			a.giveUp(errMaxDiff)
			return errMaxDiff
		case tooOld == errSnapshotAge:
			// The key of this row cannot be stored: the next one may be. Until then the read views live on, as long as rows arrive, for
			// new ones would begin where these began.
			a.watchdog.Reset(limit + ageGrace)
		}
	}
	a.job.r.obs.Waiting("")
	return a.save(last, "")
}

var (
	errSnapshotAge = errors.New("the read views are older than --vdiff-plugin-max-snapshot-age")
	errMaxDiff     = errors.New("the read views are older than --max-diff-duration")
)

// ageGrace is how long after their time read views are given up in which no row arrives.
const ageGrace = 10 * time.Second

// maxDiff is --max-diff-duration, 0 for no bound.
func (j *job) maxDiff() time.Duration {
	return time.Duration(max(j.r.v.Options.CoreOptions.MaxDiffSeconds, 0)) * time.Second
}

// maxAge is the age at which read views are to be given up, and the error that says why; nil when
// there is none.
func (j *job) maxAge() (time.Duration, error) {
	limit, cause := j.maxDiff(), error(nil)
	if limit > 0 {
		cause = errMaxDiff
	}
	// A table that cannot be continued would begin for ever: for it only the operator's own bound holds.
	if j.checkpoints() && j.r.MaxSnapshotAge > 0 && (cause == nil || j.r.MaxSnapshotAge < limit) {
		limit, cause = j.r.MaxSnapshotAge, errSnapshotAge
	}
	return limit, cause
}

// reopen lets the table be continued in new read views, behind the last row.
func (a *attempt) reopen(done rowdiff.Result) result {
	if a.job.checkpoints() {
		if err := a.save(done.Last, ""); err != nil {
			return a.job.broken(err)
		}
	}
	return a.reopened()
}

// reopened is the result of a table that has to get new read views where its last checkpoint is.
func (a *attempt) reopened() result {
	j := a.job
	if a.tooOld == errMaxDiff {
		j.r.obs.TableRestarted(j.table.Name)
	}
	if !j.checkpoints() {
		return result{job: j, outcome: outcomeFailed, err: sidecar.AsPermanent(vterrors.Errorf(vtrpcpb.Code_DEADLINE_EXCEEDED,
			"the table took longer than --max-diff-duration and cannot be continued where it was (%s): raise or drop that limit", j.table.NotOrdered))}
	}
	if a.tooOld == errMaxDiff && a.unstorable && bytes.Equal(a.from, j.lastPK) {
		return result{job: j, outcome: outcomeFailed, err: sidecar.AsPermanent(vterrors.Errorf(vtrpcpb.Code_DEADLINE_EXCEEDED,
			"%d rows took longer than --max-diff-duration, and none of their keys can be stored as the place to go on from: raise or drop that limit", a.counted))}
	}
	return result{job: j, outcome: outcomeAgain}
}

// save writes a checkpoint: the counts, and for tables that can be continued the key up to which they
// hold. last may be empty when no row was compared.
func (a *attempt) save(last scan.Row, state vdiff.VDiffState) error {
	if err := a.ctx.Err(); err != nil {
		return err
	}
	j := a.job
	lastPK, err := j.lastPK, error(nil)
	if last.Lengths != nil && j.checkpoints() {
		lastPK, err = j.encode(last)
		switch {
		case errors.Is(err, plan.ErrNoCheckpoint) && state == "":
			return nil // the checkpoint before stays
		case errors.Is(err, plan.ErrNoCheckpoint):
			lastPK = nil
		case err != nil:
			return err
		}
	}
	doc, err := j.report.Marshal()
	if err != nil {
		return err
	}
	err = j.r.Store.SaveProgress(a.ctx, j.r.v.ID, j.table.Name, &sidecar.Progress{
		RowsCompared: j.processed(), LastPK: lastPK, Report: doc, Mismatch: j.report.Report().Different(), State: state,
	})
	if err != nil {
		return vterrors.Wrapf(err, "writing the progress of table %s", j.table.Name)
	}
	if lastPK != nil && last.Lengths != nil {
		j.lastPK, j.saved, j.progressed = lastPK, doc, true
		if j.sourcePK, j.targetPK, err = plan.DecodeLastPK(j.table, lastPK); err != nil {
			return err
		}
		j.after, err = rowOfKey(j.table, j.targetPK)
		return err
	}
	return nil
}

// encode returns the key of a row as it is stored.
func (j *job) encode(row scan.Row) ([]byte, error) {
	return plan.EncodeLastPK(j.table, row.SQLValues(targetTypes(j.table)))
}

// reportOptions are those of the vdiff.
func (r *run) reportOptions() report.Options {
	return report.NewOptions(r.v.Options, r.maxReport)
}

// contained makes a panic of fn its error: errgroup would let it end the process.
func contained(fn func() error) func() error {
	return func() (err error) {
		defer func() {
			if p := recover(); p != nil {
				log.Error(fmt.Sprintf("panic: %v\n%s", p, debug.Stack()))
				err = sidecar.AsPermanent(vterrors.Errorf(vtrpcpb.Code_INTERNAL, "panic: %v", p))
			}
		}()
		return fn()
	}
}

// panicError is the error of a table whose comparison panicked: it would panic again.
func panicError(table string, p any) error {
	log.Error(fmt.Sprintf("panic while comparing table %s: %v\n%s", table, p, debug.Stack()))
	return sidecar.AsPermanent(vterrors.Errorf(vtrpcpb.Code_INTERNAL, "panic while comparing the table: %v", p))
}
