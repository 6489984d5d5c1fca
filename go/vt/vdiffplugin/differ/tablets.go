// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package differ

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"vitess.io/vitess/go/vt/discovery"
	"vitess.io/vitess/go/vt/topo"
	"vitess.io/vitess/go/vt/topo/topoproto"
	"vitess.io/vitess/go/vt/vterrors"

	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/sidecar"

	binlogdatapb "vitess.io/vitess/go/vt/proto/binlogdata"
	topodatapb "vitess.io/vitess/go/vt/proto/topodata"
	vtrpcpb "vitess.io/vitess/go/vt/proto/vtrpc"
)

// tablets are the ones that a fence reads from.
type tablets struct {
	sources map[int32]*topodatapb.Tablet // by stream id
	target  *topodatapb.Tablet
}

// pickWait bounds the search for tablets to read from.
const pickWait = 30 * time.Second

// pickTablets chooses a tablet for every source shard and one for the target, as the options of the
// vdiff ask (cells, tablet types in order of preference).
func (r *run) pickTablets(ctx context.Context) (*tablets, error) {
	ctx, cancel := context.WithTimeout(ctx, pickWait)
	defer cancel()
	picker := r.v.Options.PickerOptions
	local := r.Tablet()
	picked := &tablets{sources: make(map[int32]*topodatapb.Tablet)}
	results := make([]*topodatapb.Tablet, len(r.shards))
	g, gctx := errgroup.WithContext(ctx)
	for i, s := range r.shards {
		g.Go(contained(func() (err error) {
			results[i], err = r.pick(gctx, r.sourceTopo, picker.SourceCell, r.sourceKeyspace, s.shard, discovery.TabletPickerOptions{})
			return err
		}))
	}
	g.Go(contained(func() (err error) {
		// The target shards of a Reshard do not serve before traffic is switched to them, and may not
		// serve any more after it is switched back.
		opts := discovery.TabletPickerOptions{IncludeNonServingTablets: r.workflowType == binlogdatapb.VReplicationWorkflowType_Reshard}
		picked.target, err = r.pick(gctx, r.TopoServer, picker.TargetCell, local.Keyspace, local.Shard, opts)
		return err
	}))
	if err := g.Wait(); err != nil {
		return nil, err
	}
	for i, s := range r.shards {
		picked.sources[s.streamID] = results[i]
	}
	return picked, nil
}

func (r *run) pick(ctx context.Context, ts *topo.Server, cells, keyspace, shard string, opts discovery.TabletPickerOptions) (*topodatapb.Tablet, error) {
	types := r.v.Options.PickerOptions.TabletTypes
	list, err := cellsOf(ctx, ts, cells, ts != r.TopoServer)
	if err != nil {
		return nil, err
	}
	tp, err := discovery.NewTabletPicker(ctx, ts, list, r.Tablet().Alias.Cell, keyspace, shard, types, opts)
	switch vterrors.Code(err) {
	case vtrpcpb.Code_OK:
	case vtrpcpb.Code_INVALID_ARGUMENT, vtrpcpb.Code_FAILED_PRECONDITION:
		return nil, sidecar.AsPermanent(err)
	default: // it reads the topo
		return nil, sidecar.AsTransient(err)
	}
	tablet, err := tp.PickForStreaming(ctx)
	if err != nil {
		return nil, sidecar.AsTransient(vterrors.Errorf(vtrpcpb.Code_UNAVAILABLE,
			"no healthy tablet of types %q in cells %q for %s/%s: %v", types, strings.Join(list, ","), keyspace, shard, err))
	}
	return tablet, nil
}

