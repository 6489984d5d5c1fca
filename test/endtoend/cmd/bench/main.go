// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

// Command bench compares the speed of this engine with the stock one, on the same data in one cluster: `make bench`.
//
// For each scenario it prints a line
//
//	BENCH <name> stock=<seconds> plugin=<seconds> ratio=<stock/plugin>
//
// with the medians of several runs, and after that of big a line BENCH floor=<seconds>: CHECKSUM TABLE of that table on all
// mysqlds at once, the least that reading it can cost. It writes all that it measured to build/bench.json, and the medians as a
// table, with what each scenario is meant to reach, to stderr and build/bench.txt. What it does in between goes to
// stderr. The two engines take turns, so that both see the same noise of the machine. For the stock engine the target tablets
// run upstream's own vttablet; the source tablets run vttablet-ext, but in the scenario stock-source. Before each run the
// target tablets are restarted, so that each run begins with the memory of a fresh process.
//
// A run is timed from just before the VDiffCreate call to vtctld until every target shard says in _vt.vdiff that the vdiff is
// completed. Every verdict is checked: a vdiff that does not find all rows, and all of them equal, fails the benchmark. A limit
// that is missed does not. In the scenario busy, rows of the source change all the time; when that has ended another vdiff checks
// that all rows are there and equal.
//
// The environment chooses: BENCH_SCENARIOS=big,many (all by default), BENCH_RUNS=1 (3 by default), BENCH_ROWS=300000 rows in
// the big table (3,000,000 by default; the wide table shrinks with it), VTTABLET_FLAGS passed to every vttablet.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"
)

const (
	resultFile = "build/bench.json"
	tableFile  = "build/bench.txt"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	switch err := run(ctx); {
	case err == nil:
	case ctx.Err() != nil:
		fmt.Fprintln(os.Stderr, "bench: interrupted; everything is ended")
		os.Exit(130)
	default:
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) (err error) {
	cfg, err := configFromEnv()
	if err != nil {
		return err
	}
	if _, err := os.Stat("go.mod"); err != nil {
		return fmt.Errorf("run it in the root of the repository: %w", err)
	}
	if err := os.MkdirAll("build", 0o755); err != nil {
		return err
	}
	started := time.Now()
	b, err := newBench(ctx, cfg)
	if err != nil {
		return err
	}
	defer func() { err = b.close(ctx, err) }()
	results := newResults(cfg)
	for _, s := range cfg.scenarios {
		result, err := b.measure(ctx, s)
		if err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		fmt.Println(result.line())
		if result.Floor > 0 {
			fmt.Printf("BENCH floor=%.2f\n", result.Floor)
		}
		for _, line := range result.details() {
			logf("%s", line)
		}
		results.Scenarios = append(results.Scenarios, result)
		if err := errors.Join(results.write(resultFile), results.writeTable(tableFile)); err != nil { // now, lest a failure of a later one loses it
			return err
		}
	}
	fmt.Fprint(os.Stderr, results.table())
	logf("all is in %s and %s; it took %v", resultFile, tableFile, time.Since(started).Round(time.Second))
	return nil
}

func logf(format string, args ...any) {
	fmt.Fprintf(os.Stderr, time.Now().Format("15:04:05")+" bench: "+format+"\n", args...)
}
