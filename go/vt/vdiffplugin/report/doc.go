// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

// Package report makes the JSON report of one table: how many rows were compared, matched, differed
// or were there on one side only, and samples of the rows that differ.
//
// A Builder belongs to the one goroutine that compares the table. It counts every row and keeps a
// sample where the user's options and the bound on the report's size leave room. Nothing here does any
// I/O, and no sample ever decides anything: counts are complete whatever is left out.
//
// The report is upstream's DiffReport with keys added, so that vtctldclient shows it and the stock
// engine can go on with it. It differs where the stock one misleads:
//   - NULL is shown as NULL, not as an empty text.
//   - Text is shown as text whatever charset it is stored in; bytes that are no text are shown as hex.
//     A report is always valid UTF-8, as MySQL's JSON columns need.
//   - A debug query reads the row from the side that the sample is of, with that side's table and
//     columns.
//   - The whole JSON stays within a bound, so that storing it cannot fail for its size. Truncated
//     says that something was left out or cut for that reason.
package report
