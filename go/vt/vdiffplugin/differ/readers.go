// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package differ

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"vitess.io/vitess/go/vt/log"
	"vitess.io/vitess/go/vt/topo/topoproto"
	"vitess.io/vitess/go/vt/vterrors"

	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/fence"
	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/scan"

	topodatapb "vitess.io/vitess/go/vt/proto/topodata"
)

// Reader reads beside the MySQL of one tablet.
type Reader interface {
	scan.Digester
	scan.RowReader
}

// readers are the tablets that digests are read from.
type readers struct {
	picked  *tablets
	target  Reader
	sources []Reader // in the order of run.shards
	streams []int32  // likewise
	// waitFor is what the target tablet, when it is a replica, must have executed before it is read.
	waitFor string
	// streamed says that a source has no scan service: all sources are read by VStreamRows, and sources has no use.
	streamed bool
}

// openReaders chooses tablets. Its error is scan.ErrUnsupported when that of the target has no scan service.
func (r *run) openReaders(ctx context.Context) (*readers, error) {
	streams, err := r.Store.Streams(ctx, r.v.Workflow)
	if err != nil {
		return nil, err
	}
	if err := fence.Check(r.v.Workflow, streams); err != nil {
		return nil, err
	}
	picked, err := r.pickTablets(ctx)
	if err != nil {
		return nil, err
	}
	rs := &readers{picked: picked, sources: make([]Reader, len(r.shards))}
	var streamed atomic.Bool
	g, gctx := errgroup.WithContext(ctx)
	for i, s := range r.shards {
		rs.streams = append(rs.streams, s.streamID)
		g.Go(contained(func() (err error) {
			rs.sources[i], err = r.openReader(gctx, picked.sources[s.streamID], r.sourceTopo != r.TopoServer)
			if errors.Is(err, scan.ErrUnsupported) {
				log.Info(fmt.Sprintf("vdiff %s: source tablet %s is read by VStreamRows: %v", r.v.UUID, topoproto.TabletAliasString(picked.sources[s.streamID].Alias), err))
				streamed.Store(true)
				return nil
			}
			return err
		}))
	}
	g.Go(contained(func() (err error) {
		rs.target, err = r.openReader(gctx, picked.target, false)
		return err
	}))
	if err := g.Wait(); err != nil {
		return nil, err
	}
	if rs.streamed = streamed.Load(); rs.streamed {
		return rs, r.waitForTarget(ctx, picked.target)
	}
	if local := r.Tablet(); !topoproto.TabletAliasEqual(local.Alias, picked.target.Alias) {
		if rs.waitFor, err = r.tmc.PrimaryPosition(ctx, local); err != nil {
			return nil, vterrors.Wrap(err, "reading the position of this tablet")
		}
	}
	return rs, nil
}

func (r *run) openReader(ctx context.Context, tablet *topodatapb.Tablet, otherCluster bool) (Reader, error) {
	reader, err := r.Reader(ctx, r.v.UUID, tablet, otherCluster)
	return reader, ofTablet(err, "", tablet)
}

// ofTablet says of which tablet an error is. vterrors keeps its code, but hides what it is from errors.Is.
func ofTablet(err error, side string, tablet *topodatapb.Tablet) error {
	if err == nil || errors.Is(err, scan.ErrUnsupported) {
		return err
	}
	return vterrors.Wrapf(err, "%stablet %s", side, topoproto.TabletAliasString(tablet.Alias))
}
