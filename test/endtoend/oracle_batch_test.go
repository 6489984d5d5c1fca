// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package endtoend

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"vitess.io/vitess/go/vt/vtctl/workflow"
	"vitess.io/vitess/go/vt/vttablet/tabletmanager/vdiff"

	"github.com/vttablet-ext/vttablet-ext/test/endtoend/cluster"
)

// layout is between which keyspaces, and how, a batch of tables is copied.
type layout struct {
	name     string
	from, to string
	merges   bool // from two shards
	splits   bool // to several shards
	filters  bool // by rules with a select list and a condition: Materialize
	// fromShards and toShards are set where both are in one keyspace: Reshard.
	fromShards, toShards string
}

var layouts = []*layout{
	{name: "one to one", from: "osrc", to: "oone"},
	{name: "split", from: "osrc", to: "odst", splits: true},
	{name: "merge", from: "odst", to: "oone", merges: true},
	{name: "materialize", from: "osrc", to: "oone", filters: true},
	{name: "materialize and split", from: "osrc", to: "odst", splits: true, filters: true},
	{name: "stock source", from: "ostk", to: "oone"},
	{name: "stock source, split", from: "ostk", to: "odst", splits: true},
	{name: "reshard, split", from: reshardKeyspace, to: reshardKeyspace, fromShards: "0", toShards: "-40,40-", splits: true},
	{name: "reshard, merge", from: reshardKeyspace, to: reshardKeyspace, fromShards: "-40,40-", toShards: "0", merges: true, splits: true},
}

// mix is what the batches of a wave have most of.
type mix uint64

const (
	inOrder mix = iota
	fromStock
	ofAll
)

// mixOf is the mix of a seed: each way of comparing is taken seldom by some of them.
func mixOf(seed uint64) mix { return mix(seed / uint64(len(layouts)) % 3) }

// layoutOf is the layout of a seed. Every other batch that would merge shards has more of them; without variables there is none.
func layoutOf(seed uint64) *layout {
	l := layouts[seed%uint64(len(layouts))]
	switch m := mixOf(seed); {
	case m == fromStock:
		return layouts[5+seed%2]
	case l.name == "reshard, merge" && m == inOrder:
		return reshardMany
	}
	return l
}

// ordersKeys says whether most tables of a seed have keys that both sides put in the same order.
func ordersKeys(seed uint64, l *layout) bool {
	return l.from == "ostk" || mixOf(seed) == inOrder
}

var reshardMany = &layout{name: "reshard", from: reshardKeyspace, to: reshardKeyspace, fromShards: "-40,40-", toShards: "-80,80-", merges: true, splits: true}

// batch is a workflow of some tables.
type batch struct {
	o                *oracle
	seed             uint64
	number           int // of tables when it was made
	layout           *layout
	tables, leftOut  []*randomTable
	w                *cluster.Workflow
	sources, targets []*cluster.Tablet
	sessions         sessions
	planted          map[*randomTable][]string
	wave             int
}

func (o *oracle) newBatch(seed uint64, wave int) *batch {
	l := layoutOf(seed)
	b := &batch{o: o, seed: seed, wave: wave, number: o.tables, layout: l, sessions: sessions{}, planted: map[*randomTable][]string{}}
	for n := range o.tables {
		t := newRandomTable(seed, n, l)
		if o.only == "" || slices.Contains(strings.Split(o.only, ","), t.number()) {
			b.tables = append(b.tables, t)
		}
		for _, v := range t.vindexes {
			if _, ok := v.params["region_map"]; ok {
				v.params["region_map"] = o.regions
			}
		}
	}
	b.w = o.c.Workflow(l.to, fmt.Sprintf("oracle%d", seed))
	b.targets = o.primaries(l.to, l.toShards)
	b.sources = o.primaries(l.from, l.fromShards)
	return b
}

// vschema is what a sharded keyspace has to know of the tables that are there.
func (b *batch) vschema(keyspaces map[string]*sharded) {
	l := b.layout
	if !l.merges && !l.splits {
		return
	}
	keyspace, source := keyspaces[l.to], l.merges && !l.reshards()
	if source {
		keyspace = keyspaces[l.from]
	}
	for _, t := range b.tables {
		keyspace.Tables[t.name] = t.vschema(source, keyspace.Vindexes)
	}
}

