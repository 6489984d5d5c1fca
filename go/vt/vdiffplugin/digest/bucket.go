// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package digest

// MaxBuckets is the largest number of buckets that rows may be put in.
const MaxBuckets = 1 << 16

// ValidBuckets tells whether n is a number of buckets: a power of two from 1 to MaxBuckets.
func ValidBuckets(n int) bool { return n > 0 && n <= MaxBuckets && n&(n-1) == 0 }

// Bucket returns which of n buckets a row is in, by the hash of its key. It is from 0 to n-1; n must be
// one that ValidBuckets accepts.
//
// The hash may be that of the whole row, the very one that is added to the bucket's Sum. All rows of a
// bucket then agree in the bits that chose it, and these bits of the Sum follow from the row count: of 128 bits at
// least 112 go on telling rows apart, which is still far more than is needed. Any bits of XXH3 would do; these are
// the highest, so that nothing is carried out of them into others.
func Bucket(h Hash, n int) int {
	// The highest bits of Hi: Hi * n / 2^64.
	return int(h.Hi >> 32 * uint64(n) >> 32)
}
