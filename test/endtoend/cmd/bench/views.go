// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"time"

	"vitess.io/vitess/go/mysql"

	"github.com/vttablet-ext/vttablet-ext/test/endtoend/cluster"
)

// viewEvery is how often the transactions of a mysqld are read: InnoDB makes a new list ten times per second.
const viewEvery = 100 * time.Millisecond

// views watches how long transactions live on some mysqlds: what a read view keeps from being purged. It is sampled, and
// transactions of one connection that follow each other within a second count as one.
type views struct {
	conns   []*mysql.Conn
	longest time.Duration // valid when run has returned
}

func newViews(ctx context.Context, tablets []*cluster.Tablet) (*views, error) {
	v := &views{}
	for _, t := range tablets {
		conn, err := t.Conn(ctx)
		if err != nil {
			v.close()
			return nil, err
		}
		v.conns = append(v.conns, conn)
	}
	return v, nil
}

func (v *views) close() {
	for _, conn := range v.conns {
		conn.Close()
	}
}

// run returns without an error when its context ends.
func (v *views) run(ctx context.Context) error {
	defer context.AfterFunc(ctx, v.close)()
	tick := time.NewTicker(viewEvery)
	defer tick.Stop()
	since := make([]map[string]time.Time, len(v.conns)) // when each transaction was seen first
	for {
		for i, conn := range v.conns {
			result, err := conn.ExecuteFetch("select concat(trx_mysql_thread_id, ' ', trx_id, ' ', trx_started) from information_schema.innodb_trx", 10_000, false)
			if ctx.Err() != nil {
				return nil
			}
			if err != nil {
				return err
			}
			now, live := time.Now(), map[string]time.Time{}
			for _, row := range result.Rows {
				name := row[0].ToString()
				first, known := since[i][name]
				if !known {
					first = now
				}
				live[name] = first
				v.longest = max(v.longest, now.Sub(first))
			}
			since[i] = live
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}