// run copies the tables and compares them, and again when more is replicated; then plants differences, more and more, and compares on every way;
// and clears up.
func (b *batch) run(t *testing.T, ctx context.Context) {
	defer b.sessions.close()
	started := time.Now()
	var phases []string
	phase := func(name string) {
		phases = append(phases, fmt.Sprintf("%s %v", name, time.Since(started).Round(10*time.Millisecond)))
		started = time.Now()
	}
	b.tables = slices.DeleteFunc(b.tables, func(table *randomTable) bool {
		err := table.fill(ctx, b.sessions, b.sources)
		if err != nil {
			require.NoError(t, ctx.Err())
			b.o.outcome("not made", table, shortError(err))
			b.dropSource(t, ctx, table)
		}
		return err != nil
	})
	b.leaveOut()
	phase("fill")
	defer b.clear(t, context.WithoutCancel(ctx))
	b.copyTables(t, ctx)
	if len(b.tables) == 0 {
		return
	}
	b.addCopies(t, ctx)
	phase("copy")
	b.o.countPlaced(b)
	b.check(t, ctx, "as copied")
	phase("vdiff")
	when := "as replicated"
	if !b.replicate(t, ctx) {
		b.copyAgain(t, ctx)
		when = "as copied again"
	}
	if len(b.tables) == 0 {
		return
	}
	phase("replication")
	b.check(t, ctx, when)
	phase("vdiff")
	for range b.o.plants {
		for _, table := range b.tables {
			planted, err := b.plant(ctx, table)
			require.NoError(t, err)
			b.planted[table] = append(b.planted[table], planted...)
		}
		phase("plant")
		b.check(t, ctx, "planted")
		phase("vdiff")
		if b.o.wanted == 0 || b.o.needs(byFence) {
			b.check(t, ctx, "planted", inFenceOnly...)
			phase("vdiff in a fence")
		}
	}
	if b.o.stock > b.wave {
		b.compareStock(t, ctx)
		b.o.writeDifferences(t)
		phase("stock")
	}
	t.Logf("%s, %d tables: %s; rounds so far: %s", b.layout.name, len(b.tables), strings.Join(phases, ", "), b.o.soFar())
}

// inFenceOnly makes a vdiff compare rows inside of a fence, without digests: it asks for the first rows, more than there are.
var inFenceOnly = []string{"--limit", "1000000"}

// check compares the tables and holds the result against the truth.
func (b *batch) check(t *testing.T, ctx context.Context, when string, flags ...string) {
	t.Helper()
	s, err := b.diff(ctx, append([]string{"--tablet-types", "primary", "--max-report-sample-rows", "0", "--row-diff-column-truncate-at", "0", "--max-extra-rows-to-compare", "100000"}, flags...)...)
	require.NoError(t, err, "seed %d", b.seed)
	ways := b.ways(t, s.UUID, len(flags) > 0)
	different, refused := false, false
	for _, table := range b.leftOut {
		assert.NotContains(t, s.TableSummaryMap, table.name, "seed %d", b.seed)
	}
	for _, table := range b.tables {
		found, err := b.find(ctx, table)
		require.NoError(t, err, "seed %d: the oracle itself cannot compare", b.seed)
		for _, v := range found {
			different = different || v.different()
		}
		if state := s.TableSummaryMap[table.name].State; state != vdiff.CompletedState {
			b.o.outcome("refused", table, b.reason(s, table))
			refused = true
			continue
		}
		b.o.count(ways[table], found)
		if list := table.disagreements(s, found); len(list) > 0 {
			b.o.disagreed(ways[table], table)
			t.Errorf("%s", b.describe(ctx, table, when+", "+string(ways[table]), list, s.Reports[table.name], found))
		}
	}
	if !refused {
		assert.Equal(t, different, s.HasMismatch, "seed %d: HasMismatch", b.seed)
	}
}

// diff runs a vdiff until it is completed or will not go on.
func (b *batch) diff(ctx context.Context, flags ...string) (*workflow.Summary, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	uuid, err := b.w.VDiffCreate(ctx, flags...)
	if err != nil {
		return nil, err
	}
	if err := b.waitEnded(ctx, uuid); err != nil {
		return nil, err
	}
	var s *workflow.Summary
	var failed time.Time
	err = cluster.WaitFor(ctx, "vdiff "+uuid, 100*time.Millisecond, func(ctx context.Context) (bool, error) {
		if s, err = b.w.VDiffShow(ctx, uuid); err != nil {
			return false, err
		}
		switch {
		case s.State == vdiff.CompletedState:
			return true, nil
		case s.State != vdiff.ErrorState:
			failed = time.Time{}
		case failed.IsZero():
			failed = time.Now()
		}
		return !failed.IsZero() && time.Since(failed) > retryTime, nil // an error that is tried again passes
	})
	if err != nil && s != nil {
		err = fmt.Errorf("%w: it is %s, errors %v", err, s.State, s.Errors)
	}
	return s, err
}

// waitEnded waits until no shard goes on with a vdiff, which may be for a moment only. Asking vtctldclient again and again would take more time
// than the vdiffs do.
func (b *batch) waitEnded(ctx context.Context, uuid string) error {
	return cluster.WaitFor(ctx, "the shards to be through with vdiff "+uuid, 30*time.Millisecond, func(ctx context.Context) (bool, error) {
		for _, tablet := range b.targets {
			result, err := b.sessions.exec(ctx, tablet, "select state from _vt.vdiff where vdiff_uuid = '"+uuid+"'")
			if err != nil {
				return false, err
			}
			if len(result.Rows) == 0 {
				return false, nil
			}
			switch vdiff.VDiffState(result.Rows[0][0].ToString()) {
			case vdiff.CompletedState, vdiff.ErrorState, vdiff.StoppedState:
			default:
				return false, nil
			}
		}
		return true, nil
	})
}

// reason is why a table was not compared.
func (b *batch) reason(s *workflow.Summary, table *randomTable) string {
	var reasons []string
	for _, text := range s.Errors {
		for line := range strings.Lines(text) {
			if namesTable(line, table.name) || len(s.Errors) == 1 {
				reasons = append(reasons, strings.TrimSpace(line))
			}
		}
	}
	slices.Sort(reasons)
	return strings.Join(slices.Compact(reasons), "; ")
}
