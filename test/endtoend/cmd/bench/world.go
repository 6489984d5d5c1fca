// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/vttablet-ext/vttablet-ext/test/endtoend/cluster"
	"github.com/vttablet-ext/vttablet-ext/test/endtoend/load"
)

// bench is the cluster and what it holds.
type bench struct {
	cfg    config
	c      *cluster.Cluster
	loaded map[string]bool // keyspace.table
}

// The tables of two. The hash vindex is what most clusters shard by. The bits of an id in reverse put odd ids into shard 80-
// and even ones into -80, so that rows can be loaded into a sharded keyspace without a vtgate.
const vschemaOfTwo = `{"sharded": true,
	"vindexes": {"hash": {"type": "hash"}, "odd": {"type": "reverse_bits"}},
	"tables": {
		"big": {"column_vindexes": [{"column": "id", "name": "hash"}]},
		"merged": {"column_vindexes": [{"column": "id", "name": "odd"}]}}}`

// newBench starts a cluster with the keyspaces that the scenarios need.
func newBench(ctx context.Context, cfg config) (*bench, error) {
	c, err := cluster.New(ctx, cluster.Options{
		VTTabletFlags: strings.Fields(os.Getenv("VTTABLET_FLAGS")),
		// The data fits into memory, as it does in a warm cache of a server of its size.
		MyCnf: []string{"innodb_buffer_pool_size = 1G", "innodb_redo_log_capacity = 512M"},
		Logf:  logf,
	})
	if err != nil {
		return nil, err
	}
	b := &bench{cfg: cfg, c: c, loaded: map[string]bool{}}
	if err := b.start(ctx); err != nil {
		return nil, b.close(ctx, err)
	}
	return b, nil
}

func (b *bench) start(ctx context.Context) error {
	needed := map[string]bool{}
	for _, s := range b.cfg.scenarios {
		needed[s.from], needed[s.to] = true, true
	}
	var keyspaces []cluster.Keyspace
	for _, ks := range []cluster.Keyspace{
		{Name: src, Shards: []cluster.Shard{{Name: "0"}}, VSchema: `{"tables": {}}`},
		{Name: one, Shards: []cluster.Shard{{Name: "0"}}, VSchema: `{"tables": {}}`},
		{Name: two, Shards: []cluster.Shard{{Name: "-80"}, {Name: "80-"}}, VSchema: vschemaOfTwo},
	} {
		if needed[ks.Name] {
			keyspaces = append(keyspaces, ks)
		}
	}
	return b.c.AddKeyspaces(ctx, keyspaces...)
}

// close ends the cluster; err is what the benchmark ended with.
func (b *bench) close(ctx context.Context, err error) error {
	if err != nil && ctx.Err() == nil { // an interrupt is no reason to keep logs
		b.c.Fail()
	}
	return errors.Join(err, b.c.Close())
}

// primaries are the tablets of a keyspace: every shard has only its primary.
func (b *bench) primaries(keyspace string) []*cluster.Tablet {
	return b.c.Workflow(keyspace, "").Primaries()
}

// load fills the source tables of a scenario, unless an earlier one did.
func (b *bench) load(ctx context.Context, s scenario) error {
	started := time.Now()
	shards := b.primaries(s.from)
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(2)
	for _, table := range s.tables {
		key := s.from + "." + table.Name
		if b.loaded[key] {
			continue
		}
		b.loaded[key] = true
		for _, shard := range shards {
			group.Go(func() error { return load.Fill(groupCtx, shard, table, rowsOf(shard.Shard, s.rows), nil) })
		}
	}
	if err := group.Wait(); err != nil {
		return err
	}
	if _, err := b.c.Vtctl(ctx, "ReloadSchemaKeyspace", s.from); err != nil {
		return err
	}
	logf("%s: %d rows loaded after %v", s.name, s.totalRows(), time.Since(started).Round(time.Second))
	return nil
}

