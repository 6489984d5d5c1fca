// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

// Package differ runs one vdiff: it plans the tables of the workflow, forms fences, compares, and
// records progress. It is the engine's Runner.
//
// One goroutine, the scheduler, decides; one goroutine per table compares. The scheduler takes the
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
