// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

// Package load makes tables with many rows, for the demo and the benchmark.
//
// The rows are made by MySQL itself: an INSERT ... SELECT over a sequence of numbers, a bounded count of rows in each
// statement, so that no row crosses a socket and no transaction grows large. A table says by SQL expressions over the
// number n what its rows hold; the same n always gives the same row, so two runs compare the same data.
//
// The rows can be kept out of the binary log (Table.NoBinlog). That is right only before a workflow exists and
// for a shard without replicas; it saves as many bytes on the disk as the rows have.
package load
