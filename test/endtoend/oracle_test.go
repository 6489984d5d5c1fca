// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package endtoend

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"golang.org/x/sync/errgroup"

	"github.com/vttablet-ext/vttablet-ext/test/endtoend/cluster"
)

// oracle is the cluster of TestOracle and what has happened there.
type oracle struct {
	c        *cluster.Cluster
	padding  map[string]bool     // collations for which trailing spaces make no difference
	tables   int                 // in a batch
	plants   int                 // how often differences are planted
	only     string              // numbers of tables
	stock    int                 // in how many waves the stock engine compares, too
	wanted   int                 // rounds of each way; 0 where the batches are given
	regions  string              // the file of region_json
	tablesOf map[string]*sharded // of the sharded keyspaces, in this wave
	vtctl    sync.Mutex          // held by commands that change the VSchema
	turn     sync.Mutex          // held by a batch that reshards
	serving  string              // the shards of its keyspace that serve

	mu       sync.Mutex
	rounds   map[way]int
	found    [4]int64
	wrong    map[way][]string
	outcomes map[string][]string // tables that were not compared, by why
	kinds    map[string]*difference
	placed   map[string]int // by what the tables that were split are distributed
}

// TestOracle compares random tables with random rows, copied by a workflow between random layouts of shards, and holds what
// the engine says against the truth, which it finds by itself with brute force: first as they were copied, then with
// rows that were written later and replicated, then with differences planted on the target, by digests and by rows in a
// fence. Counts of each shard and the rows that are shown must be exactly the true ones.
//
// A round is one comparison of one table. ORACLE_ROUNDS=<n> runs batches of tables until each way has had n rounds,
// ORACLE_SEED=<seed> is the seed of the first batch, ORACLE_BATCHES=<n> their number, ORACLE_TABLES=<n> how many tables a
// batch has, ORACLE_PLANTS=<n> how often differences are planted, and ORACLE_ONLY=<n>,<n> chooses some of the tables.
// ORACLE_STOCK=<n> lets the stock engine compare the tables of the first n batches of each layout, too, and writes
// docs/differences.md.
func TestOracle(t *testing.T) {
	leaked := goleak.IgnoreCurrent()
	// Without variables it is always the same tables, of which some are grouped, or copies of reference tables: what fails then is what was
	// changed.
	seed, rounds, batches, number, plants, stock := uint64(30474), uint64(0), uint64(0), uint64(3), uint64(1), uint64(0)
	if os.Getenv("ORACLE_ROUNDS") != "" {
		seed, number, plants = uint64(time.Now().UnixNano()%1e9), 25, 16
		seed -= seed % uint64(len(layouts))
	}
	many := false
	for name, to := range map[string]*uint64{"ORACLE_SEED": &seed, "ORACLE_ROUNDS": &rounds, "ORACLE_BATCHES": &batches, "ORACLE_TABLES": &number, "ORACLE_PLANTS": &plants, "ORACLE_STOCK": &stock} {
		if value := os.Getenv(name); value != "" {
			n, err := strconv.ParseUint(value, 10, 64)
			require.NoError(t, err, name)
			*to, many = n, true
		}
	}
	o := &oracle{
		tables: int(number), plants: int(plants), only: os.Getenv("ORACLE_ONLY"), stock: int(stock),
		rounds: map[way]int{}, wrong: map[way][]string{}, outcomes: map[string][]string{}, kinds: map[string]*difference{}, placed: map[string]int{},
	}
	started := time.Now()
	o.start(t, many)
	defer func() {
		if t.Failed() {
			o.c.Fail()
		}
		assert.NoError(t, o.c.Close())
		goleak.VerifyNone(t, leaked)
	}()
	t.Logf("the cluster is up after %v; the first seed is %d", time.Since(started).Round(time.Second), seed)
	started = time.Now()
	if batches == 0 {
		o.wanted = int(rounds)
	}
	waves := 0
	for first, n := uint64(0), uint64(len(layouts)); batches == 0 || first < batches; first += n {
		if o.wanted > 0 && !o.helps(seed+first, seed+first+n-1) {
			continue
		}
		if batches > 0 {
			n = min(n, batches-first)
		}
		o.wave(t, seed+first, n, waves)
		waves++
		if batches == 0 && !o.needs(byRanges, byBuckets, byStockSource, byFence) {
			break
		}
		o.report(t, started)
	}
	o.report(t, started)
	if batches == 0 {
		for _, w := range []way{byRanges, byBuckets, byStockSource, byFence} {
			assert.Positive(t, o.rounds[w], "rounds by %s", w)
		}
	}
	noPanics(t, o.c)
}

// sharded is a VSchema.
type sharded struct {
	Sharded  bool           `json:"sharded"`
	Vindexes map[string]any `json:"vindexes"`
	Tables   map[string]any `json:"tables"`
}

// atOnce is how many batches run at the same time.
const atOnce = 4

