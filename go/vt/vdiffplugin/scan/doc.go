// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

// Package scan reads the rows of one table on one tablet.
//
// A Stream is one VStreamRows call: the tablet locks the table for a moment, notes its GTID
// position, opens a consistent read view and sends the rows of that view in the order of the
// table's key. Open returns when the position has arrived, that is, when the read view exists: from
// then on the stream may be read as slowly as its consumer likes without the view moving. Rows arrive
// as MySQL's text values, already filtered by the query's where clause and in_keyrange.
//
// The room may dial tablets and nothing else: it knows no plan, no workflow and no _vt table. A
// tablet in this very process is read through its query service directly, which saves encoding and
// decoding every row.
//
// Memory: a stream holds at most a few packets (see streamDepth) beyond the one its consumer works
// on; everything further is held back by flow control down to mysqld. The rows of a VStreamRows
// response belong to the sender and are reused by it, so a Batch owns a copy.
package scan
