// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/vttablet-ext/vttablet-ext/test/endtoend/cluster"
)

// ownerEnv makes TestMain start a cluster in the named directory and wait to be killed.
const ownerEnv = "CLUSTER_TEST_OWNER"

func TestMain(m *testing.M) {
	dir := os.Getenv(ownerEnv)
	if dir == "" {
		os.Exit(m.Run())
	}
	c, err := cluster.New(context.Background(), cluster.Options{Dir: dir})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(c.Dir())
	select {}
}

// TestKilledOwner kills the process that runs a cluster with SIGKILL: its daemons must end by themselves, and
// the next cluster must remove the directory.
func TestKilledOwner(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	parent := tempDir(t)
	owner := exec.CommandContext(ctx, os.Args[0])
	owner.Env = append(os.Environ(), ownerEnv+"="+parent)
	owner.Stderr = os.Stderr
	stdout, err := owner.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, owner.Start())
	var dir string
	_, err = fmt.Fscanln(stdout, &dir)
	require.NoError(t, err)
	require.Len(t, processesOf(t, dir), 2, "etcd and vtctld")

	require.NoError(t, owner.Process.Kill())
	require.Error(t, owner.Wait())
	require.NoError(t, cluster.WaitFor(ctx, "the end of the daemons", 20*time.Millisecond, func(context.Context) (bool, error) {
		return len(processesOf(t, dir)) == 0, nil
	}))
	require.DirExists(t, dir)
	c, err := cluster.New(ctx, cluster.Options{Dir: parent, Logf: t.Logf})
	require.NoError(t, err)
	require.NoDirExists(t, dir)
	require.NoError(t, c.Close())
}

// TestDetach leaves a cluster running, as `make up` does, and ends it from its state file. A process that has the
// number of an ended daemon, but is another one, must not be touched.
func TestDetach(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	parent := tempDir(t)
	state := filepath.Join(parent, "state")
	c, err := cluster.New(ctx, cluster.Options{Dir: parent, StateFile: state, Logf: t.Logf})
	require.NoError(t, err)
	require.NoError(t, c.Detach())
	running, err := cluster.DetachedRunning(state)
	require.NoError(t, err)
	require.Equal(t, 2, running)

	bystander := exec.Command("sleep", "600")
	require.NoError(t, bystander.Start())
	f, err := os.OpenFile(state, os.O_APPEND|os.O_WRONLY, 0)
	require.NoError(t, err)
	_, err = fmt.Fprintf(f, `{"name":"other","pid":%d,"start":"1","boot":"another"}`+"\n", bystander.Process.Pid)
	require.NoError(t, err)
	require.NoError(t, f.Close())

	require.NoError(t, cluster.EndDetached(ctx, state, t.Logf))
	require.Empty(t, processesOf(t, c.Dir()))
	require.NoDirExists(t, c.Dir())
	require.NoFileExists(t, state)
	require.NoError(t, bystander.Process.Kill(), "the bystander must live")
	require.ErrorContains(t, bystander.Wait(), "killed")

	require.NoError(t, cluster.EndDetached(ctx, state, t.Logf), "there is nothing to end")
}

// tempDir is a directory that an unprivileged user can enter and whose name leaves room for a socket path.
func tempDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "vtx-")
	require.NoError(t, err)
	require.NoError(t, os.Chmod(dir, 0o755))
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	return dir
}

// processesOf returns the command lines of the processes that have the cluster's directory in their environment.
func processesOf(t *testing.T, dir string) []string {
	t.Helper()
	paths, err := filepath.Glob("/proc/[0-9]*/environ")
	require.NoError(t, err)
	var found []string
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil || !strings.Contains(string(data), "VTDATAROOT="+dir+"\x00") { // it has ended, or is another user's
			continue
		}
		line, err := os.ReadFile(filepath.Join(filepath.Dir(path), "cmdline"))
		if err != nil {
			continue
		}
		found = append(found, strings.ReplaceAll(string(line), "\x00", " "))
	}
	return found
}