// wave runs some batches. The sharded keyspaces learn all of their tables before.
func (o *oracle) wave(t *testing.T, seed, n uint64, number int) {
	batches := make([]*batch, n)
	o.tablesOf = map[string]*sharded{}
	for _, keyspace := range []string{"odst", reshardKeyspace} {
		o.tablesOf[keyspace] = &sharded{true, map[string]any{}, map[string]any{}}
	}
	for i := range batches {
		batches[i] = o.newBatch(seed+uint64(i), number)
		batches[i].vschema(o.tablesOf)
	}
	// A wave of the fixed tables takes a minute; with more tables, more plants or the stock engine beside it many.
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute*time.Duration(1+o.plants/2))
	defer cancel()
	o.applyVSchema(t, ctx)
	t.Run(fmt.Sprintf("seeds from %d", seed), func(t *testing.T) {
		slots := make(chan struct{}, atOnce)
		if o.stock > number {
			slots = make(chan struct{}, 1) // tablets are restarted
		}
		for _, b := range batches {
			t.Run(fmt.Sprintf("seed %d", b.seed), func(t *testing.T) {
				t.Parallel()
				if b.layout.reshards() {
					o.turn.Lock()
					defer o.turn.Unlock()
					o.serve(t, ctx, b.layout.fromShards)
				}
				slots <- struct{}{}
				defer func() { <-slots }()
				b.run(t, ctx)
			})
		}
	})
}

// needs says whether one of the ways has not had its rounds.
func (o *oracle) needs(ways ...way) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.ContainsFunc(ways, func(w way) bool { return o.rounds[w] < o.wanted })
}

// helps says whether one of some batches is of a mix by which a way gets the rounds that it needs.
func (o *oracle) helps(seeds ...uint64) bool {
	return slices.ContainsFunc(seeds, func(seed uint64) bool {
		switch mixOf(seed) {
		case fromStock:
			return o.needs(byStockSource)
		case inOrder:
			return o.needs(byRanges, byFence)
		default:
			return o.needs(byBuckets, byFence)
		}
	})
}

// soFar says how many rounds each way has had.
func (o *oracle) soFar() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return fmt.Sprint(o.rounds)
}

// count notes a round.
func (o *oracle) count(w way, found map[string]*truth) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.rounds[w]++
	for _, v := range found {
		for i, n := range v.counts() {
			o.found[i] += n
		}
	}
}

func (o *oracle) disagreed(w way, t *randomTable) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.wrong[w] = append(o.wrong[w], t.name)
}

// outcome notes a table that was not compared.
func (o *oracle) outcome(what string, t *randomTable, why string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	why = what + ": " + strings.ReplaceAll(strings.ReplaceAll(why, t.source, "T"), t.name, "T")
	o.outcomes[why] = append(o.outcomes[why], t.name)
}

// report logs what has happened so far.
func (o *oracle) report(t *testing.T, started time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	var text strings.Builder
	fmt.Fprintf(&text, "after %v: rows matching, mismatched, extra source, extra target: %v\n", time.Since(started).Round(time.Second), o.found)
	for _, w := range slices.Sorted(maps.Keys(o.rounds)) {
		fmt.Fprintf(&text, "  %5d rounds by %s, %d wrong %v\n", o.rounds[w], w, len(o.wrong[w]), o.wrong[w])
	}
	for _, why := range slices.Sorted(maps.Keys(o.outcomes)) {
		names := o.outcomes[why]
		fmt.Fprintf(&text, "  %5d %s (%s)\n", len(names), why, strings.Join(names[:min(3, len(names))], ", "))
	}
	fmt.Fprintf(&text, "  tables by what distributes them: %v\n", o.placed)
	t.Log(text.String())
}

// start starts the cluster.
func (o *oracle) start(t *testing.T, many bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	var err error
	o.c, err = cluster.New(ctx, cluster.Options{ExtFlags: extFlags})
	require.NoError(t, err)
	group, groupCtx := errgroup.WithContext(ctx)
	group.Go(func() error {
		return o.c.AddKeyspaces(groupCtx,
			cluster.Keyspace{Name: "osrc", Shards: []cluster.Shard{{Name: "0"}}, VSchema: `{}`},
			cluster.Keyspace{Name: "ostk", Shards: []cluster.Shard{{Name: "0", Stock: true}}, VSchema: `{}`},
			cluster.Keyspace{Name: "oone", Shards: []cluster.Shard{{Name: "0"}}, VSchema: `{}`},
			cluster.Keyspace{Name: "odst", Shards: []cluster.Shard{{Name: "-80"}, {Name: "80-"}}})
	})
	group.Go(func() error { return o.addReshard(groupCtx, many) })
	err = group.Wait()
	if err == nil {
		err = o.writeRegions()
	}
	if err == nil {
		err = o.readPadding(ctx)
	}
	if err == nil {
		err = o.checkFolds(ctx)
	}
	if err != nil {
		o.c.Fail()
		require.NoError(t, fmt.Errorf("%w (closing: %v)", err, o.c.Close()))
	}
}

func (o *oracle) readPadding(ctx context.Context) error {
	result, err := o.c.Primary("osrc", "0").Query(ctx, "select collation_name, pad_attribute from information_schema.collations")
	if err != nil {
		return err
	}
	o.padding = map[string]bool{}
	for _, row := range result.Rows {
		o.padding[row[0].ToString()] = row[1].ToString() == "PAD SPACE"
	}
	return nil
}

// applyVSchema tells the sharded keyspaces their tables.
func (o *oracle) applyVSchema(t *testing.T, ctx context.Context) {
	t.Helper()
	o.vtctl.Lock()
	defer o.vtctl.Unlock()
	for keyspace, vschema := range o.tablesOf {
		_, err := o.c.Vtctl(ctx, "ApplyVSchema", "--vschema", marshal(t, vschema), keyspace)
		require.NoError(t, err)
	}
}
