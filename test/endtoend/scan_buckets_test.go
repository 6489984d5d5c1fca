// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package endtoend

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/scan"
)

// testBuckets: the rows of buckets are those that their digests are of, bucket by bucket, whatever decides on the bucket and with a
// filter too, and their text is the one that MySQL prints, for values of every type and for numbers that are hard to print.
func (b *scanBed) testBuckets(t *testing.T) {
	var names []string
	for _, c := range every {
		if name := strings.Fields(c)[0]; name != "f" { // FLOAT is selected as text
			names = append(names, name)
		}
	}
	names = append(names, "cast(f as char)")
	b.exec(t, "create table doubles (d double, n int)", "insert into doubles select pow(10, n - 330) / 3, n from numbers where n < 630", "insert into doubles select pow(10, n - 30), n from numbers where n < 60",
		"insert into doubles select -n / 8, n from numbers", "insert into doubles values (0, 0), (-0e0, 0), (null, null), (1.7976931348623157e308, 1), (2.2250738585072014e-308, 1), (5e-324, 1)",
		"create table bwide (id int, a longblob)", "insert into bwide values (1, repeat('x', 20 << 20)), (2, null), (2, null), (3, '')")
	filtered := &scan.Table{Name: "doubles", Columns: []string{"d", "n"}, Where: "n is not null", Filter: &scan.VindexFilter{Type: "hash", Columns: []int{1}, KeyRange: "-80"}}
	for _, c := range []struct {
		table *scan.Table
		key   []int
	}{
		{&scan.Table{Name: "types1", Columns: names}, nil},
		{&scan.Table{Name: "types1", Columns: names}, []int{1, 19, 27}},
		{&scan.Table{Name: "doubles", Columns: []string{"d", "n"}}, nil},
		{&scan.Table{Name: "doubles", Columns: []string{"n", "d"}}, []int{1}},
		{filtered, []int{1}},
		{&scan.Table{Name: "bwide", Columns: []string{"id", "a"}}, nil},
	} {
		answer, err := b.local.Digest(testContext(t), &scan.Call{Tables: []scan.DigestRequest{{Table: c.table, Seed: 7, Buckets: 8, BucketKey: c.key}}}, nil)
		require.NoError(t, err)
		var got []string
		for i, sum := range answer.Digests[0].Sums {
			rows := b.rows(t, scan.RowsRead{Table: c.table, Buckets: &scan.BucketFilter{Seed: 7, Buckets: 8, BucketKey: c.key, Wanted: []int{i}}})
			assert.Len(t, rows, int(sum.Rows), "table %s, bucket %d", c.table.Name, i)
			got = append(got, rows...)
		}
		want := b.rows(t, scan.RowsRead{Table: c.table})
		slices.Sort(got)
		slices.Sort(want)
		require.Len(t, got, len(want))
		for i := range want {
			require.Equal(t, want[i], got[i], c.table.Name)
		}
		assert.Len(t, b.rows(t, scan.RowsRead{Table: c.table, Buckets: &scan.BucketFilter{Seed: 7, Buckets: 8, BucketKey: c.key, Wanted: []int{0, 1, 2, 3, 4, 5, 6, 7}}}), len(want))
		assert.Empty(t, b.rows(t, scan.RowsRead{Table: c.table, Buckets: &scan.BucketFilter{Seed: 7, Buckets: 8, BucketKey: c.key}}))
	}
}

// rows returns the rows of a read, each as one text. Long values are cut.
func (b *scanBed) rows(t *testing.T, read scan.RowsRead) (list []string) {
	t.Helper()
	err := b.local.Rows(testContext(t), &scan.RowsCall{Reads: []scan.RowsRead{read}}, func(*scan.RowsStart) error { return nil }, func(batch *scan.RowsBatch) error {
		rows := scan.NewBatch(len(read.Table.Columns), batch.Rows)
		defer rows.Release()
		for i := range rows.Len() {
			text := ""
			for n := range read.Table.Columns {
				v, ok := rows.Row(i).Value(n)
				if !ok {
					v = []byte("NULL")
				}
				text += "|" + string(v[:min(len(v), 100)])
			}
			list = append(list, text)
		}
		return nil
	}, nil)
	require.NoError(t, err)
	return list
}
