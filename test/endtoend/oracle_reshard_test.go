// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package endtoend

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vttablet-ext/vttablet-ext/test/endtoend/cluster"
)

// A Reshard copies all tables of a keyspace from its shards that serve to others that do not. Batches of it have a keyspace
// to themselves, one at a time, and the shards that they copy from are made to serve. Reference tables are no part of a
// Reshard.

const reshardKeyspace = "ore"

// addReshard adds the keyspace with the shards of all layouts of a Reshard; the first one serves. many says whether there
// are batches of several shards on both sides.
func (o *oracle) addReshard(ctx context.Context, many bool) error {
	if err := o.c.AddKeyspace(ctx, cluster.Keyspace{Name: reshardKeyspace, Shards: []cluster.Shard{{Name: "0"}}}); err != nil {
		return err
	}
	o.serving = "0"
	shards := []cluster.Shard{{Name: "-40"}, {Name: "40-"}}
	if many {
		shards = append(shards, cluster.Shard{Name: "-80"}, cluster.Shard{Name: "80-"})
	}
	return o.c.AddShards(ctx, reshardKeyspace, shards...)
}

// reshards says whether the layout is between shards of one keyspace.
func (l *layout) reshards() bool { return l.fromShards != "" }

// primaries are the primaries of some shards of a keyspace, of all when none are named.
func (o *oracle) primaries(keyspace, shards string) []*cluster.Tablet {
	return slices.DeleteFunc(o.c.Workflow(keyspace, "").Primaries(), func(tablet *cluster.Tablet) bool {
		return shards != "" && !slices.Contains(strings.Split(shards, ","), tablet.Shard)
	})
}

// serve makes some shards of the keyspace serve, and no others.
func (o *oracle) serve(t *testing.T, ctx context.Context, shards string) {
	t.Helper()
	if o.serving == shards {
		return
	}
	o.vtctl.Lock()
	defer o.vtctl.Unlock()
	for _, tablet := range o.primaries(reshardKeyspace, "") {
		serves := slices.Contains(strings.Split(shards, ","), tablet.Shard)
		_, err := o.c.Vtctl(ctx, "SetShardIsPrimaryServing", reshardKeyspace+"/"+tablet.Shard, strconv.FormatBool(serves))
		require.NoError(t, err)
	}
	_, err := o.c.Vtctl(ctx, "RebuildKeyspaceGraph", reshardKeyspace)
	require.NoError(t, err)
	for _, tablet := range o.primaries(reshardKeyspace, shards) {
		require.NoError(t, tablet.WaitServing(ctx))
	}
	o.serving = shards
}

// leaveOut takes the tables out of the batch that are no part of its workflow. A vdiff must not have them.
func (b *batch) leaveOut() {
	if !b.layout.reshards() {
		return
	}
	b.tables = slices.DeleteFunc(b.tables, func(table *randomTable) bool {
		if table.reference {
			b.leftOut = append(b.leftOut, table)
		}
		return table.reference
	})
}

// reshard makes the workflow of a Reshard.
func (b *batch) reshard(ctx context.Context) error {
	_, err := b.o.c.Vtctl(ctx, "Reshard", "--workflow", b.w.Name, "--target-keyspace", b.layout.to, "create",
		"--source-shards", b.layout.fromShards, "--target-shards", b.layout.toShards, "--skip-schema-copy")
	return err
}
