// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

// Package differ runs one vdiff: it plans the tables of the workflow, has their ranges verified, forms
// fences, compares, and records progress. It is the engine's Runner.
//
// First come digests: workers share one verify.Machine, which says which range of which table is looked at
// next. A worker reads the target, in one snapshot with the positions of the streams, then all sources at positions
// that are not before those: see the package comment of verify for why equality is a proof then. The workflow is
// not stopped. What stays unequal is compared by rows in one fence for all tables (compareRanges).
//
// Tables that digests cannot do are compared by rows as a whole. One goroutine, the scheduler, decides; one
// goroutine per table compares. The scheduler takes the
// waiting tables that the configured concurrency has room for, largest first, and opens all their
// read views in one fence (several, when a fence would last too long). While those tables are
// compared the workflow runs. A table comes back from its comparison done, failed, or in need of
// another read view: when a view became too old, when its rows turned out not to be ordered, or when
// it is compared in several passes.
//
// Why no row is lost or counted twice: the counts of a table and the key up to which they hold are
// written in one statement, and only for keys that are finished on every side. Between two such
// statements nothing is remembered anywhere else. Whoever comes next, this run after a new fence, a
// run after a crash or the stock engine, starts behind that key with those counts. A table that has
// no such key starts again from its first row with no counts. Once the context has ended nothing is
// written any more, so that a tablet which is no longer primary cannot add a verdict.
//
// A table that cannot be planned or compared does not keep the others from being compared. The run's
// error names each of them and is permanent when all of theirs are.
package differ
