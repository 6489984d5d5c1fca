// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package differ

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"vitess.io/vitess/go/mysql/sqlerror"
	"vitess.io/vitess/go/vt/log"
	"vitess.io/vitess/go/vt/vterrors"

	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/sidecar"
)

const (
	// A table is small up to so many rows. Small tables share the place of a large one.
	smallTableRows  = 20_000
	smallTablesEach = 8
	// maxTries is how often in a row a table, or a fence, may fail before its error is final for
	// this run.
	maxTries = 5
	// The wait before the second try is that part of the interval between runs; it doubles with every further one, up to
	// the whole interval.
	firstRetryPart = 30
)

// scheduler decides which tables are compared when. Its state belongs to the goroutine in run.
type scheduler struct {
	r       *run
	waiting []*job // largest first
	used    int    // weight of the jobs being compared
	active  int
	results chan result
	failed  []tableError
	tries   int       // failures of fences in a row
	retryAt time.Time // of the next fence
	fatal   error     // why no further fence is formed; the tables being compared go on to their end
}

// result is how the comparison of one table ended.
type result struct {
	job     *job
	outcome outcome
	err     error
}

type outcome int

const (
	outcomeDone outcome = iota
	outcomeAgain
	outcomeFailed
)

func newScheduler(r *run, jobs []*job) *scheduler {
	slices.SortStableFunc(jobs, func(a, b *job) int {
		if a.rows != b.rows {
			return int(b.rows - a.rows)
		}
		return strings.Compare(a.table.Name, b.table.Name)
	})
	return &scheduler{r: r, waiting: jobs, results: make(chan result)}
}

// capacity is the weight of all jobs that may be compared at a time.
func (s *scheduler) capacity() int { return s.r.Concurrency * smallTablesEach }

// run returns when every table is done or failed, or ctx has ended. No goroutine is left then.
func (s *scheduler) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer func() {
		cancel()
		for s.active > 0 {
			s.collect(ctx, <-s.results)
		}
	}()
	for len(s.waiting) > 0 || s.active > 0 {
		if err := ctx.Err(); err != nil {
			return err
		}
		if s.fatal != nil && s.active == 0 {
			return s.fatal
		}
		if batch := s.next(); len(batch) > 0 {
			s.open(ctx, batch)
			continue
		}
		s.await(ctx)
	}
	return ctx.Err()
}

// await waits for a result, or until something may be tried again.
func (s *scheduler) await(ctx context.Context) {
	var timer <-chan time.Time
	if at, ok := s.nextTry(); ok {
		t := time.NewTimer(time.Until(at))
		defer t.Stop()
		timer = t.C
	}
	select {
	case res := <-s.results:
		s.collect(ctx, res)
	case <-timer:
	case <-ctx.Done():
	}
}

// next takes the waiting jobs that there is room for now.
func (s *scheduler) next() []*job {
	if s.fatal != nil || time.Now().Before(s.retryAt) {
		return nil
	}
	var batch []*job
	used, now := s.used, time.Now()
	s.waiting = slices.DeleteFunc(s.waiting, func(j *job) bool {
		if used+j.weight() > s.capacity() || now.Before(j.retryAt) {
			return false
		}
		used += j.weight()
		batch = append(batch, j)
		return true
	})
	return batch
}

// nextTry is when the next job or fence may be tried again; ok is false when none waits for that.
func (s *scheduler) nextTry() (at time.Time, ok bool) {
	for _, j := range s.waiting {
		if s.fatal != nil || s.used+j.weight() > s.capacity() {
			continue
		}
		t := j.retryAt
		if t.Before(s.retryAt) {
			t = s.retryAt
		}
		if !ok || t.Before(at) {
			at, ok = t, true
		}
	}
	return at, ok
}

