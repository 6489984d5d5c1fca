// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package differ

import (
	"context"
	"fmt"
	"slices"
	"time"

	"vitess.io/vitess/go/mysql/replication"
	"vitess.io/vitess/go/vt/log"
	"vitess.io/vitess/go/vt/vterrors"

	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/sidecar"

	topodatapb "vitess.io/vitess/go/vt/proto/topodata"
)

// settledTables is tables, which looks at the two sides one after the other: while a change of the schema is on its way from one
// to the other, or is made between the two looks, they do not fit together, and do a moment later. unsure are the tables
// that cannot be compared by what was seen, and may be soon.
//
// A look is taken for what it shows only when a second one shows the same, and the streams were by then where the sources
// stood at the first: a change that VReplication makes on the target has been made then.
func (r *run) settledTables(ctx context.Context) (list []planned, missing []string, unsure map[string]bool, err error) {
	list, missing, err = r.tables(ctx)
	if err != nil {
		return nil, nil, nil, err
	}
	before := unfit(list, missing)
	if len(before) == 0 {
		return list, missing, nil, nil
	}
	reached, err := r.reachSources(ctx)
	if ctx.Err() != nil {
		return nil, nil, nil, ctx.Err()
	}
	if err != nil {
		log.Warn(fmt.Sprintf("vdiff %s: whether a change of the schema is on its way is not known: %v", r.v.UUID, err))
	}
	if list, missing, err = r.tables(ctx); err != nil {
		return nil, nil, nil, err
	}
	unsure = make(map[string]bool)
	for table, why := range unfit(list, missing) {
		unsure[table] = !reached || before[table] != why
	}
	return list, missing, unsure, nil
}

// unfit says of the tables that cannot be compared why that is, where it is no error that passes.
func unfit(list []planned, missing []string) map[string]string {
	tables := make(map[string]string)
	for _, p := range list {
		if class, ok := sidecar.ClassOf(p.err); ok && class == sidecar.Permanent {
			tables[p.name] = p.err.Error()
		}
	}
	for _, name := range missing {
		tables[name] = "missing"
	}
	return tables
}

// reachPoll is the pause between two looks at the streams.
const reachPoll = 100 * time.Millisecond

// reachSources waits until the streams of the workflow have come to where the primaries of their sources stand now. It says
// that they have not when that takes longer than a fence would wait for them, or when one of them does not run.
func (r *run) reachSources(ctx context.Context) (bool, error) {
	r.obs.Waiting("the streams, to see whether a change of the schema is on its way")
	defer r.obs.Waiting("")
	shards := r.shardNames()
	goals := make([]replication.Position, len(shards))
	err := r.eachSource(ctx, shards, func(ctx context.Context, i int, primary *topodatapb.Tablet) error {
		encoded, err := r.tmc.PrimaryPosition(ctx, primary)
		if err != nil {
			return vterrors.Wrapf(err, "reading the position of shard %s", shards[i])
		}
		goals[i], err = replication.DecodePosition(encoded)
		return err
	})
	if err != nil {
		return false, err
	}
	for deadline := time.Now().Add(r.replicationWait()); ; {
		streams, err := r.Store.Streams(ctx, r.v.Workflow)
		if err != nil {
			return false, err
		}
		reached, ended := true, false
		for _, s := range r.shards {
			n := slices.IndexFunc(streams, func(stream *sidecar.Stream) bool { return stream.ID == s.streamID })
			if n < 0 {
				return false, nil
			}
			at, err := decodePosition(streams[n].Pos)
			if err != nil {
				return false, err
			}
			position, err := replication.DecodePosition(at)
			if err != nil {
				return false, err
			}
			if !position.AtLeast(goals[slices.Index(shards, s.shard)]) {
				reached, ended = false, ended || streams[n].State == stateError || streams[n].State == stateStopped
			}
		}
		if reached || ended || !time.Now().Before(deadline) {
			return reached, nil
		}
		if err := sleep(ctx, reachPoll); err != nil {
			return false, err
		}
	}
}