// rowsOf are the rows of a table with so many rows that a shard has (see vschemaOfTwo).
func rowsOf(shard string, rows int64) load.Sequence {
	switch shard {
	case "-80":
		return load.Sequence{First: 2, Last: rows, Step: 2}
	case "80-":
		return load.Sequence{First: 1, Last: rows, Step: 2}
	default:
		return load.Sequence{First: 1, Last: rows}
	}
}

// copy has a workflow copy the tables of a scenario.
func (b *bench) copy(ctx context.Context, s scenario) (*cluster.Workflow, error) {
	started := time.Now()
	w := b.c.Workflow(s.to, s.name)
	if err := w.MoveTables(ctx, "--source-keyspace", s.from, "--tables", s.tableNames()); err != nil {
		return nil, err
	}
	if err := load.WaitCopied(ctx, w, nil); err != nil {
		return nil, err
	}
	for _, t := range b.primaries(s.to) {
		for _, table := range s.tables {
			if err := t.Exec(ctx, "analyze local table "+table.Name); err != nil {
				return nil, err
			}
		}
	}
	logf("%s: copied from %s to %s after %v", s.name, s.from, s.to, time.Since(started).Round(time.Second))
	return w, nil
}

// restart starts the target tablets afresh, with the stock engine or with ours, and waits until the workflow's streams run.
func (b *bench) restart(ctx context.Context, w *cluster.Workflow, stock bool) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	group, groupCtx := errgroup.WithContext(ctx)
	for _, t := range b.primaries(w.Keyspace) {
		group.Go(func() error {
			if err := restartTablet(groupCtx, t, stock); err != nil {
				return err
			}
			return waitStreams(groupCtx, w, t)
		})
	}
	return group.Wait()
}

// restartSources starts the source tablets afresh, unless they run the wanted program already.
func (b *bench) restartSources(ctx context.Context, keyspace string, stock bool) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	for _, t := range b.primaries(keyspace) {
		if t.Stock != stock {
			if err := restartTablet(ctx, t, stock); err != nil {
				return err
			}
		}
	}
	return nil
}

func restartTablet(ctx context.Context, t *cluster.Tablet, stock bool) error {
	if err := t.Term(ctx); err != nil {
		return err
	}
	t.Stock = stock
	if err := t.Start(ctx); err != nil {
		return err
	}
	if err := t.WaitType(ctx, "PRIMARY"); err != nil {
		return err
	}
	if err := t.WaitServing(ctx); err != nil {
		return err
	}
	return checkEngine(ctx, t, stock)
}

// waitStreams waits until the workflow's streams on a tablet that was started run.
func waitStreams(ctx context.Context, w *cluster.Workflow, t *cluster.Tablet) error {
	// The table said Running all the time; a stream that does run writes its time every second.
	now, err := t.Query(ctx, "select unix_timestamp()")
	if err != nil {
		return err
	}
	beats := fmt.Sprintf("select count(*) from _vt.vreplication where workflow = '%s' and db_name = '%s' and not (state = 'Running' and time_updated > %s)",
		w.Name, t.DBName(), now.Rows[0][0].ToString())
	return cluster.WaitFor(ctx, "the streams of "+t.Alias, 50*time.Millisecond, func(ctx context.Context) (bool, error) {
		silent, err := t.Query(ctx, beats)
		return err == nil && silent.Rows[0][0].ToString() == "0", err
	})
}

// checkEngine makes sure that the tablet runs the engine that is to be measured: only ours has variables of this name.
func checkEngine(ctx context.Context, t *cluster.Tablet, stock bool) error {
	vars, err := t.Metrics(ctx)
	if err != nil {
		return err
	}
	plugin := false
	for name := range vars {
		plugin = plugin || strings.HasPrefix(name, "VDiffPlugin")
	}
	if plugin == stock {
		return fmt.Errorf("%s: stock engine wanted: %v, but there are variables of the plug-in: %v", t.Alias, stock, plugin)
	}
	return nil
}