// open opens a fence for the batch. Jobs that it had no time for, or that failed for a reason that
// passes, wait again.
func (s *scheduler) open(ctx context.Context, batch []*job) {
	n, err := s.r.openBatch(ctx, batch, func(j *job, vs *views) {
		s.used += j.weight()
		s.active++
		go func() {
			s.results <- j.compare(ctx, vs)
		}()
	}, func(j *job, err error) {
		s.retry(ctx, j, err)
	})
	s.waiting = append(batch[n:len(batch):len(batch)], s.waiting...)
	if err == nil {
		s.tries = 0
		return
	}
	class, ok := sidecar.ClassOf(err)
	if s.tries++; ctx.Err() != nil || ok && class == sidecar.Permanent || s.tries >= maxTries {
		s.fatal = err
		return
	}
	wait := s.r.retryWait(s.tries)
	s.retryAt = time.Now().Add(wait)
	log.Warn(fmt.Sprintf("vdiff %s: no fence for workflow %s, trying again in %v: %v", s.r.v.UUID, s.r.v.Workflow, wait, err))
	s.r.obs.Waiting(cut(fmt.Sprintf("another try, after: %v", err)))
}

// retry lets a job whose views could not be opened, or broke, wait for another try, unless its error
// will come back.
func (s *scheduler) retry(ctx context.Context, j *job, err error) {
	if ctx.Err() != nil {
		return
	}
	j.tries++
	if isPermanent(err) {
		err = classified(err)
	} else if j.tries < maxTries {
		wait := s.r.retryWait(j.tries)
		j.retryAt = time.Now().Add(wait)
		s.waiting = append(s.waiting, j)
		log.Warn(fmt.Sprintf("vdiff %s: table %s, trying again in %v: %v", s.r.v.UUID, j.table.Name, wait, err))
		s.r.obs.Waiting(cut(fmt.Sprintf("another try of table %s, after: %v", j.table.Name, err)))
		return
	}
	s.failed = append(s.failed, s.r.failTable(ctx, j.table.Name, err))
}

// collect takes the result of a comparison.
func (s *scheduler) collect(ctx context.Context, res result) {
	s.active--
	s.used -= res.job.weight()
	switch res.outcome {
	case outcomeAgain:
		res.job.tries = 0
		s.waiting = append([]*job{res.job}, s.waiting...)
	case outcomeFailed:
		if res.job.progressed {
			res.job.tries, res.job.progressed = 0, false
		}
		s.retry(ctx, res.job, res.err)
	}
	if s.active > 0 || len(s.waiting) == 0 {
		s.r.obs.Waiting("")
	}
}

// retryWait is the wait after so many tries.
func (r *run) retryWait(tries int) time.Duration {
	return min(r.RetryInterval/firstRetryPart<<(tries-1), r.RetryInterval)
}

// classified marks an error that MySQL will give again to the same statement. That of a table or column which is not there any more, as it
// was when the table was planned, passes with a plan of what is there by then.
func classified(err error) error {
	switch numberOf(err) {
	case sqlerror.ERNoSuchTable, sqlerror.ERBadFieldError, sqlerror.ERKeyDoesNotExist:
		if _, ok := sidecar.ClassOf(err); !ok {
			return sidecar.AsTransient(vterrors.Wrap(err, "its schema has changed since it was planned, the next try compares what is there then"))
		}
	}
	return sidecar.AsPermanent(err)
}

// numberOf is the number of an error of MySQL, 0 for another error.
func numberOf(err error) sqlerror.ErrorCode {
	if se, ok := sqlerror.NewSQLErrorFromError(err).(*sqlerror.SQLError); ok {
		return se.Number()
	}
	return 0
}

// isPermanent says whether an error that came over the wire is one that MySQL will give again.
func isPermanent(err error) bool {
	if class, ok := sidecar.ClassOf(err); ok {
		return class == sidecar.Permanent
	}
	switch numberOf(err) {
	case sqlerror.ERNoSuchTable, sqlerror.ERBadDb, sqlerror.ERBadFieldError, sqlerror.ERKeyDoesNotExist, sqlerror.ERAccessDeniedError,
		sqlerror.ERTableAccessDenied, sqlerror.ERDBAccessDenied, sqlerror.ERParseError, sqlerror.ERWrongValue:
		return true
	}
	return false
}

// cut bounds a text for show.
func cut(s string) string {
	const most = 200
	if len(s) > most {
		return strings.ToValidUTF8(s[:most], "") + "..."
	}
	return s
}
