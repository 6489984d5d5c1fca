// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

// Command demo shows the engine on a real workflow: `make demo`.
//
// It starts a cluster of its own, loads 1,000,000 rows into three tables of an unsharded keyspace, has MoveTables copy them into
// two shards, and diffs them through vtctldclient. In the middle of the diff it kills the vttablet of a target primary with
// SIGKILL and starts it again: the diff must go on by itself and end with the exact counts. Then it changes one row, deletes one
// and inserts one on the target, behind the back of replication: a second diff must report these three rows and no other.
//
// Each verdict is checked. When any is not exactly what it must be, the command says so and its exit code is 1. Nothing is
// left when it ends, also by Ctrl-C.
//
// A diff that is over before it is seen in its middle is done again with more rows: progress is written once a second, and a
// kill before the first or after the last row would show nothing.
//
// The environment may set DEMO_ROWS (1,000,000 by default) and VTTABLET_FLAGS, which are passed to every vttablet.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"
)

const (
	defaultRows = 1_000_000
	leastRows   = 1000
	// longest is when a demo that hangs is given up.
	longest = 30 * time.Minute
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	out := newPrinter(os.Stdout)
	err := run(ctx, out)
	switch {
	case err == nil:
	case ctx.Err() != nil:
		out.fail("interrupted; everything is ended")
		os.Exit(130)
	default:
		out.fail("%v", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out *printer) (err error) {
	rows, err := rowsFromEnv()
	if err != nil {
		return err
	}
	runCtx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	d := &demo{out: out, tables: tables(rows), workflow: "move"}
	defer func() {
		if d.c == nil {
			return
		}
		if err != nil && ctx.Err() == nil {
			d.c.Fail()
		}
		err = errors.Join(err, d.c.Close())
		if err == nil {
			out.summary(d.findings)
		}
	}()
	for _, step := range []struct {
		what string
		do   func(context.Context) error
	}{
		{"start a cluster: keyspace src with one shard, keyspace dst with the shards -80 and 80-", d.startCluster},
		{fmt.Sprintf("load %s rows into three tables of src", count(total(d.tables))), d.loadTables},
		{"copy them to dst with MoveTables", d.moveTables},
		{"diff them, and kill a target primary's vttablet in the middle", d.diffThroughKill},
		{"change, delete and insert one row on the target behind replication", d.tamper},
		{"diff again: exactly these three rows must be found", d.diffTampered},
	} {
		out.step(step.what)
		if err := step.do(runCtx); err != nil {
			return err
		}
		out.stepDone()
	}
	return nil
}

// rowsFromEnv is how many rows there shall be.
func rowsFromEnv() (int64, error) {
	text := os.Getenv("DEMO_ROWS")
	if text == "" {
		return defaultRows, nil
	}
	rows, err := strconv.ParseInt(text, 10, 64)
	if err != nil || rows < leastRows {
		return 0, fmt.Errorf("DEMO_ROWS must be a number of %d or more, not %q", leastRows, text)
	}
	return rows, nil
}
