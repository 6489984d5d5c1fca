// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package main

import (
	"container/heap"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/pkrange"
	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/verify"
)

const (
	// requestBytes and taskBytes are what a call and each range in it are on the network, for one source shard: request,
	// plan of the table, answer.
	requestBytes, taskBytes = 500, 300
	// overhead of a range on each side: a statement, a round trip to mysqld.
	overhead = time.Millisecond / 2
	// hotRows is the size of the hot spot.
	hotRows = 100
)

// call is one call of a worker.
type call struct {
	at      time.Duration // when its present part ends
	seq     int
	tasks   []verify.Task
	ranges  [][2]int64 // (after, upTo], once the target has been read
	window  time.Duration
	took    []time.Duration // each range on the sources
	sources bool
}

// calls orders them by time.
type calls []*call

func (c calls) Len() int { return len(c) }
func (c calls) Less(i, j int) bool {
	return c[i].at < c[j].at || (c[i].at == c[j].at && c[i].seq < c[j].seq)
}
func (c calls) Swap(i, j int) { c[i], c[j] = c[j], c[i] }
func (c *calls) Push(x any)   { *c = append(*c, x.(*call)) }
func (c *calls) Pop() any {
	last := (*c)[len(*c)-1]
	*c = (*c)[:len(*c)-1]
	return last
}

// shard simulates one target shard.
type shard struct {
	params
	*rand.Rand
	m       *verify.Machine
	tables  []int64
	rows    float64
	hottest int // the largest table
	now     time.Duration
	flight  calls
	seq     int
	out     *result
}

// simulate simulates this engine: all shards on their own, and then the fences of those that have ranges left, which need the
// workflow's lock one after the other.
func simulate(p params, shards [][]int64) (out result, err error) {
	var ends []arrival
	left := make([]int64, len(shards))
	for i, tables := range shards {
		s := &shard{params: p, Rand: rand.New(rand.NewPCG(p.seed, uint64(i)+1)), tables: tables, out: &out}
		if err := s.run(); err != nil {
			return out, err
		}
		out.wall = max(out.wall, s.now)
		if left[i] = s.left(); left[i] > 0 {
			ends = append(ends, arrival{at: s.now, shard: i})
		}
	}
	slices.SortStableFunc(ends, func(a, b arrival) int { return int(a.at - b.at) })
	var free time.Duration
	stop := p.stop()
	for _, end := range ends {
		free = max(free, end.at) + stop + 2*p.topo
		out.locked += stop + 2*p.topo
		out.pause(stop)
		rows := float64(left[end.shard])
		read := seconds(rows / p.stockRate)
		out.bytes += rows * p.rowBytes
		out.read += rows
		out.longestView = max(out.longestView, read)
		out.wall = max(out.wall, free+read)
	}
	return out, nil
}

// run lets the workers of a shard work until nothing is left to do.
func (s *shard) run() error {
	s.m = verify.New(verify.Config{Workers: s.workers})
	for i, rows := range s.tables {
		s.rows += float64(rows)
		if rows > s.tables[s.hottest] {
			s.hottest = i
		}
		table := verify.Table{ID: verify.TableID(strconv.Itoa(i)), Rows: rows, Min: &pkrange.Value{Int: 1}, Max: &pkrange.Value{Int: rows}}
		if err := s.m.Add(table); err != nil {
			return err
		}
	}
	for !s.m.Done() {
		for len(s.flight) < s.workers {
			tasks := s.m.Next(s.now)
			if tasks == nil {
				break
			}
			s.start(tasks)
		}
		wake, waits := s.m.Wake()
		switch {
		case len(s.flight) > 0 && (!waits || wake <= s.now || s.flight[0].at <= wake || len(s.flight) == s.workers):
			c := heap.Pop(&s.flight).(*call)
			s.now = c.at
			s.end(c)
		case waits && wake > s.now:
			s.now = wake
		default:
			return fmt.Errorf("the vdiff of a shard is stuck")
		}
	}
	return nil
}

