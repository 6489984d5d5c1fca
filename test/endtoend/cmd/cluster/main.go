// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

// Command cluster starts a Vitess cluster to play with and ends it again: `make up` and `make down`.
//
// The daemons survive the command. They are written down in build/cluster.state, from which `down` ends them;
// build/cluster.env tells a shell where everything is.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/vttablet-ext/vttablet-ext/test/endtoend/cluster"
)

const (
	stateFile = "build/cluster.state"
	envFile   = "build/cluster.env"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "cluster:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) != 1 {
		return errors.New("usage: cluster up|down, in the root of the repository")
	}
	if _, err := os.Stat("go.mod"); err != nil {
		return errors.New("run it in the root of the repository")
	}
	switch args[0] {
	case "up":
		return up(ctx)
	case "down":
		return down(ctx)
	default:
		return fmt.Errorf("unknown command %q: it is up or down", args[0])
	}
}

// up starts the cluster. One that runs already is left alone, since somebody may have data in it.
func up(ctx context.Context) error {
	running, err := cluster.DetachedRunning(stateFile)
	if err != nil {
		return err
	}
	if running > 0 {
		return fmt.Errorf("a cluster is up already (%d daemons, see %s); end it with: make down", running, envFile)
	}
	// What a reboot or a crash left.
	if err := cluster.EndDetached(ctx, stateFile, logf); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	started := time.Now()
	state, err := filepath.Abs(stateFile)
	if err != nil {
		return err
	}
	c, err := cluster.New(ctx, cluster.Options{
		StateFile:     state,
		VTTabletFlags: strings.Fields(os.Getenv("VTTABLET_FLAGS")),
		Logf:          logf,
	})
	if err != nil {
		return err
	}
	if err := populate(ctx, c); err != nil {
		c.Fail()
		return errors.Join(err, c.Close())
	}
	if err := c.Detach(); err != nil {
		return err
	}
	logf("the cluster is up after %v; end it with: make down", time.Since(started).Round(100*time.Millisecond))
	return nil
}

// populate adds the keyspaces and writes and prints the file for the shell.
func populate(ctx context.Context, c *cluster.Cluster) error {
	err := c.AddKeyspaces(ctx,
		cluster.Keyspace{Name: "src", Shards: []cluster.Shard{{Name: "0"}}},
		cluster.Keyspace{
			Name:    "dst",
			Shards:  []cluster.Shard{{Name: "-80", Replicas: 1}, {Name: "80-", Replicas: 1}},
			VSchema: `{"sharded": true, "vindexes": {"hash": {"type": "hash"}}, "tables": {}}`,
		},
		cluster.Keyspace{Name: "one", Shards: []cluster.Shard{{Name: "0"}}},
	)
	if err != nil {
		return err
	}
	env, err := c.Env()
	if err != nil {
		return err
	}
	if err := os.WriteFile(envFile, []byte(env), 0o644); err != nil {
		return err
	}
	fmt.Print(env)
	logf("the same is in %s: source it, then for example: vtctldclient --server $VTCTLD GetTablets", envFile)
	return nil
}

func down(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	if _, err := os.Stat(stateFile); errors.Is(err, os.ErrNotExist) {
		logf("no cluster is up")
		return nil
	}
	if err := cluster.EndDetached(ctx, stateFile, logf); err != nil {
		return err
	}
	if err := os.Remove(envFile); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

func logf(format string, args ...any) { fmt.Fprintf(os.Stderr, "cluster: "+format+"\n", args...) }
