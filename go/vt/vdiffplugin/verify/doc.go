// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

// Package verify decides which range of which table is looked at next, and what becomes of it: verified,
// tried again, split, or left for the fence. It is a state machine and nothing else: no goroutine, no
// clock, no I/O. The caller tells what happened and asks what to do; times are durations since any fixed
// moment. A Machine is not safe for concurrent use.
//
// The rows of a table are at all times partitioned into segments, in key order. An open segment is a
// lane: a task walks it on the target from its beginning, and where the walk ends it is cut (Walked).
// The part that was walked is then compared with the sources, while the rest is open again for another
// worker. Segments are cut only at places that a reader returned or at integers in the middle of a lane. They
// are told apart by identity, since how places compare only MySQL knows. So a row belongs to exactly
// one segment whatever its key, and is counted once: when its segment is verified.
//
// Equal digests end a segment's story, and it is the caller's duty that they prove something: the target is read
// first, in one snapshot with the positions of its streams, and every source after it has executed these
// positions. The model test of this package shows both that this finds every fault that lasts, and
// that the other order does not. It holds for events that are idempotent: for others Table.Proof asks for
// equal positions, or for the whole table at once besides.
//
// Unequal digests prove nothing, since rows change between the two reads. Such a segment waits and is compared
// again, a few times; then it is split, that is to say it becomes a lane that is walked in small steps, and
// its parts go the same way. A part that is small and still unequal is left for the fence. When nothing
// changed between the reads there is nothing to wait for: the difference is real. And when a table has
// many ranges left, whatever else is unequal is left at once, so that a table that differs everywhere is
// not read over and over.
package verify
