// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package differ

import (
	"context"
	"slices"

	"golang.org/x/sync/errgroup"

	"vitess.io/vitess/go/vt/vterrors"

	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/plan"
	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/sidecar"

	topodatapb "vitess.io/vitess/go/vt/proto/topodata"
	vtrpcpb "vitess.io/vitess/go/vt/proto/vtrpc"
)

// sourceSchemas are the schemas of all source shards. Plans are made of the first one, and hold for all shards only where
// these are alike: a column that only another shard has would not be compared there.
type sourceSchemas struct {
	names  []string
	shards []*plan.Schema
}

// sourceSchemas loads the schema of the selected tables from the primary of every source shard.
func (r *run) sourceSchemas(ctx context.Context, selected []plan.Selection) (*sourceSchemas, error) {
	s := &sourceSchemas{names: r.shardNames()}
	s.shards = make([]*plan.Schema, len(s.names))
	for i := range s.shards {
		s.shards[i] = &plan.Schema{}
	}
	var tables []string
	for _, t := range selected {
		if t.SourceName != "" && !slices.Contains(tables, t.SourceName) {
			tables = append(tables, t.SourceName)
		}
	}
	if len(tables) == 0 {
		return s, nil
	}
	err := r.eachSource(ctx, s.names, func(ctx context.Context, i int, primary *topodatapb.Tablet) (err error) {
		s.shards[i], err = plan.LoadSchema(ctx, r.tmc, r.Env.CollationEnv(), primary, tables)
		return err
	})
	return s, err
}

// sourceTables are the names of the tables of all source shards. One may be there several times.
func (r *run) sourceTables(ctx context.Context) ([]string, error) {
	shards := r.shardNames()
	lists := make([][]string, len(shards))
	err := r.eachSource(ctx, shards, func(ctx context.Context, i int, primary *topodatapb.Tablet) (err error) {
		lists[i], err = plan.LoadTableNames(ctx, r.tmc, primary)
		return err
	})
	return slices.Concat(lists...), err
}

// shardNames are the source shards, each once.
func (r *run) shardNames() []string {
	var names []string
	for _, shard := range r.shards {
		if !slices.Contains(names, shard.shard) {
			names = append(names, shard.shard)
		}
	}
	return names
}

// eachSource asks the primary of each source shard something, all at once.
func (r *run) eachSource(ctx context.Context, shards []string, ask func(ctx context.Context, i int, primary *topodatapb.Tablet) error) error {
	g, gctx := errgroup.WithContext(ctx)
	for i, shard := range shards {
		g.Go(contained(func() error {
			primary, err := r.sourcePrimary(gctx, shard)
			if err != nil {
				return err
			}
			return vterrors.Wrap(ask(gctx, i, primary), "source")
		}))
	}
	return g.Wait()
}

// has says whether any shard has a table.
func (s *sourceSchemas) has(table string) bool {
	return slices.ContainsFunc(s.shards, func(schema *plan.Schema) bool { return schema.Tables[table] != nil })
}

// partialJSON says whether any shard writes parts of a table's JSON values to its binary log.
func (s *sourceSchemas) partialJSON(table string) bool {
	return slices.ContainsFunc(s.shards, func(schema *plan.Schema) bool { t := schema.Tables[table]; return t != nil && t.PartialJSON })
}

// unlike is the error of a table that is not the same on all source shards, as while a change of it goes from shard to shard.
func (s *sourceSchemas) unlike(table string) error {
	for i := range s.shards {
		if why := plan.Unlike(s.shards[0].Tables[table], s.shards[i].Tables[table]); why != "" {
			return sidecar.AsTransient(vterrors.Errorf(vtrpcpb.Code_FAILED_PRECONDITION,
				"its source table %s is not the same on the source shards %s and %s: %s; bring the change to all of them, then it is compared at the next try",
				table, s.names[0], s.names[i], why))
		}
	}
	return nil
}
