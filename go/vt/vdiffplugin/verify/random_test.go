// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package verify

import (
	"cmp"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/pkrange"
)

var (
	seedFlag   = flag.Uint64("seed", 0, "run one round of the random tests, with this seed")
	roundsFlag = flag.Int("rounds", 2000, "rounds of the random tests")
)

// seeds runs f with many seeds, or with that of the flag. A failure must print the seed.
func seeds(rounds int, f func(seed uint64)) {
	if *seedFlag != 0 {
		f(*seedFlag)
		return
	}
	for seed := range uint64(rounds) {
		f(seed + 1)
	}
}

// contains tells whether an integer key is in a range.
func contains(key int64, r pkrange.Range) bool {
	return pkrange.Contains([]pkrange.Value{{Int: key}}, r, func(_ int, a, b pkrange.Value) int { return cmp.Compare(a.Int, b.Int) })
}

// at makes a bound of an integer.
func at(key int64) pkrange.Bound { return pkrange.Bound{{Int: key}} }

// world is tables that do not change, of which comparisons end in random ways.
type world struct {
	*rand.Rand
	t        *testing.T
	m        *Machine
	seed     uint64
	now      time.Duration
	keys     map[TableID][]int64
	verified map[TableID]map[int64]int
	flight   []*flight
}

// flight is a task in flight.
type flight struct {
	Task
	walked bool
	upTo   pkrange.Bound
}

// TestRandom tests with random tables, outcomes, failures and restarts that after every event what must hold of a Machine
// does, that it never gets stuck, and that in the end each row is either verified exactly once or left for the fence.
func TestRandom(t *testing.T) {
	seeds(*roundsFlag/4, func(seed uint64) {
		w := &world{Rand: rand.New(rand.NewPCG(seed, 1)), t: t, seed: seed, keys: map[TableID][]int64{}, verified: map[TableID]map[int64]int{}}
		defer func() {
			if r := recover(); r != nil {
				panic(fmt.Sprintf("seed %d: %v", seed, r))
			}
		}()
		w.run()
	})
}

// require fails with the seed.
func (w *world) require(ok bool, format string, args ...any) {
	if !ok {
		require.Fail(w.t, fmt.Sprintf(format, args...), "rerun with -seed=%d", w.seed)
	}
}

// config returns random limits.
func (w *world) config() Config {
	return Config{
		Workers: 1 + w.IntN(4), FirstRows: 8, MinRows: 2, MaxRows: 32, LeafRows: 1 + w.Int64N(3), Tries: 1 + w.IntN(3),
		RetryAfter: time.Second, MaxPending: 1 + w.IntN(4), MaxFence: 1 + w.IntN(20),
	}
}

func (w *world) run() {
	w.m = New(w.config())
	for i := range 1 + w.IntN(6) {
		id := TableID(fmt.Sprint("t", i))
		for key := range int64(w.IntN(150)) {
			if w.IntN(3) > 0 {
				w.keys[id] = append(w.keys[id], key)
			}
		}
		w.verified[id] = map[int64]int{}
		w.add(id, nil)
	}
	// Bad tempers: how often calls fail, and comparisons are not equal.
	failing, unequal := w.IntN(30), w.IntN(60)
	for step := 0; !w.m.Done(); step++ {
		w.require(step < 100_000, "stuck: %v", w.m.tables)
		w.step(failing, unequal)
		w.m.check()
	}
	for id, keys := range w.keys {
		w.require(w.m.Finished(id), "%s is not finished", id)
		done := int64(0)
		for _, key := range keys {
			left := slices.ContainsFunc(w.m.Left(id), func(r pkrange.Range) bool { return contains(key, r) })
			n := w.verified[id][key]
			w.require(left && n == 0 || !left && n == 1, "%s: row %d is verified %d times, left %v", id, key, n, left)
			done += int64(n)
		}
		w.require(w.m.Stats(id).Rows == done, "%s: %d rows of %d are counted", id, w.m.Stats(id).Rows, done)
		for _, r := range w.m.Left(id) {
			rows := int64(0)
			for _, key := range keys {
				if contains(key, r) {
					rows++
				}
			}
			w.require(w.m.Settle(id, r, rows), "%s: %v is not settled", id, r)
			w.m.check()
		}
		w.require(slices.EqualFunc(w.m.Checkpoint(id, 1), []Segment{{Done: true, Rows: int64(len(keys))}},
			func(a, b Segment) bool { return a.Range.Equal(b.Range) && a.Done == b.Done && a.Rows == b.Rows }), "%s: %v", id, w.m.Checkpoint(id, 1))
	}
}

