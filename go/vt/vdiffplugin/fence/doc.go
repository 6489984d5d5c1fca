// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

// Package fence brings the source and the target of a workflow to equal positions, for a moment.
//
// A fence holds the topo lock of the workflow and stops its streams on this tablet. Inside it the
// caller opens a read view on every source shard, runs the streams to just those positions, and
// opens the read view on the target: what the two views show must then be the same. When the fence
// ends, the streams return to the state they were in; the views live on.
//
// Whatever happens, a stream must not stay stopped. So a fence is written down in _vt before it
// touches a stream, and struck out after the streams are back. What a process that died has left is
// found and repaired by Repair: when the engine opens, also on another tablet that has become primary
// since, because the record replicates with the streams. A stream that a person stopped after the
// crash is left alone: it shows none of the marks that a fence leaves.
//
// The room changes streams through the VReplication engine of this tablet only, and reads _vt through
// sidecar. It opens no read view itself.
package fence
