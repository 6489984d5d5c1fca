// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

// Package endtoend has the tests that run on a real cluster: what must hold for vtctldclient VDiff
// against vttablet-ext, whatever happens to the tablets and their mysqld meanwhile.
//
// The tests share one cluster (see bed_test.go), for starting one costs more than most tests. A test
// leaves it as it found it: workflows running, no vdiffs, nothing held.
package endtoend