// add adds a table with an estimate that may be far off.
func (w *world) add(id TableID, segments []Segment) {
	table := Table{ID: id, Rows: int64(len(w.keys[id])) * w.Int64N(4) / 2, Segments: segments}
	if w.IntN(3) > 0 {
		table.Min, table.Max = &pkrange.Value{Int: 0}, &pkrange.Value{Int: w.Int64N(200)}
	}
	w.require(w.m.Add(table) == nil, "%s cannot be added", id)
}

// step lets one thing happen.
func (w *world) step(failing, unequal int) {
	switch n := w.IntN(100); {
	case n == 0:
		w.restart()
	case n < 10:
		w.now += time.Duration(w.IntN(1000)) * time.Millisecond
	case n < 50 && len(w.flight) < 4:
		batch := w.m.Next(w.now)
		if batch == nil && len(w.flight) == 0 && !w.m.Done() {
			at, ok := w.m.Wake()
			w.require(ok && at > w.now, "nothing to do, and nothing to wait for")
			w.now = at
		}
		for _, task := range batch {
			w.flight = append(w.flight, &flight{Task: task})
		}
	case len(w.flight) > 0:
		i := w.IntN(len(w.flight))
		if f := w.flight[i]; w.progress(f, failing, unequal) {
			w.flight = slices.Delete(w.flight, i, i+1)
		}
	}
}

// progress takes a task a step further, and tells whether it ended.
func (w *world) progress(f *flight, failing, unequal int) bool {
	if w.IntN(100) < failing {
		w.m.Failed(f.ID, w.now)
		return true
	}
	r := f.Range
	if !f.walked {
		f.walked = true
		rows := int64(0)
		for _, key := range w.keys[f.Table] {
			if contains(key, f.Range) {
				if rows++; f.Limit > 0 && (rows == f.Limit || w.IntN(40) == 0) {
					f.upTo = at(key)
					break
				}
			}
		}
		w.m.Walked(f.ID, f.upTo, rows, 0, 0)
		return false
	}
	if len(f.upTo) > 0 {
		r.UpTo = f.upTo
	}
	rows := int64(0)
	for _, key := range w.keys[f.Table] {
		if contains(key, r) {
			rows++
		}
	}
	o := Outcome{Equal: w.IntN(100) >= unequal, TargetRows: rows, SourceRows: rows + w.Int64N(2), SamePosition: w.IntN(10) == 0}
	if !o.Equal && w.IntN(10) == 0 {
		if key := w.Int64N(200); contains(key, r) {
			o.SourceUpTo = at(key)
		}
	}
	if o.Equal {
		for _, key := range w.keys[f.Table] {
			if contains(key, r) {
				w.verified[f.Table][key]++
			}
		}
	}
	w.m.Compared(f.ID, o, w.now)
	return true
}

// restart begins anew from checkpoints, as after a crash: tasks in flight are lost, and so may be what was verified.
func (w *world) restart() {
	old := w.m
	w.m, w.flight = New(w.config()), nil
	for id := range w.keys {
		most := 1 + w.IntN(6)
		segments := old.Checkpoint(id, most)
		w.require(len(segments) <= most || most == 0, "%d segments are more than %d", len(segments), most)
		w.require(CheckSegments(segments) == nil, "%v", segments)
		for key := range w.verified[id] {
			if !slices.ContainsFunc(segments, func(s Segment) bool { return s.Done && contains(key, s.Range) }) {
				delete(w.verified[id], key)
			}
		}
		w.add(id, segments)
	}
}
