// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

// Package pkrange holds ranges of a table's rows, in the order of a key: what a range is, its SQL
// condition, how it is cut, and how it is stored in a checkpoint.
//
// A Range is (After, UpTo], and both ends are places between rows. That the next range begins After
// exactly where one is UpTo is what makes ranges partition the rows of a table: a row is behind a
// place or it is not, whatever the place's values are, whether or not any row has them, and whoever decides it, as
// long as all shards decide alike. The first range has no After and the last no UpTo, so that
// rows outside of everything seen so far (strays) belong to a range too.
//
// Nobody but MySQL knows how values of a key compare (collations). So nothing here orders values, and
// code that cuts ranges may only use places that MySQL returned, or, for integers, Middle. Predicate
// writes a range as SQL and leaves the order to MySQL.
//
// Nothing here does any I/O, waits, or knows of Vitess.
package pkrange
