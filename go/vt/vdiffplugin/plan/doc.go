// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

// Package plan turns a rule of a VReplication workflow and the schemas of both sides into a Table:
// which rows are read from each side, which columns are compared, by which columns rows are paired,
// and whether the streams of both sides come in one and the same order.
//
// LoadSchema is the only function here that talks to a tablet. Everything else is pure: the same
// input makes the same plan, without a clock, a lock or a database, so a plan may be made as often as
// one likes and be shared by goroutines.
//
// A plan promises only what both schemas prove:
//   - A key is called unique when a unique index of the source and one of the target say so, after
//     the columns that the rule's filter pins to one value. Otherwise rows are paired as a multiset of
//     whole rows, which is right for every table.
//   - Streams are called ordered when both sort by the same columns in the same sequence, and the
//     order of each of these columns can be computed here exactly as MySQL computes it. An order that
//     is only likely (ENUM, FLOAT, a collation that Vitess does not know) is none: whoever reads the
//     rows has to work without it, which is slower and never wrong.
//   - A rule that cannot be compared makes an error for its own table, marked permanent, because
//     planning it again gives the same answer.
//
// The columns compared are those that VReplication writes. It takes its column list from the rows
// that the source sends, leaves out what is generated on the target and knows nothing of columns that
// only the target has; neither does a plan.
package plan
