// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package main

import (
	"container/heap"
	"math"
	"math/rand/v2"
	"time"
)

// sizes draws the rows of each table on each shard, and their sum. Tables are unlike each other (log-normal), shards are
// nearly alike.
func sizes(p params) (shards [][]int64, total float64) {
	r := rand.New(rand.NewPCG(p.seed, 0))
	means := make([]float64, p.tables)
	for i := range means {
		// The mean of a log-normal distribution is exp(mu + sigma^2/2).
		means[i] = p.rows * math.Exp(p.spread*r.NormFloat64()-p.spread*p.spread/2)
	}
	for range p.shards {
		tables := make([]int64, p.tables)
		for i, mean := range means {
			tables[i] = int64(mean * (0.95 + 0.1*r.Float64()))
			total += float64(tables[i])
		}
		shards = append(shards, tables)
	}
	return shards, total
}

// stop returns how long streams are stopped for consistent snapshots on both sides: until the sources' are open, and then until
// the streams have applied what they are behind, and the target's is open.
func (p params) stop() time.Duration {
	sources := p.rtt + max(0, p.replicaLag-p.lag) + p.rtt + p.lockTables
	return sources + seconds((p.lag+sources).Seconds()/(p.apply-1)) + 4*p.rtt
}

// arrival is a shard that wants the workflow's lock.
type arrival struct {
	at    time.Duration
	shard int
	next  int
}

// arrivals orders them by time.
type arrivals []arrival

func (a arrivals) Len() int { return len(a) }
func (a arrivals) Less(i, j int) bool {
	return a[i].at < a[j].at || (a[i].at == a[j].at && a[i].shard < a[j].shard)
}
func (a arrivals) Swap(i, j int) { a[i], a[j] = a[j], a[i] }
func (a *arrivals) Push(x any)   { *a = append(*a, x.(arrival)) }
func (a *arrivals) Pop() any {
	last := (*a)[len(*a)-1]
	*a = (*a)[:len(*a)-1]
	return last
}

// stock simulates VDiff2. Each shard takes its tables one after the other. For each it needs the one lock of the workflow, stops its
// streams, opens the snapshots, starts the streams, and gives the lock back; then it reads all rows of both sides.
func stock(p params, shards [][]int64) (out result) {
	var queue arrivals
	for shard := range shards {
		heap.Push(&queue, arrival{shard: shard})
	}
	var free time.Duration
	stop := p.stop()
	for len(queue) > 0 {
		a := heap.Pop(&queue).(arrival)
		free = max(free, a.at) + stop + 2*p.topo
		out.locked += stop + 2*p.topo
		out.pause(stop)
		rows := float64(shards[a.shard][a.next])
		bytes := rows * p.rowBytes
		scanned := rows * float64(p.fan) / (p.readRate * float64(p.workers))
		read := seconds(max(rows/p.stockRate, bytes/p.bandwidth, scanned))
		out.bytes += bytes
		out.read += rows
		out.longestView = max(out.longestView, read)
		a.at, a.next = free+read, a.next+1
		out.wall = max(out.wall, a.at)
		if a.next < len(shards[a.shard]) {
			heap.Push(&queue, a)
		}
	}
	return out
}
