// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package differ

import (
	"context"

	"vitess.io/vitess/go/mysql/collations"
	"vitess.io/vitess/go/sqltypes"
	"vitess.io/vitess/go/vt/vterrors"

	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/plan"
	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/rowdiff"
	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/scan"

	querypb "vitess.io/vitess/go/vt/proto/query"
)

// chosen is those rows of a source for which all conditions are true, without the columns that only the conditions are about.
type chosen struct {
	rows       rowdiff.Source
	table      string
	columns    int // of a row that is compared
	conditions []plan.Condition
	fields     []*querypb.Field // of the column of each condition
}

// choose puts conditions to the rows of a side, whose columns are fields; source are those of the source.
func choose(rows rowdiff.Source, table *plan.Table, conditions []plan.Condition, fields, source []*querypb.Field) rowdiff.Source {
	if len(conditions) == 0 {
		return rows
	}
	c := &chosen{rows: rows, table: table.Name, columns: len(table.Columns), conditions: conditions}
	for i := range conditions {
		field := fields[conditions[i].Column]
		if conditions[i].LikeSource {
			field = source[conditions[i].Column]
		}
		c.fields = append(c.fields, field)
	}
	return c
}

// Next is part of rowdiff.Source.
func (c *chosen) Next(ctx context.Context) (*scan.Batch, error) {
	for {
		b, err := c.rows.Next(ctx)
		if err != nil {
			return nil, err
		}
		if err := b.Retain(c.pass); err != nil {
			b.Release()
			return nil, vterrors.Wrapf(err, "table %s", c.table)
		}
		if b.Len() > 0 {
			b.Truncate(c.columns)
			return b, nil
		}
		b.Release()
	}
}

func (c *chosen) pass(row scan.Row) (bool, error) {
	for i := range c.conditions {
		condition, value := &c.conditions[i], sqltypes.NULL
		if raw, ok := row.Value(condition.Column); ok {
			value = sqltypes.MakeTrusted(c.fields[i].Type, raw)
		}
		if pass, err := condition.Pass(value, collations.ID(c.fields[i].Charset)); !pass || err != nil {
			return false, err
		}
	}
	return true, nil
}
