// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"time"
)

// params is what is simulated.
type params struct {
	shards, tables, fan, workers int
	rows, rowBytes               float64
	spread                       float64
	lag, replicaLag              time.Duration
	writes, hot                  float64
	readRate, stockRate          float64
	apply                        float64
	bandwidth                    float64
	rtt, topo, lockTables        time.Duration
	seed                         uint64
}

// register adds the flags.
func (p *params) register(flags *flag.FlagSet) {
	flags.IntVar(&p.shards, "shards", 128, "target shards")
	flags.IntVar(&p.tables, "tables", 1000, "tables of the workflow")
	flags.IntVar(&p.fan, "fan", 1, "source shards that a target shard has rows of: 1 when both keyspaces are sharded alike")
	flags.IntVar(&p.workers, "workers", 4, "calls at a time, of each target shard")
	flags.Float64Var(&p.rows, "rows", 1e6, "rows of a table on one target shard, on average")
	flags.Float64Var(&p.spread, "spread", 1.5, "standard deviation of the logarithm of a table's rows; 0: all tables are alike")
	flags.Float64Var(&p.rowBytes, "row-bytes", 200, "bytes of a row")
	flags.DurationVar(&p.lag, "lag", time.Second, "how far the workflow's streams are behind their sources")
	flags.DurationVar(&p.replicaLag, "replica-lag", 500*time.Millisecond, "how far the source tablets that are read are behind their primaries")
	flags.Float64Var(&p.writes, "writes", 200, "row changes per second on each target shard's rows")
	flags.Float64Var(&p.hot, "hot", 0.1, "share of them that goes to the last 100 rows of the largest table")
	flags.Float64Var(&p.readRate, "read-rate", 900_000, "rows per second that one worker reads and hashes")
	flags.Float64Var(&p.stockRate, "stock-rate", 165_000, "rows per second that are compared value by value")
	flags.Float64Var(&p.apply, "apply", 4, "how many times faster than sources write a stream applies what it is behind")
	flags.Float64Var(&p.bandwidth, "bandwidth", 125e6, "bytes per second between tablets")
	flags.DurationVar(&p.rtt, "rtt", time.Millisecond, "round trip between tablets")
	flags.DurationVar(&p.topo, "topo", 10*time.Millisecond, "time to take a lock of the topology service, and to give it back")
	flags.DurationVar(&p.lockTables, "lock-tables", 20*time.Millisecond, "time until LOCK TABLES is granted and snapshots are open")
	flags.Uint64Var(&p.seed, "seed", 1, "seed of all that is random")
}

// result is what a vdiff costs, all shards together.
type result struct {
	wall, locked, longestPause, paused, longestView time.Duration
	pauses                                          int
	bytes, read                                     float64
	fenced                                          int
}

// pause counts one time that a shard's streams were stopped.
func (r *result) pause(d time.Duration) {
	r.pauses++
	r.paused += d
	r.longestPause = max(r.longestPause, d)
}

// print writes both results beside each other.
func print(w io.Writer, p params, rows float64, stock, ours result) {
	fmt.Fprintf(w, "%d target shards, fan %d, %d tables, %.3g rows; streams lag %v, %g row changes per second and shard\n\n",
		p.shards, p.fan, p.tables, rows, p.lag, p.writes)
	line := func(name string, a, b any) { fmt.Fprintf(w, "| %-36s | %14v | %14v |\n", name, a, b) }
	line("", "VDiff2", "here")
	fmt.Fprintln(w, "|--------------------------------------|---------------:|---------------:|")
	line("wall time", show(stock.wall), show(ours.wall))
	line("time in the workflow's topo lock", show(stock.locked), show(ours.locked))
	line("pauses of streams, all shards", stock.pauses, ours.pauses)
	line("longest pause of a shard's streams", show(stock.longestPause), show(ours.longestPause))
	line("pauses in all, per shard", show(stock.paused/time.Duration(p.shards)), show(ours.paused/time.Duration(p.shards)))
	line("oldest read view", show(stock.longestView), show(ours.longestView))
	line("bytes over the network", size(stock.bytes), size(ours.bytes))
	line("rows read on targets / rows", fmt.Sprintf("%.3f", stock.read/rows), fmt.Sprintf("%.3f", ours.read/rows))
	line("ranges left for the fence", "-", ours.fenced)
}

// show writes a duration with a sensible number of digits.
func show(d time.Duration) string {
	switch {
	case d >= 48*time.Hour:
		return fmt.Sprintf("%.1f days", d.Hours()/24)
	case d >= 2*time.Hour:
		return fmt.Sprintf("%.1f h", d.Hours())
	case d >= 2*time.Minute:
		return fmt.Sprintf("%.1f min", d.Minutes())
	}
	return fmt.Sprintf("%.2f s", d.Seconds())
}

// size writes a number of bytes.
func size(bytes float64) string {
	units := []string{"B", "kB", "MB", "GB", "TB", "PB"}
	i := 0
	for ; bytes >= 1000 && i < len(units)-1; i++ {
		bytes /= 1000
	}
	return fmt.Sprintf("%.1f %s", bytes, units[i])
}

// seconds makes a duration of a number.
func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

func main() {
	var p params
	p.register(flag.CommandLine)
	flag.Parse()
	if err := run(os.Stdout, p); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run simulates both engines on the same tables.
func run(w io.Writer, p params) error {
	if p.shards < 1 || p.tables < 1 || p.fan < 1 || p.fan > p.shards || p.workers < 1 || p.readRate <= 0 || p.stockRate <= 0 || p.bandwidth <= 0 || p.apply <= 1 {
		return fmt.Errorf("shards, tables, fan, workers and rates must be positive, fan not above shards, apply above 1")
	}
	shards, rows := sizes(p)
	ours, err := simulate(p, shards)
	if err != nil {
		return err
	}
	print(w, p, rows, stock(p, shards), ours)
	return nil
}
