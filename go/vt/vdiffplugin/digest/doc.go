// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

// Package digest turns rows into fixed-size sums that tell whether two sets of rows are the same.
//
// Row hashes the bytes of one row (XXH3-128 under a seed), Sum counts rows and adds their hashes modulo
// 2^128. Addition commutes, so rows may come in any order, and sums of several shards, readers or
// packets merge into that of the whole. It is a sum and not an XOR, since under XOR a row that is there
// twice vanishes: a doubled row on both sides of a resharded table would hide.
//
// How often unlike sets of rows have the same Sum by accident: the difference of two such sums is a
// combination of hashes, n1*h1 + n2*h2 + ..., where at least one row has a count n other than 0. If
// 2^k is the largest power of two that divides all n, such a combination is 0 once in 2^(128-k). Two
// copies of a row in place of two copies of another make k = 1; and the row counts are compared too. A
// vdiff of a million million rows in ranges of a thousand, each compared ten times, makes 10^10
// comparisons: the odds that any one of them misleads are about 2^-94.
//
// The seed is drawn anew for each vdiff. Should two rows ever collide under one seed, the next vdiff
// sees them. XXH3 is no cryptographic hash: who can choose the rows and knows the seed can make
// collisions. This guards against faults, not against a writer who wants to deceive the owner of both
// databases.
//
// What a row's bytes are is the business of scan. Nothing here allocates, waits or fails.
package digest
