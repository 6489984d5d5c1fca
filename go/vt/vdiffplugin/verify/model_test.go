// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package verify

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/digest"
	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/pkrange"
)

// shards is the number of source shards of the model: a key is on shard key % shards.
const shards = 2

// proof is why a key counts as verified: what the target had, where its streams were, and when it was read.
type proof struct {
	rows     []int
	position int
	step     int
}

// read is a comparison in flight. The target is what it was read as, with the positions of its streams; the sources are read
// one after the other, each at some position.
type read struct {
	Task
	target    [][]int
	positions [shards]int
	step      int
	upTo      pkrange.Bound
	walked    bool
	at        []int // of the sources that have been read
}

// model is a workflow: sources that are written to, a target that follows, faults, and a vdiff.
type model struct {
	*rand.Rand
	m           *Machine
	seed        uint64
	now         time.Duration
	step        int
	keys        int
	buckets     int
	kind, told  Proof // what the events are like, and what the machine is told of it
	sources     [shards]source
	applied     [shards]int
	base        [shards]int // the positions at the vdiff's beginning
	target      [][]int     // the rows of each key
	faults      bool
	sourceFirst bool
	faulted     map[int]int // the step of the last fault of a key
	proofs      map[int]proof
	reads       []*read
}

// newModel makes the state in which a vdiff begins: some faults may have happened before.
func newModel(seed uint64, faults, sourceFirst bool) *model {
	r := rand.New(rand.NewPCG(seed, 3))
	kind, buckets := AnyTime, 0
	if r.IntN(4) == 0 {
		kind, buckets = Proof(r.IntN(3)), 4
	}
	return newModelOf(seed, faults, sourceFirst, buckets, kind, kind)
}

func newModelOf(seed uint64, faults, sourceFirst bool, buckets int, kind, told Proof) *model {
	w := &model{
		Rand: rand.New(rand.NewPCG(seed, 2)), seed: seed, faults: faults, sourceFirst: sourceFirst, faulted: map[int]int{}, proofs: map[int]proof{},
		buckets: buckets, kind: kind, told: told,
	}
	if w.keys = 20 + w.IntN(60); kind != AnyTime {
		w.keys = 4 + w.IntN(8) // so that events and faults meet
	}
	w.target = make([][]int, w.keys)
	w.m = New(Config{
		Workers: 1 + w.IntN(3), FirstRows: 8, MinRows: 4, MaxRows: 16, LeafRows: 2, Tries: 3, RetryAfter: time.Second,
		MaxPending: 2 + w.IntN(6), MaxFence: 2 + w.IntN(30),
	})
	for range w.keys {
		w.write()
	}
	for w.apply() {
	}
	w.base = w.applied
	for range w.IntN(4) {
		w.damage()
	}
	table := Table{ID: "t", Rows: int64(w.keys), Buckets: w.buckets, Proof: w.told}
	if w.buckets == 0 && w.IntN(2) == 0 {
		table.Min, table.Max = &pkrange.Value{Int: 0}, &pkrange.Value{Int: int64(w.keys)}
	}
	if err := w.m.Add(table); err != nil {
		panic(err)
	}
	return w
}

// run runs the vdiff to its end, with everything interleaved at random.
func (w *model) run() {
	writing := w.IntN(400)
	busy := 1 + w.IntN(10)
	for w.step = 1; !w.m.Done(); w.step++ {
		if w.step > 100_000 {
			panic("stuck")
		}
		switch n := w.IntN(40); {
		case n < busy && w.step < writing:
			w.write()
		case n < 20:
			w.apply()
		case n == 20 && w.step < writing && w.IntN(20) == 0:
			w.damage()
		case n == 21:
			w.now += time.Second / 4
		case n < 26 && len(w.reads) < 3:
			w.start()
		case n >= 26 && len(w.reads) > 0:
			i := w.IntN(len(w.reads))
			if w.advance(w.reads[i]) {
				w.reads = slices.Delete(w.reads, i, i+1)
			}
		}
		w.m.check()
	}
	for w.apply() {
	}
}

// start asks for what to do, or lets time pass.
func (w *model) start() {
	tasks := w.m.Next(w.now)
	if tasks == nil && len(w.reads) == 0 {
		if at, ok := w.m.Wake(); ok {
			w.now = max(w.now, at)
		}
	}
	for _, task := range tasks {
		w.reads = append(w.reads, &read{Task: task})
	}
}

// advance takes a comparison one read further: the target, then the sources one after the other. In the wrong order the
// sources are first.
func (w *model) advance(r *read) bool {
	source := func() {
		shard := len(r.at)
		head := len(w.sources[shard].events)
		at := head
		if !w.sourceFirst {
			// A replica that has executed the position of the target's stream, and maybe more.
			at = r.positions[shard] + w.IntN(head-r.positions[shard]+1)
		}
		r.at = append(r.at, at)
	}
	switch {
	case w.sourceFirst && len(r.at) < shards:
		source()
		return false
	case !r.walked:
		w.readTarget(r)
		return false
	case len(r.at) < shards:
		source()
		return false
	case w.IntN(10) == 0:
		w.m.Failed(r.ID, w.now)
	default:
		w.compare(r)
	}
	return true
}

