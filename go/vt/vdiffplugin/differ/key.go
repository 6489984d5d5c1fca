// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package differ

import (
	"context"

	"vitess.io/vitess/go/sqltypes"
	"vitess.io/vitess/go/vt/vterrors"

	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/plan"
	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/rowdiff"
	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/scan"

	querypb "vitess.io/vitess/go/vt/proto/query"
	vtrpcpb "vitess.io/vitess/go/vt/proto/vtrpc"
)

// rowOfKey returns a row that has the values of a checkpoint, the target's, in the key columns of t and
// NULL in all others.
func rowOfKey(t *plan.Table, target *querypb.QueryResult) (scan.Row, error) {
	result := sqltypes.Proto3ToResult(target)
	if len(result.Rows) != 1 || len(result.Rows[0]) != len(t.TargetKey) {
		return scan.Row{}, vterrors.Errorf(vtrpcpb.Code_INTERNAL, "the checkpoint of table %s does not have its %d key columns", t.Name, len(t.TargetKey))
	}
	values := make([][]byte, len(t.Columns))
	for i, k := range t.TargetKey {
		if v := result.Rows[0][i]; !v.IsNull() {
			values[k] = v.Raw()
		}
	}
	row := scan.Row{Lengths: make([]int32, len(values))}
	for i, v := range values {
		row.Lengths[i] = -1
		if v != nil {
			row.Lengths[i] = int32(len(v))
			row.Values = append(row.Values, v...)
		}
	}
	return row, nil
}

var _ rowdiff.Weigher = (*run)(nil)

// Weights is part of rowdiff.Weigher: the target's primary, this tablet, is asked.
func (r *run) Weights(ctx context.Context, charset string, as plan.StoredText, texts []string) ([]string, error) {
	return plan.Weights(ctx, r.tmc, r.Tablet(), charset, as, texts)
}

// sqlRow returns the row as values of the types that a stream announced.
func sqlRow(row scan.Row, fields []*querypb.Field) []sqltypes.Value {
	types := make([]querypb.Type, len(fields))
	for i, f := range fields {
		types[i] = f.Type
	}
	return row.SQLValues(types)
}

func targetTypes(t *plan.Table) []querypb.Type {
	types := make([]querypb.Type, len(t.Columns))
	for i, c := range t.Columns {
		types[i] = c.Target.Type
	}
	return types
}
