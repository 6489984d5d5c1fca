// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package differ

import (
	"context"
	"fmt"
	"strings"

	"vitess.io/vitess/go/vt/vtgate/vindexes"

	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/plan"
	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/scan"

	vschemapb "vitess.io/vitess/go/vt/proto/vschema"
)

// vindexFinder finds the vindexes of in_keyrange conditions where the source's row streams do: by name in the VSchema
// of any keyspace, by the type of that name, or as the best one of a table of the source's keyspace.
type vindexFinder struct {
	r         *run
	ctx       context.Context
	keyspaces map[string]*vschemapb.Keyspace
}

func (r *run) newVindexFinder(ctx context.Context) *vindexFinder {
	return &vindexFinder{r: r, ctx: ctx, keyspaces: make(map[string]*vschemapb.Keyspace)}
}

func (f *vindexFinder) keyspace(name string) (*vschemapb.Keyspace, error) {
	if ks := f.keyspaces[name]; ks != nil {
		return ks, nil
	}
	info, err := f.r.sourceTopo.GetVSchema(f.ctx, name)
	if err != nil {
		return nil, fmt.Errorf("vschema of keyspace %s: %w", name, err)
	}
	f.keyspaces[name] = info.Keyspace
	return info.Keyspace, nil
}

// filter returns the condition in the form that scans take. Its error says why the rows have to be compared.
func (f *vindexFinder) filter(t *plan.Table, in *plan.InKeyRange) (*scan.VindexFilter, error) {
	columns, definition, err := in.Columns, (*vschemapb.Vindex)(nil), error(nil)
	if in.Vindex == "" {
		columns, definition, err = f.best(t)
	} else {
		definition, err = f.named(in.Vindex)
	}
	if err != nil {
		return nil, err
	}
	vindex, err := vindexes.CreateVindex(definition.Type, definition.Type, definition.Params)
	if err != nil {
		return nil, err
	}
	if vindex.NeedsVCursor() || !vindex.IsUnique() {
		return nil, fmt.Errorf("vindex type %s is not a function of the row alone", definition.Type)
	}
	return &scan.VindexFilter{Type: definition.Type, Params: definition.Params, Columns: columns, KeyRange: in.KeyRange}, nil
}

// named finds a vindex by a name that may have the keyspace before a dot, or takes the name for a type.
func (f *vindexFinder) named(name string) (*vschemapb.Vindex, error) {
	if ks, vindex, qualified := strings.Cut(name, "."); qualified {
		keyspace, err := f.keyspace(ks)
		if err != nil {
			return nil, err
		}
		if definition := keyspace.Vindexes[vindex]; definition != nil {
			return definition, nil
		}
		return nil, fmt.Errorf("keyspace %s has no vindex %s", ks, vindex)
	}
	// A bare name is looked up in all keyspaces, and must be the only one of that name.
	names, err := f.r.sourceTopo.GetKeyspaces(f.ctx)
	if err != nil {
		return nil, err
	}
	var found *vschemapb.Vindex
	for _, ks := range names {
		keyspace, err := f.keyspace(ks)
		if err != nil {
			continue // a keyspace without a VSchema
		}
		definition := keyspace.Vindexes[name]
		if definition == nil {
			continue
		}
		if found != nil {
			return nil, fmt.Errorf("several keyspaces have a vindex %s", name)
		}
		found = definition
	}
	if found == nil {
		found = &vschemapb.Vindex{Type: name}
	}
	return found, nil
}

// best finds the vindex that the rows of a table of the source are distributed by.
func (f *vindexFinder) best(t *plan.Table) ([]int, *vschemapb.Vindex, error) {
	srv, err := f.r.sourceTopo.GetVSchema(f.ctx, f.r.sourceKeyspace)
	if err != nil {
		return nil, nil, err
	}
	built := vindexes.BuildVSchema(&vschemapb.SrvVSchema{Keyspaces: map[string]*vschemapb.Keyspace{f.r.sourceKeyspace: srv.Keyspace}}, f.r.Env.Parser())
	ks := built.Keyspaces[f.r.sourceKeyspace]
	if ks == nil || ks.Tables[t.SourceName] == nil {
		return nil, nil, fmt.Errorf("the VSchema of keyspace %s has no table %s", f.r.sourceKeyspace, t.SourceName)
	}
	best, err := vindexes.FindBestColVindex(ks.Tables[t.SourceName])
	if err != nil {
		return nil, nil, err
	}
	definition := srv.Keyspace.Vindexes[best.Name]
	if definition == nil {
		return nil, nil, fmt.Errorf("the VSchema of keyspace %s has no vindex %s", f.r.sourceKeyspace, best.Name)
	}
	var columns []int
	for _, name := range best.Columns {
		i := t.SourceColumn(name.String())
		if i < 0 {
			return nil, nil, fmt.Errorf("rows are distributed by column %s, which is not compared", name.String())
		}
		columns = append(columns, i)
	}
	return columns, definition, nil
}
