// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package scan

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"vitess.io/vitess/go/sqltypes"

	querypb "vitess.io/vitess/go/vt/proto/query"
)

// TestBatchTruncate tests that the last columns of every row can be cut off, NULL and empty values among them, also after rows were
// dropped and when nothing is left.
func TestBatchTruncate(t *testing.T) {
	s, null := sqltypes.NewVarChar, sqltypes.NULL
	table := [][]sqltypes.Value{{s("a"), s("xyz"), null}, {null, s(""), s("w")}, {s("dropped"), null, s("v")}, {s("long one"), null, null}, {s(""), s("u"), s("tt")}}
	for columns := range 4 {
		for drop := range 2 {
			var rows []*querypb.Row
			for _, row := range table {
				rows = append(rows, sqltypes.RowToProto3(row))
			}
			b := NewBatch(3, rows)
			want := table
			if drop == 1 {
				require.NoError(t, b.Retain(func(row Row) (bool, error) { return string(row.Values) != "droppedv", nil }))
				want = append(append([][]sqltypes.Value(nil), table[:2]...), table[3:]...)
			}
			b.Truncate(columns)
			require.Equal(t, len(want), b.Len())
			bytes := 0
			for i, row := range want {
				for n, v := range row[:columns] {
					got, ok := b.Row(i).Value(n)
					assert.Equal(t, !v.IsNull(), ok)
					assert.Equal(t, v.ToString(), string(got))
					bytes += v.Len()
				}
				assert.Len(t, b.Row(i).Lengths, columns)
			}
			assert.Equal(t, bytes, b.Bytes())
			b.Release()
		}
	}
	b := NewBatch(2, []*querypb.Row{sqltypes.RowToProto3([]sqltypes.Value{s("a"), s("b")})})
	require.NoError(t, b.Retain(func(Row) (bool, error) { return false, nil }))
	b.Truncate(1)
	assert.Zero(t, b.Len())
	b.Release()
}