// start begins to read the target's part of a call.
func (s *shard) start(tasks []verify.Task) {
	c := &call{tasks: tasks}
	var took time.Duration
	for _, task := range tasks {
		after, upTo := int64(0), s.size(task.Table)
		if b := task.Range.After; len(b) > 0 {
			after = b[0].Int
		}
		if b := task.Range.UpTo; len(b) > 0 {
			upTo = min(upTo, b[0].Int)
		}
		if task.Limit > 0 {
			most := min(task.Limit, int64(task.MaxTime.Seconds()*s.readRate), int64(float64(task.MaxBytes)/s.rowBytes))
			upTo = min(upTo, after+max(most, 1))
		}
		upTo = max(upTo, after)
		c.ranges = append(c.ranges, [2]int64{after, upTo})
		took += overhead + seconds(float64(upTo-after)/s.readRate)
	}
	s.out.longestView = max(s.out.longestView, took)
	s.push(c, took)
}

// push lets a call go on for a while.
func (s *shard) push(c *call, took time.Duration) {
	s.seq++
	c.at, c.seq = s.now+took, s.seq
	c.window += took
	heap.Push(&s.flight, c)
}

// end deals with the end of a part of a call.
func (s *shard) end(c *call) {
	if !c.sources {
		c.sources = true
		took := s.rtt + max(0, s.replicaLag-s.lag)
		s.out.bytes += requestBytes * float64(s.fan)
		for i, task := range c.tasks {
			after, upTo := c.ranges[i][0], c.ranges[i][1]
			rows := upTo - after
			s.out.bytes += taskBytes * float64(s.fan)
			s.out.read += float64(rows)
			var place pkrange.Bound
			if task.Limit > 0 && upTo < s.size(task.Table) && (len(task.Range.UpTo) == 0 || upTo < task.Range.UpTo[0].Int) {
				place = pkrange.Bound{{Int: upTo}}
			}
			s.m.Walked(task.ID, place, rows, rows*int64(s.rowBytes), seconds(float64(rows)/s.readRate))
			// Each source scans as many rows, since those of its other targets are among them, and serves these too.
			source := overhead + seconds(float64(rows)*float64(s.fan)/s.readRate)
			c.took = append(c.took, source)
			took += source
		}
		s.push(c, took)
		return
	}
	// Changed in between is what the sources had executed when they were read and the target had not when it was.
	window := max(0, c.window+s.lag-min(s.replicaLag, s.lag)).Seconds()
	for i, task := range c.tasks {
		rows := c.ranges[i][1] - c.ranges[i][0]
		changes := s.rate(task.Table, c.ranges[i]) * window
		s.m.Compared(task.ID, verify.Outcome{
			Equal: s.Float64() < math.Exp(-changes), TargetRows: rows, SourceRows: rows, SamePosition: s.Float64() < math.Exp(-s.writes*window),
			Took: c.took[i],
		}, s.now)
	}
}

// rate returns the row changes per second in a range.
func (s *shard) rate(table verify.TableID, r [2]int64) float64 {
	spread := s.writes
	var hot float64
	if s.hot > 0 {
		spread *= 1 - s.hot
		if size := s.tables[s.hottest]; size == s.size(table) && strconv.Itoa(s.hottest) == string(table) {
			from := max(r[0], size-hotRows)
			hot = s.writes * s.hot * float64(max(0, r[1]-from)) / float64(min(size, hotRows))
		}
	}
	return hot + spread*float64(r[1]-r[0])/s.rows
}

// size returns the rows of a table.
func (s *shard) size(table verify.TableID) int64 {
	i, _ := strconv.Atoi(string(table))
	return s.tables[i]
}

// left returns the rows that are left for the fence, and counts the ranges.
func (s *shard) left() (rows int64) {
	for i, size := range s.tables {
		for _, r := range s.m.Left(verify.TableID(strconv.Itoa(i))) {
			after, upTo := int64(0), size
			if len(r.After) > 0 {
				after = r.After[0].Int
			}
			if len(r.UpTo) > 0 {
				upTo = min(upTo, r.UpTo[0].Int)
			}
			s.out.fenced++
			rows += max(1, upTo-after)
		}
	}
	return rows
}
