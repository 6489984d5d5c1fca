// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package load

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"vitess.io/vitess/go/mysql"

	"github.com/vttablet-ext/vttablet-ext/test/endtoend/cluster"
)

const (
	// churnWorkers write at a time, each to identities of its own.
	churnWorkers = 2
	// churnTick is how often a worker looks at what is due.
	churnTick = 10 * time.Millisecond
)

// Churn changes rows of a table at a steady rate, spread over all of it: mostly updates, some deletes, and later on inserts of
// what was deleted. Each change is a transaction. A worker that falls behind its rate catches up as fast as it can.
type Churn struct {
	// Table and Rows are what Fill made on the tablet, with a column id that holds the numbers 1 to Rows.
	Table Table
	Rows  int64
	// Set is the assignment list of an update; it may use rand().
	Set string
	// PerSecond is the rate of row changes.
	PerSecond int

	changes, missing, mostMissing atomic.Int64

	started time.Time
	stop    context.CancelFunc
	group   errgroup.Group
}

// Start begins to write, until the context ends, a statement fails, which Stop tells, or Stop is called, which must be done.
func (c *Churn) Start(ctx context.Context, tablet *cluster.Tablet) {
	ctx, c.stop = context.WithCancel(ctx)
	c.started = time.Now()
	for i := range int64(churnWorkers) {
		c.group.Go(func() error {
			if err := c.work(ctx, tablet, i); err != nil {
				return fmt.Errorf("churn %s: %w", c.Table.Name, err)
			}
			return nil
		})
	}
}

// Changes is how many rows were changed so far.
func (c *Churn) Changes() int64 { return c.changes.Load() }

// MostMissing is how many rows were deleted at once, at most.
func (c *Churn) MostMissing() int64 { return c.mostMissing.Load() }

// Stop ends the writes, inserts the rows again that are deleted, and returns the rate that was reached.
func (c *Churn) Stop() (perSecond float64, err error) {
	elapsed := time.Since(c.started)
	perSecond = float64(c.Changes()) / elapsed.Seconds()
	c.stop()
	return perSecond, c.group.Wait()
}

func (c *Churn) work(ctx context.Context, tablet *cluster.Tablet, worker int64) error {
	// The connection outlives the context, for the rows that are to be inserted again.
	conn, err := tablet.Conn(context.WithoutCancel(ctx))
	if err != nil {
		return err
	}
	defer conn.Close()
	r := rand.New(rand.NewPCG(uint64(c.Rows), uint64(worker)))
	var deleted []int64
	tick := time.NewTicker(churnTick)
	defer tick.Stop()
	for done := int64(0); ; {
		select {
		case <-ctx.Done():
			for _, id := range deleted {
				if err := c.change(conn, c.Table.insert(Sequence{First: id, Last: id})); err != nil {
					return err
				}
			}
			return nil
		case <-tick.C:
		}
		due := int64(time.Since(c.started).Seconds() * float64(c.PerSecond) / churnWorkers)
		for ; done < due && ctx.Err() == nil; done++ {
			if deleted, err = c.one(conn, r, worker, deleted); err != nil {
				return err
			}
			c.changes.Add(1)
		}
	}
}

// one changes one row: 18 of 20 times it is an update. deleted are the rows that this worker has deleted.
func (c *Churn) one(conn *mysql.Conn, r *rand.Rand, worker int64, deleted []int64) ([]int64, error) {
	kind := r.IntN(20)
	if n := len(deleted); kind == 0 && n > 0 {
		i := r.IntN(n)
		id := deleted[i]
		deleted[i] = deleted[n-1]
		if err := c.change(conn, c.Table.insert(Sequence{First: id, Last: id})); err != nil {
			return deleted, err
		}
		c.missing.Add(-1)
		return deleted[:n-1], nil
	}
	id := c.present(r, worker, deleted)
	if kind == 1 && int64(len(deleted)) < c.Rows/(4*churnWorkers) {
		if err := c.change(conn, fmt.Sprintf("delete from %s where id = %d", c.Table.Name, id)); err != nil {
			return deleted, err
		}
		missing := c.missing.Add(1)
		for most := c.mostMissing.Load(); missing > most && !c.mostMissing.CompareAndSwap(most, missing); most = c.mostMissing.Load() {
		}
		return append(deleted, id), nil
	}
	return deleted, c.change(conn, fmt.Sprintf("update %s set %s where id = %d", c.Table.Name, c.Set, id))
}

// present is a row of this worker that is not deleted.
func (c *Churn) present(r *rand.Rand, worker int64, deleted []int64) int64 {
	gone := map[int64]bool{}
	for _, id := range deleted {
		gone[id] = true
	}
	for {
		if id := 1 + r.Int64N(c.Rows); id%churnWorkers == worker && !gone[id] {
			return id
		}
	}
}

// change runs a statement that changes one row.
func (c *Churn) change(conn *mysql.Conn, sql string) error {
	result, err := conn.ExecuteFetch(sql, 1, false)
	if err != nil {
		return err
	}
	if result.RowsAffected != 1 {
		return errors.New("not one row was changed by: " + sql)
	}
	return nil
}
