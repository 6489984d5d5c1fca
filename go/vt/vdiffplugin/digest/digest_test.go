// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package digest

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// sum adds up rows.
func sum(seed uint64, rows ...[]byte) Sum {
	var s Sum
	for _, row := range rows {
		s.Add(Row(seed, row))
	}
	return s
}

// TestRowKnown tests that the hash is XXH3-128 with the seed as the reference implementation defines it, so that
// a change of the library that would make unlike versions look alike does not go unnoticed.
func TestRowKnown(t *testing.T) {
	f := func(seed uint64, row string, want Hash) {
		t.Helper()
		require.Equal(t, want, Row(seed, []byte(row)))
	}
	// XXH3_128bits of nothing, and of nothing under the seed PRIME32_1, as in the reference's own tests.
	f(0, "", Hash{Hi: 0x99aa06d3014798d8, Lo: 0x6001c324468d497f})
	f(2654435761, "", Hash{Hi: 0x92220ae55e14ab50, Lo: 0x5444f7869c671ab0})
}

// TestSum tests that order does not matter, that merged parts equal the whole, and that what XOR would hide is seen:
// a row that is there twice.
func TestSum(t *testing.T) {
	a, b, c := []byte("a"), []byte("b"), []byte("c")
	require.Equal(t, sum(1, a, b, c), sum(1, c, a, b))
	merged := sum(1, a)
	merged.Merge(sum(1, b, c))
	require.Equal(t, sum(1, a, b, c), merged)
	require.NotEqual(t, sum(1, a, b, c), sum(2, a, b, c))
	require.NotEqual(t, sum(1, a, b, b), sum(1, a, c, c))
	require.NotEqual(t, sum(1, a, a), sum(1))
	require.Equal(t, "0 rows, 00000000000000000000000000000000", Sum{}.String())
}

// TestSumCarry tests the addition modulo 2^128.
func TestSumCarry(t *testing.T) {
	var s Sum
	s.Add(Hash{Hi: math.MaxUint64, Lo: math.MaxUint64})
	s.Add(Hash{Lo: 2})
	require.Equal(t, Sum{Rows: 2, Lo: 1}, s)
	s.Merge(Sum{Rows: 3, Hi: 1, Lo: math.MaxUint64})
	require.Equal(t, Sum{Rows: 5, Hi: 2}, s)
}

// TestBucket tests that buckets are in bounds, evenly filled by hashes of small integers, and nested: halving their
// number joins neighbours.
func TestBucket(t *testing.T) {
	const rows, n = 64_000, 64
	var count [n]int
	var key [8]byte
	for i := range rows {
		binary.LittleEndian.PutUint64(key[:], uint64(i))
		h := Row(7, key[:])
		count[Bucket(h, n)]++
		require.Equal(t, Bucket(h, n)/2, Bucket(h, n/2))
		require.Zero(t, Bucket(h, 1))
	}
	for b, got := range count {
		require.InDelta(t, rows/n, got, 200, "bucket %d", b)
	}
	top := Hash{Hi: math.MaxUint64}
	require.Equal(t, MaxBuckets-1, Bucket(top, MaxBuckets))
	for n, want := range map[int]bool{-2: false, 0: false, 1: true, 2: true, 3: false, 1 << 16: true, 1 << 17: false} {
		require.Equal(t, want, ValidBuckets(n), "%d", n)
	}
}

// TestHasher tests that pieces of any size hash as the whole, at the sizes where XXH3 changes its way of working, and
// that a Hasher begins anew after Sum.
func TestHasher(t *testing.T) {
	h := NewHasher(5)
	r := rand.New(rand.NewPCG(1, 2))
	for _, size := range []int{0, 1, 3, 4, 8, 9, 16, 17, 128, 129, 240, 241, 255, 256, 257, 512, 1023, 1024, 1025, 5000, 1 << 20} {
		row := make([]byte, size)
		for i := range row {
			row[i] = byte(r.Uint32())
		}
		for range 8 {
			for rest := row; len(rest) > 0; {
				n := 1 + r.IntN(len(rest))
				_, err := h.Write(rest[:n])
				require.NoError(t, err)
				rest = rest[n:]
			}
			require.Equal(t, Row(5, row), h.Sum(), "size %d", size)
		}
	}
}

// FuzzSum tests on any rows that order does not matter, merging is associative, one changed byte changes the sum, and
// the streamed hash is that of the whole.
func FuzzSum(f *testing.F) {
	f.Add(uint64(0), []byte("one|two|three|two"), uint16(3))
	f.Add(uint64(1<<63), bytes.Repeat([]byte("row|"), 300), uint16(250))
	f.Fuzz(func(t *testing.T, seed uint64, data []byte, at uint16) {
		rows := bytes.Split(data, []byte("|"))
		want := sum(seed, rows...)

		shuffled := append([][]byte(nil), rows...)
		rand.New(rand.NewPCG(seed, 1)).Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		require.Equal(t, want, sum(seed, shuffled...))

		i := int(at) % (len(rows) + 1)
		j := i + (len(rows)-i)/2
		a, b, c := sum(seed, rows[:i]...), sum(seed, rows[i:j]...), sum(seed, rows[j:]...)
		left, right := a, b
		left.Merge(b)
		left.Merge(c)
		right.Merge(c)
		a.Merge(right)
		require.Equal(t, want, left)
		require.Equal(t, want, a)

		if len(data) > 0 {
			changed := bytes.Clone(data)
			changed[int(at)%len(data)] ^= 1
			require.NotEqual(t, sum(seed, data), sum(seed, changed))
		}
		h := NewHasher(seed)
		cut := int(at) % (len(data) + 1)
		_, _ = h.Write(data[:cut])
		_, _ = h.Write(data[cut:])
		require.Equal(t, Row(seed, data), h.Sum())
	})
}

// BenchmarkRow measures a row of 205 bytes hashed and added: at once, in two pieces, and into one of many buckets.
func BenchmarkRow(b *testing.B) {
	row := bytes.Repeat([]byte{0xa5}, 205)
	b.Run("one", func(b *testing.B) {
		b.SetBytes(int64(len(row)))
		b.ReportAllocs()
		var s Sum
		for b.Loop() {
			s.Add(Row(42, row))
		}
	})
	b.Run("pieces", func(b *testing.B) {
		b.SetBytes(int64(len(row)))
		b.ReportAllocs()
		var s Sum
		h := NewHasher(42)
		for b.Loop() {
			_, _ = h.Write(row[:100])
			_, _ = h.Write(row[100:])
			s.Add(h.Sum())
		}
	})
	b.Run("bucket", func(b *testing.B) {
		b.SetBytes(int64(len(row)))
		b.ReportAllocs()
		sums := make([]Sum, 4096)
		for b.Loop() {
			h := Row(42, row)
			sums[Bucket(h, len(sums))].Add(h)
		}
	})
}