// readTarget reads the target in one snapshot.
func (w *model) readTarget(r *read) {
	r.walked, r.positions, r.step = true, w.applied, w.step
	r.target = slices.Clone(w.target)
	found := int64(0)
	for key := range w.keys {
		if !contains(int64(key), r.Range) {
			continue
		}
		if found += int64(len(r.target[key])); r.Limit > 0 && found >= r.Limit {
			r.upTo = at(int64(key))
			break
		}
	}
	w.m.Walked(r.ID, r.upTo, found, 0, 0)
}

// compare compares digests.
func (w *model) compare(r *read) {
	if len(r.upTo) > 0 {
		r.Range.UpTo = r.upTo
	}
	n := max(r.Buckets, 1)
	var states [shards][][]int
	for shard := range states {
		states[shard] = w.sources[shard].state(w.keys, r.at[shard])
	}
	targets, sources := make([]digest.Sum, n), make([]digest.Sum, n)
	for key := range w.keys {
		if !contains(int64(key), r.Range) {
			continue
		}
		add := func(sums []digest.Sum, values []int) {
			for _, value := range values {
				sums[w.bucket(key, n)].Add(digest.Row(w.seed, []byte{byte(key), byte(value)}))
			}
		}
		add(targets, r.target[key])
		add(sources, states[key%shards][key])
	}
	o := Outcome{Equal: slices.Equal(targets, sources), SamePosition: slices.Equal(r.at, r.positions[:])}
	for i := range n {
		o.TargetRows += int64(targets[i].Rows)
		o.SourceRows += int64(sources[i].Rows)
		if r.Buckets > 0 {
			o.EqualBuckets = append(o.EqualBuckets, targets[i] == sources[i])
			o.BucketRows = append(o.BucketRows, int64(targets[i].Rows))
		}
	}
	proves := w.told == AnyTime || o.SamePosition && (w.told == SamePosition || o.Equal)
	for key := range w.keys {
		if _, proved := w.proofs[key]; proves && !proved && contains(int64(key), r.Range) && targets[w.bucket(key, n)] == sources[w.bucket(key, n)] {
			w.proofs[key] = proof{rows: r.target[key], position: r.positions[key%shards], step: r.step}
		}
	}
	w.m.Compared(r.ID, o, w.now)
}

// bucket returns which of n buckets a key is in.
func (w *model) bucket(key, n int) int {
	return digest.Bucket(digest.Row(w.seed, []byte{byte(key)}), n)
}

// verdict returns what is wrong with the vdiff's result, "" for nothing.
func (w *model) verdict() string {
	for key := range w.keys {
		s := &w.sources[key%shards]
		want := w.want(key)
		left := slices.ContainsFunc(w.m.Left("t"), func(r pkrange.Range) bool { return contains(int64(key), r) }) ||
			slices.Contains(w.m.LeftBuckets("t"), w.bucket(key, max(w.buckets, 1)))
		p, proved := w.proofs[key]
		differs := !slices.Equal(w.target[key], want)
		switch {
		case left == proved:
			return fmt.Sprintf("key %d is verified: %v, and left: %v", key, proved, left)
		case differs && !w.faults:
			return fmt.Sprintf("the model is broken: key %d differs", key)
		case differs && proved && w.faulted[key] <= p.step:
			return fmt.Sprintf("key %d is verified, but differs since before it was read", key)
		case proved && s.last(key) <= p.position && !slices.Equal(p.rows, want):
			return fmt.Sprintf("key %d is verified with %v, but what it should be for ever was %v", key, p.rows, want)
		}
	}
	if w.faults || w.told != AnyTime {
		return ""
	}
	for _, r := range w.m.Left("t") {
		if !w.written(func(key int) bool { return contains(int64(key), r) }) {
			return fmt.Sprintf("%v is left, and nobody wrote to it", r)
		}
	}
	for _, n := range w.m.LeftBuckets("t") {
		if !w.written(func(key int) bool { return w.bucket(key, w.buckets) == n }) {
			return fmt.Sprintf("bucket %d is left, and nobody wrote to it", n)
		}
	}
	return ""
}

// want returns what a key should have in the end.
func (w *model) want(key int) []int {
	s := &w.sources[key%shards]
	return s.state(w.keys, len(s.events))[key]
}

// written tells whether any of these keys was written to since the vdiff began.
func (w *model) written(among func(key int) bool) bool {
	for key := range w.keys {
		if among(key) && w.sources[key%shards].last(key) > w.base[key%shards] {
			return true
		}
	}
	return false
}
