// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

// Package rowdiff compares the rows of a table on its source shards with those on the target.
//
// Both sides must be read at equal positions: then every difference found here is one. There are
// three ways to pair rows, all of which count each row exactly once:
//
//   - Merge, for tables whose streams arrive in key order. Rows are paired as in a merge join. That
//     the streams do arrive in that order is not believed but checked, row by row: if every stream is
//     strictly ascending under one comparison, then a head that is smaller than all others can have
//     no partner further on, whatever MySQL's own order is. A stream that is not ascending ends the
//     merge with ErrNotOrdered, and the table is compared by Pair. After every step the rows up to
//     the last key are finished on all sides, so that any key is a checkpoint.
//   - Pair, for all others. Rows wait in memory until their partner comes, found by the bytes of the
//     key in a canonical form. No order is needed; memory grows with the disorder. When it outgrows
//     its bound the comparison ends with ErrMemory and is done again in more passes, each of which
//     looks at the keys of one hash class only.
//   - Fold, for rules that group rows, and for reference tables, of which every source shard holds a
//     copy: the source's rows are folded into one row per key first.
//
// Two values are equal when their bytes are, or when they are the same value of types that print
// differently (decimals of unlike scale, fractional seconds, zerofill, a charset). A key that is
// equal under the collation but not in its bytes is a mismatch: the target would be another string. Collations
// that Vitess does not know are MySQL's to decide on: a Weigher asks it, about the keys that nothing else has paired. The
// groups of a rule are those of the target's unique index, whatever the bytes of their keys are.
//
// The room does no I/O of its own: it pulls batches from Sources, pushes verdicts into a Sink and asks a Weigher.
package rowdiff
