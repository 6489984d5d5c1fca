// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"vitess.io/vitess/go/mysql"

	"github.com/vttablet-ext/vttablet-ext/test/endtoend/cluster"
)

// pollEvery is how often the states of a vdiff and of its streams are read: what a time can be wrong by. The questions cost a
// target's mysqld about a twentieth of one CPU, whichever engine runs.
const pollEvery = 10 * time.Millisecond

// watch follows one vdiff in the tables of the target shards. It asks over MySQL's sockets, a connection for each question and
// shard, because the columns of _vt.vdiff hold whole seconds and an RPC would cost more than the answer.
type watch struct {
	vdiffs, streams []*mysql.Conn // one for each shard
	vdiffQuery      string
	streamQuery     string

	// Valid when run has returned without an error.
	ended time.Time
	// How long at least one stream of the workflow was not Running, in all and at the longest. It is sampled: a stop between two
	// polls is not seen, and each one that is seen counts from poll to poll.
	stopped, longestStop time.Duration
	stops                int64 // how many such times there were
}

// newWatch connects. The workflow must have no vdiff yet: the next one is followed.
func newWatch(ctx context.Context, w *cluster.Workflow, targets []*cluster.Tablet) (*watch, error) {
	db := targets[0].DBName()
	watch := &watch{
		vdiffQuery:  fmt.Sprintf("select state, last_error from _vt.vdiff where workflow = '%s' and db_name = '%s'", w.Name, db),
		streamQuery: fmt.Sprintf("select count(*) from _vt.vreplication where workflow = '%s' and db_name = '%s' and state <> 'Running'", w.Name, db),
	}
	for _, t := range targets {
		for _, conns := range []*[]*mysql.Conn{&watch.vdiffs, &watch.streams} {
			conn, err := t.Conn(ctx)
			if err != nil {
				watch.close()
				return nil, err
			}
			*conns = append(*conns, conn)
		}
	}
	return watch, nil
}

func (w *watch) close() {
	for _, conn := range append(w.vdiffs, w.streams...) {
		conn.Close()
	}
}

// run returns when the vdiff is completed on every shard, or failed on one. sample is called at every poll of the streams.
func (w *watch) run(ctx context.Context, sample func()) error {
	defer context.AfterFunc(ctx, w.close)()
	pollCtx, stop := context.WithCancel(ctx)
	defer stop()
	group := errgroup.Group{}
	group.Go(func() error { return w.pollStreams(pollCtx, sample) })
	group.Go(func() error {
		defer stop()
		return w.pollVDiff(ctx)
	})
	return group.Wait()
}

func (w *watch) pollVDiff(ctx context.Context) error {
	left := append([]*mysql.Conn(nil), w.vdiffs...)
	err := cluster.WaitFor(ctx, "the vdiff to complete", pollEvery, func(ctx context.Context) (bool, error) {
		for len(left) > 0 {
			result, err := left[0].ExecuteFetch(w.vdiffQuery, 1, false)
			if err != nil {
				return false, errors.Join(err, ctx.Err())
			}
			state := ""
			if len(result.Rows) > 0 {
				state = result.Rows[0][0].ToString()
			}
			switch state {
			case "completed":
				left = left[1:]
				continue
			case "error", "stopped":
				return false, fmt.Errorf("the vdiff is in state %s: %s", state, result.Rows[0][1].ToString())
			}
			return false, nil
		}
		return true, nil
	})
	w.ended = time.Now()
	return err
}

// pollStreams returns without an error when its context ends.
func (w *watch) pollStreams(ctx context.Context, sample func()) error {
	last, current := time.Now(), time.Duration(0)
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		sample()
		running := true
		for _, conn := range w.streams {
			result, err := conn.ExecuteFetch(w.streamQuery, 1, false)
			if ctx.Err() != nil {
				return nil
			}
			if err != nil {
				return err
			}
			running = running && result.Rows[0][0].ToString() == "0"
		}
		now := time.Now()
		if running {
			current = 0
		} else {
			if current == 0 {
				w.stops++
			}
			current += now.Sub(last)
			w.stopped += now.Sub(last)
			w.longestStop = max(w.longestStop, current)
		}
		last = now
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}
