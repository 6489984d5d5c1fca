// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

// Package scan reads the rows of tables on one tablet, in two ways.
//
// Local reads beside vttablet, from the tablet's own mysqld: digests of ranges of rows, and rows for the fence. A row
// is hashed as the very bytes that mysqld sends for a prepared statement, whose encoding is a function of the values
// and their wire types: equal bytes of equal types are equal values, on any two servers, since the session fixes what could
// differ (time zone, SQL mode, no conversion of results). Form tells the types. Values are decoded only where they are
// needed: the key of a walk's last row, the inputs of the vindex, the bucket. Text in a bound is handed to MySQL as bytes
// and said to be in the column's own collation, so that a bound cuts the rows where the index does; whether it
// does is tested with EXPLAIN. All SQL that came over the network is parsed, checked and printed again (see Table.Check).
//
// A connection is made by Vitess's client, which then runs plain statements on it; prepared statements are spoken
// by statement.go in between. One that an error happened on is not used again, and one whose context ends is closed and
// killed, so that mysqld stops as well. Memory: a buffer of 1 MB for each reader; a longer row passes through it in pieces.
//
// A Stream is one VStreamRows call, for tablets that offer nothing else: the tablet locks the table for a moment, notes
// its GTID position, opens a consistent read view and sends the rows of that view in key order. Open returns when the
// position has arrived: from then on the stream may be read as slowly as its consumer likes without the view moving.
// Rows arrive as MySQL's text values, filtered by the query's where clause and in_keyrange. A tablet in this very
// process is read through its query service directly. At most a few packets (see streamDepth) are in memory; the rows of a
// response belong to the sender, so a Batch owns a copy.
//
// The room dials tablets and its mysqld and nothing else. It knows no plan; of _vt it reads the positions of streams,
// since these must come from the same read view as the rows.
package scan
