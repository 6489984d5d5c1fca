// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestWaitFor tests the three ways in which a wait ends: done, failed, out of time.
func TestWaitFor(t *testing.T) {
	calls := 0
	require.NoError(t, WaitFor(t.Context(), "three calls", time.Millisecond, func(context.Context) (bool, error) {
		calls++
		return calls == 3, nil
	}))
	require.Equal(t, 3, calls)

	failure := errors.New("broken")
	err := WaitFor(t.Context(), "it", time.Millisecond, func(context.Context) (bool, error) { return false, failure })
	require.ErrorIs(t, err, failure)

	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	err = WaitFor(ctx, "nothing", time.Millisecond, func(context.Context) (bool, error) { return false, nil })
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorContains(t, err, "waiting for nothing")
}

// TestShellNames tests the names of variables in Env, and that a shell reads back what shellQuote quotes.
func TestShellNames(t *testing.T) {
	f := func(shard, want string) {
		t.Helper()
		require.Equal(t, want, shellShard(shard))
	}
	f("0", "0")
	f("-80", "TO_80")
	f("80-", "80")
	f("40-c0", "40_TO_C0")
	f("-", "TO_")
	require.Equal(t, "MY_KEY_SPACE", shellName("my-key.space"))

	for _, text := range []string{"", "plain/path-1.0", "two words", "it's $HOME `id`", `a"b\c`} {
		out, err := exec.Command("sh", "-c", "x="+shellQuote(text)+`; printf %s "$x"`).Output()
		require.NoError(t, err)
		require.Equal(t, text, string(out))
	}
}

// TestTakePort tests that a cluster never hands out a port twice, and that a port in use is replaced.
func TestTakePort(t *testing.T) {
	c := &Cluster{ports: map[int]bool{}}
	seen := map[int]bool{}
	for range 50 {
		port, err := c.takePort()
		require.NoError(t, err)
		require.False(t, seen[port])
		seen[port] = true
	}
	free, err := c.takePort()
	require.NoError(t, err)
	kept := free
	require.NoError(t, c.keepOrTakePorts(&kept))
	require.Equal(t, free, kept)
}

// TestStartTime tests that a process is told from one that has ended but was not waited for.
func TestStartTime(t *testing.T) {
	cmd := exec.Command("sleep", "600")
	require.NoError(t, cmd.Start())
	line := stateLine{PID: cmd.Process.Pid, Start: startTime(cmd.Process.Pid), Boot: bootID()}
	require.True(t, line.running())
	other := line
	other.Start = "1"
	require.False(t, other.running())
	require.NoError(t, cmd.Process.Kill())
	require.NoError(t, WaitFor(t.Context(), "its death", time.Millisecond, func(context.Context) (bool, error) {
		return !line.running(), nil
	}))
	require.Error(t, cmd.Wait())
}
