// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"flag"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// small returns parameters of a simulation that takes no time.
func small(t *testing.T, args ...string) params {
	var p params
	flags := flag.NewFlagSet("simulate", flag.ContinueOnError)
	p.register(flags)
	require.NoError(t, flags.Parse(append([]string{"-shards=4", "-tables=30", "-rows=50000"}, args...)))
	return p
}

// TestDeterministic tests that the same seed prints the same, and another one does not.
func TestDeterministic(t *testing.T) {
	f := func(args ...string) string {
		var out bytes.Buffer
		require.NoError(t, run(&out, small(t, args...)))
		return out.String()
	}
	require.Equal(t, f(), f())
	require.NotEqual(t, f(), f("-seed=2"))
	require.NotEmpty(t, f("-fan=4", "-lag=20s", "-replica-lag=30s", "-writes=5000"))
	require.Error(t, run(&bytes.Buffer{}, small(t, "-fan=5")))
	require.Error(t, run(&bytes.Buffer{}, small(t, "-apply=1")))
}

// TestQuiet tests what must come out when nothing is written: each row is read once on the targets, and nothing is stopped.
func TestQuiet(t *testing.T) {
	p := small(t, "-writes=0")
	shards, rows := sizes(p)
	ours, err := simulate(p, shards)
	require.NoError(t, err)
	require.Equal(t, rows, ours.read)
	require.Zero(t, ours.pauses)
	require.Zero(t, ours.locked)
	require.Zero(t, ours.fenced)
	theirs := stock(p, shards)
	require.Equal(t, rows, theirs.read)
	require.Equal(t, 4*30, theirs.pauses)
	require.GreaterOrEqual(t, theirs.wall, theirs.locked)
}

// TestHot tests that a hot spot, and no more than that, is left for one fence of each shard.
func TestHot(t *testing.T) {
	p := small(t, "-writes=100", "-hot=1")
	shards, _ := sizes(p)
	ours, err := simulate(p, shards)
	require.NoError(t, err)
	require.Equal(t, 4, ours.pauses)
	require.LessOrEqual(t, ours.fenced, 16)
	require.Less(t, ours.longestPause, time.Second)
}
