// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package scan

import (
	"bytes"
	"fmt"
	"io"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"vitess.io/vitess/go/mysql/binlog"

	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/digest"
	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/pkrange"
)

var readColumns = []column{intColumn("id"), textColumn("a"), define("dt", binlog.TypeDateTime, 0, binaryCollation)}

func readRow(i int, size int) []byte {
	return binaryRow(readColumns, long(int64(i)), bytes.Repeat([]byte{byte(i)}, size), []byte{0xe4, 7, 1, byte(i%28 + 1)})
}

// read makes the digest of rows that arrive from r.
func read(t testing.TB, r io.Reader, buffer int, req *DigestRequest) (*Digest, int64) {
	t.Helper()
	c, err := req.Table.compile()
	require.NoError(t, err)
	var rows atomic.Int64
	reading, err := newReader(c, fakeSession(r, buffer), req, readColumns, &rows)
	require.NoError(t, err)
	require.NoError(t, reading.read())
	return &reading.out, rows.Load()
}

func readTable() *Table {
	return &Table{Name: "t", Columns: []string{"id", "a", "dt"}, Key: []KeyColumn{{Name: "id", Column: 0}, {Name: "dt", Column: 2}}, Index: "PRIMARY"}
}

// Tests that the digest is the sum of the rows' hashes, whether rows fit into the buffer or not; that buckets and filters
// part it; and where a limited read ends.
func TestRead(t *testing.T) {
	const n = 200
	var want digest.Sum
	a := newAnswer()
	for i := range n {
		row := readRow(i, i*3)
		want.Add(digest.Row(9, row))
		a.packet(row)
	}
	stream := a.end().Bytes()
	for _, buffer := range []int{32, 200, 1000, readBuffer} {
		f := func(req *DigestRequest) *Digest {
			t.Helper()
			req.Seed = 9
			if req.Table == nil {
				req.Table = readTable()
			}
			d, rows := read(t, &pieceReader{bytes.NewReader(stream), 100}, buffer, req)
			require.EqualValues(t, n, rows)
			require.EqualValues(t, n, d.Read)
			return d
		}
		d := f(&DigestRequest{})
		require.Equal(t, []digest.Sum{want}, d.Sums)
		assert.Empty(t, d.Last)
		assert.Empty(t, d.UpTo)
		assert.EqualValues(t, len(stream)-packetHeader*(n+1)-5, d.Bytes)
		for _, key := range [][]int{nil, {0}, {1}, {2, 0}} {
			var sum digest.Sum
			d := f(&DigestRequest{Buckets: 8, BucketKey: key})
			require.Len(t, d.Sums, 8)
			for _, s := range d.Sums {
				assert.Less(t, s.Rows, uint64(n/2))
				sum.Merge(s)
			}
			require.Equal(t, want, sum)
		}
		var sum digest.Sum
		for _, kr := range []string{"-40", "40-a0", "a0-"} {
			table := readTable()
			table.Filter = &VindexFilter{Type: "hash", Columns: []int{0}, KeyRange: kr}
			d := f(&DigestRequest{Table: table})
			assert.Less(t, d.Sums[0].Rows, uint64(n*3/4))
			sum.Merge(d.Sums[0])
		}
		require.Equal(t, want, sum)
		last := pkrange.Bound{{Kind: pkrange.Int, Int: n - 1}, {Kind: pkrange.Temporal, Bytes: []byte("2020-01-04 00:00:00")}}
		d = f(&DigestRequest{Limit: n})
		assert.Equal(t, last, d.UpTo)
		assert.Equal(t, last, d.Last)
		d = f(&DigestRequest{Limit: n + 1})
		assert.Empty(t, d.UpTo, "it has come to the end")
		assert.Equal(t, last, d.Last)
	}
}

// Tests that a limit of bytes ends a read behind the row that reaches it, and what is left is read to its end.
func TestReadBytes(t *testing.T) {
	a := newAnswer()
	for i := range 10 {
		a.packet(readRow(i, 1000))
	}
	stream := a.end().Bytes()
	for most, rows := range map[int64]int64{1: 1, 1000: 1, 1100: 2, 5000: 5} {
		d, told := read(t, bytes.NewReader(stream), 4096, &DigestRequest{Table: readTable(), Limit: 10, MaxBytes: most})
		assert.Equal(t, rows, d.Read, "%d bytes", most)
		assert.Equal(t, rows, told)
		assert.Equal(t, rows-1, d.UpTo[0].Int)
		assert.EqualValues(t, rows, d.Sums[0].Rows)
	}
}

// replay is an endless result: the same rows again and again, until n are read.
type replay struct {
	rows []byte
	at   int
}

func (r *replay) Read(b []byte) (int, error) {
	n := copy(b, r.rows[r.at:])
	if r.at += n; r.at == len(r.rows) {
		r.at = 0
	}
	return n, nil
}

// Benchmarks a row of about 200 bytes on its way from the connection into the digest, with filters. No row may cost an
// allocation where the vindex does not.
func BenchmarkRead(b *testing.B) {
	a := newAnswer()
	for i := range 256 { // sequence numbers are where they were
		a.packet(readRow(i, 180))
	}
	for _, filter := range []string{"", "hash", "xxhash", "binary_md5", "numeric", "unicode_loose_md5"} {
		table := readTable()
		if filter != "" {
			table.Filter = &VindexFilter{Type: filter, Columns: []int{0}, KeyRange: "-80"}
		}
		for _, limited := range []bool{false, true} {
			b.Run(fmt.Sprintf("filter=%s/limited=%v", filter, limited), func(b *testing.B) {
				req := &DigestRequest{Table: table}
				if limited {
					req.Limit = 1 << 60
				}
				c, err := table.compile()
				require.NoError(b, err)
				var rows atomic.Int64
				r, err := newReader(c, fakeSession(&replay{rows: a.Bytes()}, readBuffer), req, readColumns, &rows)
				require.NoError(b, err)
				b.ReportAllocs()
				b.SetBytes(int64(len(a.Bytes()) / 256))
				for b.Loop() {
					row, long, err := r.s.next()
					if err != nil {
						b.Fatal(err)
					}
					if err := r.add(row, long); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
