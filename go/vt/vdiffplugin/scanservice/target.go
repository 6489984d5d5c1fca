// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package scanservice

import (
	"vitess.io/vitess/go/vt/topo/topoproto"
	"vitess.io/vitess/go/vt/vterrors"

	topodatapb "vitess.io/vitess/go/vt/proto/topodata"
	vtrpcpb "vitess.io/vitess/go/vt/proto/vtrpc"

	vdiffscanpb "github.com/vttablet-ext/vttablet-ext/proto/vdiffscan"
)

// checkTarget returns an error if a request means another tablet. Unlike the query service's, every
// one has code FAILED_PRECONDITION: whatever is wrong, it is that the caller's picture of the cluster is
// old, and a caller that looks again finds the right tablet.
func checkTarget(target *vdiffscanpb.Target, tablet *topodatapb.Tablet) error {
	refuse := func(format string, args ...any) error {
		return vterrors.Errorf(vtrpcpb.Code_FAILED_PRECONDITION, format, args...)
	}
	switch {
	case target == nil:
		return refuse("no target")
	case tablet == nil:
		return refuse("the tablet has no record yet")
	case target.Keyspace != tablet.Keyspace:
		return refuse("invalid keyspace %v does not match expected %v", target.Keyspace, tablet.Keyspace)
	case target.Shard != tablet.Shard:
		return refuse("invalid shard %v does not match expected %v", target.Shard, tablet.Shard)
	case target.TabletType != int32(tablet.Type):
		return refuse("%s: %v, want: %v", vterrors.WrongTablet, topodatapb.TabletType(target.TabletType), tablet.Type)
	}
	alias := &topodatapb.TabletAlias{Cell: target.Cell, Uid: target.Uid}
	if target.Cell != "" && !topoproto.TabletAliasEqual(alias, tablet.Alias) {
		return refuse("invalid tablet %s does not match expected %s",
			topoproto.TabletAliasString(alias), topoproto.TabletAliasString(tablet.Alias))
	}
	return nil
}

// targetOf returns the target that means a tablet.
func targetOf(tablet *topodatapb.Tablet) *vdiffscanpb.Target {
	return &vdiffscanpb.Target{
		Keyspace: tablet.Keyspace, Shard: tablet.Shard, TabletType: int32(tablet.Type),
		Cell: tablet.GetAlias().GetCell(), Uid: tablet.GetAlias().GetUid(),
	}
}
