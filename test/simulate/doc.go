// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

// Command simulate tells what a vdiff of a large keyspace costs, with VDiff2 and with this engine, without having one: discrete
// time, no I/O, the same result for the same flags and seed.
//
// The engine's part is decided by the very state machine that the engine uses (verify.Machine): only reading, replication and
// writes are simulated. A table's rows have the keys 1 to n; writes hit a range with the probability that its share of all rows
// has, plus a hot spot: the last rows of the largest table. VDiff2 is simulated from what its source does for each table and
// shard, and favourably: its lock is had at once when it is free, nothing fails, and nothing is read twice.
//
// A target tablet serves its workers at full speed. Source shards of one target shard are read at the same time. With a fan of
// more than one each source scans the rows of all its targets for each of them, and its speed is shared out among them, with
// either engine.
package main