// cellsOf returns the wanted cells, or all cells of the topo when none is wanted. Of a mounted cluster
// it also returns all when it has none of the wanted ones: the default that is stored with a vdiff are
// the cells of the target's topo. A cell that is nowhere is an error.
func cellsOf(ctx context.Context, ts *topo.Server, wanted string, mounted bool) ([]string, error) {
	all, err := ts.GetCellInfoNames(ctx)
	if err != nil {
		return nil, vterrors.Wrap(err, "reading the cells")
	}
	if strings.TrimSpace(wanted) == "" {
		return all, nil
	}
	aliases, err := ts.GetCellsAliases(ctx, false)
	if err != nil {
		return nil, vterrors.Wrap(err, "reading the cell aliases")
	}
	var list, unknown []string
	for cell := range strings.SplitSeq(wanted, ",") {
		if cell = strings.TrimSpace(cell); slices.Contains(all, cell) || aliases[cell] != nil {
			list = append(list, cell)
		} else {
			unknown = append(unknown, cell)
		}
	}
	switch {
	case mounted && len(list) == 0:
		return all, nil
	case len(unknown) > 0 && !mounted:
		return nil, sidecar.AsPermanent(vterrors.Errorf(vtrpcpb.Code_INVALID_ARGUMENT,
			"no such cells in the topo: %s; it has %s", strings.Join(unknown, ", "), strings.Join(all, ", ")))
	}
	return list, nil
}

// sourcePrimary returns the primary of a source shard.
func (r *run) sourcePrimary(ctx context.Context, shard string) (*topodatapb.Tablet, error) {
	ctx, cancel := context.WithTimeout(ctx, topo.RemoteOperationTimeout)
	defer cancel()
	si, err := r.sourceTopo.GetShard(ctx, r.sourceKeyspace, shard)
	if err != nil {
		return nil, vterrors.Wrapf(err, "reading source shard %s/%s", r.sourceKeyspace, shard)
	}
	if si.PrimaryAlias == nil {
		return nil, sidecar.AsTransient(vterrors.Errorf(vtrpcpb.Code_UNAVAILABLE, "source shard %s/%s has no primary", r.sourceKeyspace, shard))
	}
	ti, err := r.sourceTopo.GetTablet(ctx, si.PrimaryAlias)
	if err != nil {
		return nil, vterrors.Wrapf(err, "reading tablet %s", topoproto.TabletAliasString(si.PrimaryAlias))
	}
	return ti.Tablet, nil
}

// waitForSources waits until every source tablet has what the streams have applied already: then its
// read views are not behind them.
func (r *run) waitForSources(ctx context.Context, streams []*sidecar.Stream, picked *tablets) error {
	wait := r.replicationWait()
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	g, gctx := errgroup.WithContext(ctx)
	for _, s := range streams {
		g.Go(contained(func() error {
			tablet := picked.sources[s.ID]
			if tablet == nil { // the workflow is another one of the same name
				return sidecar.AsTransient(vterrors.Errorf(vtrpcpb.Code_ABORTED, "the streams of workflow %s changed during a vdiff", s.Workflow))
			}
			pos, err := decodePosition(s.Pos)
			if err == nil {
				err = r.tmc.WaitForPosition(gctx, tablet, pos)
			}
			if err != nil {
				return sidecar.AsTransient(vterrors.Wrapf(err, "tablet %s did not reach the position of the workflow within %v",
					topoproto.TabletAliasString(tablet.Alias), wait))
			}
			return nil
		}))
	}
	return g.Wait()
}

// waitForTarget waits, when the target is read on another tablet than this primary, until it has all
// that this tablet has: the rows and the positions of the streams.
func (r *run) waitForTarget(ctx context.Context, target *topodatapb.Tablet) error {
	local := r.Tablet()
	if topoproto.TabletAliasEqual(local.Alias, target.Alias) {
		return nil
	}
	wait := r.replicationWait()
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	pos, err := r.tmc.PrimaryPosition(ctx, local)
	if err != nil {
		return vterrors.Wrap(err, "reading the position of this tablet")
	}
	if err := r.tmc.WaitForPosition(ctx, target, pos); err != nil {
		return sidecar.AsTransient(vterrors.Wrapf(err, "target tablet %s did not catch up with the primary within %v", topoproto.TabletAliasString(target.Alias), wait))
	}
	return nil
}

// defaultReplicationWait stands for --filtered-replication-wait-time where a request has none.
const defaultReplicationWait = 30 * time.Second

func (r *run) replicationWait() time.Duration {
	if s := r.v.Options.CoreOptions.TimeoutSeconds; s > 0 {
		return time.Duration(s) * time.Second
	}
	return defaultReplicationWait
}

func (r *run) throttled(tablet *topodatapb.Tablet) func(string) {
	return func(reason string) {
		r.obs.Waiting(fmt.Sprintf("the throttler of tablet %s (%s)", topoproto.TabletAliasString(tablet.Alias), reason))
	}
}
