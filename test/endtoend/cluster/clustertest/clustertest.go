// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

// Package clustertest ties a cluster to a test: it is closed when the test ends, its logs are kept when the test failed, and
// a panic or a data race in any daemon's log fails the test.
package clustertest

import (
	"context"
	"regexp"
	"testing"

	"github.com/vttablet-ext/vttablet-ext/test/endtoend/cluster"
)

// Crash matches the lines that a crashing, panicking or racing Go program writes to its log.
var Crash = regexp.MustCompile(`^panic: |^fatal error: |WARNING: DATA RACE|[Uu]ncaught panic|panic serving`)

// New starts a cluster with the keyspaces.
func New(ctx context.Context, t testing.TB, opts cluster.Options, keyspaces ...cluster.Keyspace) *cluster.Cluster {
	t.Helper()
	if opts.Logf == nil {
		opts.Logf = t.Logf
	}
	c, err := cluster.New(ctx, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { finish(t, c) })
	if err := c.AddKeyspaces(ctx, keyspaces...); err != nil {
		t.Fatal(err)
	}
	return c
}

// finish checks the logs and closes the cluster.
func finish(t testing.TB, c *cluster.Cluster) {
	lines, err := c.GrepLogs(Crash)
	if err != nil {
		t.Error(err)
	}
	for _, line := range lines {
		t.Errorf("in the logs: %s", line)
	}
	if t.Failed() {
		c.Fail()
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}
