// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

// Package sidecar has every SQL statement of the plug-in against the sidecar database (_vt), and
// nothing else has one.
//
// It may touch the tables vdiff, vdiff_table and vdiff_log, reads vreplication, copy_state and
// information_schema, and runs ANALYZE TABLE. The statements that change streams are only built
// here: the VReplication engine has to run them. It imports no other room.
//
// Why what it writes can be trusted:
//
//   - Every change of a vdiff's state is one transaction that first locks the vdiff's row and looks
//     at the state it has now. A state that a person has set (stopped) is therefore never overwritten
//     by a run that is still ending, in whatever order the two arrive.
//   - A checkpoint of a table is one statement: counts, key and report are all stored or none is.
//   - Whatever a failed connection leaves unknown may be asked for again: the transitions give the
//     same answer the second time.
//   - Every statement is filtered by db_name, since several tablets may share one mysqld.
//   - Values are bound, never formatted. Texts are cut, on a rune boundary, to what their column
//     holds, so that recording an error cannot itself fail. Errors carry the number and a short
//     message of MySQL but never the statement, which may hold data of users.
//
// What upstream's tables have no column for is kept as lines of JSON in vdiff_log, told apart from
// other lines by their first key: the class and count of errors ("error_class"), and the streams
// that a fence has stopped ("fence"). The stock engine ignores them.
//
// A method ends at once when its context does: the connection is closed under the statement.
package sidecar
