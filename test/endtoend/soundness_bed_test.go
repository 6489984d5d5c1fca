// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package endtoend

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/vttablet-ext/vttablet-ext/test/endtoend/cluster"
)

// proving is the cluster of TestSoundness: ssrc is copied to sdst by two workflows, of which one executes the DDL of the
// source, and sdst to sone by a third.
type proving struct {
	c        *cluster.Cluster
	subjects []*subject
	flows    []*flow
	moved    int64 // the last identity that a fault moved a row to
}

// flow is a workflow and what of it is compared.
type flow struct {
	w         *cluster.Workflow
	subjects  []*subject
	executes  bool // on-ddl EXEC
	unsharded bool // the source
	idents    map[string][]int64
}

func newProving(t *testing.T) *proving {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	c, err := cluster.New(ctx, cluster.Options{ExtFlags: extFlags})
	require.NoError(t, err)
	p := &proving{c: c, subjects: newSubjects(), moved: 1_000_000_000 / faultEvery * faultEvery}
	if err := p.fill(ctx); err != nil {
		c.Fail()
		require.NoError(t, fmt.Errorf("%w (closing: %v)", err, c.Close()))
	}
	return p
}

func (p *proving) fill(ctx context.Context) error {
	var names, vindexes []string
	statements := []string{
		"create table numbers (n int primary key)",
		"insert into numbers with recursive r as (select 1 as n union all select n + 1 from r where n < 1000) select n from r",
		"insert into numbers select x.n * 1000 + y.n from numbers x, numbers y where x.n < 20",
	}
	for _, s := range p.subjects {
		statements = append(statements, s.create()...)
		names = append(names, s.name)
		vindexes = append(vindexes, fmt.Sprintf(`"%s": {"column_vindexes": [{"column": "%s", "name": "hash"}]}`, s.name, s.ident))
	}
	err := p.c.AddKeyspaces(ctx,
		cluster.Keyspace{Name: "ssrc", Shards: []cluster.Shard{{Name: "0", Replicas: 1}}, VSchema: `{"tables": {"` + strings.Join(names, `": {}, "`) + `": {}}}`},
		cluster.Keyspace{Name: "sdst", Shards: []cluster.Shard{{Name: "-80"}, {Name: "80-"}}, VSchema: `{"sharded": true, "vindexes": {"hash": {"type": "hash"}}, "tables": {` + strings.Join(vindexes, ", ") + `}}`},
		cluster.Keyspace{Name: "sone", Shards: []cluster.Shard{{Name: "0"}}, VSchema: `{}`})
	if err != nil {
		return err
	}
	if err := p.source().Exec(ctx, statements...); err != nil {
		return err
	}
	for _, f := range []*flow{
		{w: p.c.Workflow("sdst", "ignores"), unsharded: true},
		{w: p.c.Workflow("sdst", "executes"), unsharded: true, executes: true},
		{w: p.c.Workflow("sone", "merges")},
	} {
		var tables []string
		for _, s := range p.subjects {
			if !f.unsharded || f.executes == (s.name == "s_kinds") {
				f.subjects, tables = append(f.subjects, s), append(tables, s.name)
			}
		}
		args := []string{"--source-keyspace", "ssrc", "--tables", strings.Join(tables, ","), "--no-routing-rules"}
		if f.executes {
			args = append(args, "--on-ddl", "EXEC")
		}
		if !f.unsharded {
			args[1] = "sdst"
		}
		if err := f.w.MoveTables(ctx, args...); err != nil {
			return err
		}
		if err := f.provide(ctx); err != nil {
			return err
		}
		p.flows = append(p.flows, f)
	}
	return nil
}

// makeSourceStock restarts the tablets of the unsharded source as stock ones, which have no scan service.
func (p *proving) makeSourceStock(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	for _, tablet := range p.c.Shard("ssrc", "0") {
		require.NoError(t, tablet.Term(ctx))
		tablet.Stock = true
		require.NoError(t, tablet.Start(ctx))
		require.NoError(t, tablet.WaitServing(ctx))
	}
	for _, f := range p.flows {
		require.NoError(t, f.w.WaitRunning(ctx))
	}
}

// provide makes the databases that faults need, and notes which rows of each target are theirs.
func (f *flow) provide(ctx context.Context) error {
	f.idents = map[string][]int64{}
	for _, target := range f.w.Primaries() {
		for _, s := range f.subjects {
			statements := []string{"set session sql_log_bin = 0"}
			for _, db := range []string{"kept", "stale"} {
				statements = append(statements, "create database if not exists "+db, fmt.Sprintf("create table %s.%s like %[2]s", db, s.name))
			}
			if err := target.Exec(ctx, statements...); err != nil {
				return err
			}
			result, err := target.Query(ctx, fmt.Sprintf("select %s from %s where %[1]s %% %[3]d = 0 order by %[1]s", s.ident, s.name, faultEvery))
			if err != nil {
				return err
			}
			for _, row := range result.Rows {
				n, err := row[0].ToInt64()
				if err != nil {
					return err
				}
				f.idents[target.Alias+s.name] = append(f.idents[target.Alias+s.name], n)
			}
		}
	}
	return nil
}

func (p *proving) source() *cluster.Tablet { return p.c.Primary("ssrc", "0") }

// alter changes the schema of a table everywhere, in the order that lets replication go on: what an event names must be on
// the target before. A table gets so many columns and indexes, and after that new comments. One without a key gets no
// columns: to VReplication all columns of the target are its key, so that a stream that starts again and meets an event of before the
// change stays where it is for ever ("primary key column not found in ... the TableMap event"), and one that goes on changes rows that differ in the
// new column alone.
func (p *proving) alter(ctx context.Context, s *subject, index bool) error {
	count, change := &s.added, "add column x%d int default %[1]d"
	if index || s.keyless {
		count, change = &s.indexed, "add index at_%d (rev)"
	}
	number := count.Load() + 1
	if number > mostAdded {
		change = fmt.Sprintf("comment 'at %d", time.Now().UnixMilli()) + ", %d'"
	}
	sql := "alter table " + s.name + " " + fmt.Sprintf(change, number)
	targets := []*cluster.Tablet{p.c.Primary("sone", "0")} // before sdst, which is its source
	if s.name != "s_kinds" {                               // there the workflow executes it
		targets = append(targets, p.c.Primary("sdst", "-80"), p.c.Primary("sdst", "80-"))
	}
	for _, t := range targets {
		if err := t.Exec(ctx, sql); err != nil {
			return err
		}
	}
	if err := p.source().Exec(ctx, sql); err != nil {
		return err
	}
	count.Store(min(number, mostAdded))
	return nil
}
