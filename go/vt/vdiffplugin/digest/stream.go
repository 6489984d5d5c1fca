// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package digest

import "github.com/zeebo/xxh3"

// Hasher hashes a row that comes in several pieces, as rows do that MySQL splits into packets. Its result is
// that of Row on all pieces joined. It is about 1.5 KB, to be made once for each reader, and belongs to one
// goroutine.
type Hasher struct {
	state xxh3.Hasher
	seed  uint64
}

// NewHasher returns a Hasher for rows under a seed.
func NewHasher(seed uint64) *Hasher {
	h := &Hasher{seed: seed}
	h.state.ResetSeed(seed)
	return h
}

// Write takes the next piece of the row. It does not keep it, and never fails.
func (h *Hasher) Write(piece []byte) (int, error) { return h.state.Write(piece) }

// Sum returns the hash of the row and begins the next one.
func (h *Hasher) Sum() Hash {
	sum := h.state.Sum128()
	h.state.ResetSeed(h.seed)
	return Hash{Hi: sum.Hi, Lo: sum.Lo}
}
