// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

// Package engine decides which vdiffs of a tablet run, and keeps their states. It opens when the
// tablet becomes PRIMARY and closes when it is not any more; in between it answers the VDiff actions,
// retries vdiffs that failed, and follows the shard record. How tables are compared is not its
// business: a differ.Runner does that. It touches the database only through a sidecar.VDiffStore.
//
// Between Open and Close lives a session with one goroutine of its own (supervise). It opens the
// engine, trying again for as long as that fails, and then follows the shard record. The time in
// which the engine is open is a period: the controllers (one per vdiff), the retry goroutine and the
// actions belong to it. When another primary takes over, the period ends and the session goes on,
// to see whether this tablet is named again.
//
// Why this survives restarts:
//
//   - The maps of controllers, the engine's and that of the metrics, are replaced in one place
//     (resetLocked), both together. Neither can hold what the other has lost.
//   - Nothing runs concurrently while the engine opens: controllers, retry goroutine and watch are
//     started when everything before has succeeded. A failed attempt leaves nothing behind.
//   - A session begins its work when the one before has ended, however long that takes. Two runs of
//     a vdiff never overlap in one process.
//   - mu is never held while waiting or doing I/O. Actions on one vdiff follow each other by a slot
//     of its own, which is waited for with a context.
//   - A controller writes a state only while it is the current one of an open engine. What a person
//     asked for is written before the run is told, and the store lets no run overwrite it.
//   - A panic ends one vdiff, or one attempt, and nothing else.
package engine
