// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package digest

import (
	"fmt"
	"math/bits"

	"github.com/zeebo/xxh3"
)

// Version names the hash and how hashes are added up. Digests of unlike versions must not be compared.
const Version = 1

// Hash is the hash of one row.
type Hash struct {
	Hi, Lo uint64
}

// Row returns XXH3-128 of the bytes of a row under a seed. It does not keep them.
func Row(seed uint64, row []byte) Hash {
	h := xxh3.Hash128Seed(row, seed)
	return Hash{Hi: h.Hi, Lo: h.Lo}
}

// Sum is the digest of a set of rows, duplicates counted: how many there are, and the sum of their hashes
// modulo 2^128. The zero Sum is that of no rows.
type Sum struct {
	Rows   uint64
	Hi, Lo uint64
}

// Add adds one row.
func (s *Sum) Add(h Hash) {
	var carry uint64
	s.Rows++
	s.Lo, carry = bits.Add64(s.Lo, h.Lo, 0)
	s.Hi, _ = bits.Add64(s.Hi, h.Hi, carry)
}

// Merge adds all rows of another set.
func (s *Sum) Merge(other Sum) {
	var carry uint64
	s.Rows += other.Rows
	s.Lo, carry = bits.Add64(s.Lo, other.Lo, 0)
	s.Hi, _ = bits.Add64(s.Hi, other.Hi, carry)
}

// String shows a digest for logs.
func (s Sum) String() string { return fmt.Sprintf("%d rows, %016x%016x", s.Rows, s.Hi, s.Lo) }
