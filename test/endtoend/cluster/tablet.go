// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Tablet is a vttablet and its mysqld. Its methods may be called from any goroutine, but the order of starts and
// kills of one tablet is the caller's.
type Tablet struct {
	Alias    string
	UID      int
	Cell     string
	Keyspace string
	Shard    string
	// Type is what the tablet was created as: replica or rdonly. A primary is created as a replica.
	Type string
	// Stock says which program the next Start runs: upstream's vttablet instead of vttablet-ext.
	Stock bool
	// ExtraFlags are passed at each Start, last.
	ExtraFlags []string
	// The ports. A start takes another one when its port is in use.
	HTTPPort, GRPCPort, MySQLPort int

	c *Cluster

	mu       sync.Mutex
	vttablet *process
	mysqld   *process
}

// tabletDir is the directory of a tablet below VTDATAROOT.
func tabletDir(uid int) string { return fmt.Sprintf("vt_%010d", uid) }

// tabletAlias is an alias as Vitess prints it.
func tabletAlias(cell string, uid int) string { return fmt.Sprintf("%s-%010d", cell, uid) }

// Start starts the vttablet and waits until it answers over HTTP. By then it is in the topology; use WaitServing for more.
// Its mysqld must run. extraFlags are for this start only.
func (t *Tablet) Start(ctx context.Context, extraFlags ...string) error {
	if t.vttabletProcess().alive() {
		return fmt.Errorf("cluster: vttablet of %s runs already", t.Alias)
	}
	start := func() (*process, error) { return t.c.spawn("vttablet-"+t.Alias, nil, t.command(extraFlags)...) }
	p, err := t.c.launchWithPorts(ctx, []*int{&t.HTTPPort, &t.GRPCPort}, start, func(ctx context.Context) bool {
		return httpOK(ctx, t.url("/debug/vars"))
	})
	if err != nil {
		return err
	}
	t.mu.Lock()
	t.vttablet = p
	t.mu.Unlock()
	return nil
}

// command is the command line of the vttablet.
func (t *Tablet) command(extraFlags []string) []string {
	program := "vttablet-ext"
	if t.Stock {
		program = "vttablet"
	}
	args := append([]string{filepath.Join(t.c.binDir, program)}, t.c.topoFlags()...)
	args = append(args,
		"--tablet-path", t.Alias,
		"--tablet-hostname", localhost,
		"--init-keyspace", t.Keyspace,
		"--init-shard", t.Shard,
		"--init-tablet-type", t.Type,
		"--port", strconv.Itoa(t.HTTPPort),
		"--grpc-port", strconv.Itoa(t.GRPCPort),
		"--bind-address", localhost,
		"--grpc-bind-address", localhost,
		"--service-map", "grpc-queryservice,grpc-tabletmanager,grpc-updatestream,grpc-throttler",
		"--health-check-interval", "1s",
		"--enable-replication-reporter",
		"--shard-sync-retry-delay", "1s",
		"--vreplication-retry-delay", "1s",
		"--log-format", "text",
	)
	args = append(args, t.c.opts.VTTabletFlags...)
	if !t.Stock {
		args = append(args, t.c.opts.ExtFlags...)
	}
	args = append(args, t.ExtraFlags...)
	return append(args, extraFlags...)
}

// Kill kills the vttablet with SIGKILL and waits until it is gone.
func (t *Tablet) Kill() {
	if p := t.vttabletProcess(); p.alive() {
		p.kill()
	}
}

// Term ends the vttablet with SIGTERM and waits until it is gone; it is killed when the context ends first.
func (t *Tablet) Term(ctx context.Context) error {
	if p := t.vttabletProcess(); p.alive() {
		return p.term(ctx)
	}
	return nil
}

// Signal sends any signal to the vttablet, SIGSTOP and SIGCONT for example.
func (t *Tablet) Signal(sig syscall.Signal) error {
	p := t.vttabletProcess()
	if !p.alive() {
		return fmt.Errorf("cluster: vttablet of %s does not run", t.Alias)
	}
	return p.cmd.Process.Signal(sig)
}

// Alive says whether the vttablet's process is there.
func (t *Tablet) Alive() bool { return t.vttabletProcess().alive() }

func (t *Tablet) vttabletProcess() *process {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.vttablet
}

// WaitServing waits until the query service of the tablet serves.
func (t *Tablet) WaitServing(ctx context.Context) error {
	return t.waitVar(ctx, "TabletStateName", "SERVING")
}

// WaitType waits until the tablet says that it is of this type: PRIMARY, REPLICA, ...
func (t *Tablet) WaitType(ctx context.Context, tabletType string) error {
	return t.waitVar(ctx, "TabletType", tabletType)
}

func (t *Tablet) waitVar(ctx context.Context, name, want string) error {
	last := any("unknown")
	err := WaitFor(ctx, fmt.Sprintf("%s of %s to be %s", name, t.Alias, want), 50*time.Millisecond, func(ctx context.Context) (bool, error) {
		if !t.Alive() {
			return false, fmt.Errorf("vttablet of %s does not run", t.Alias)
		}
		vars, err := t.Metrics(ctx)
		if err != nil {
			return false, nil //nolint:nilerr // it may not listen yet
		}
		last = vars[name]
		return strings.EqualFold(fmt.Sprint(last), want), nil
	})
	if err != nil {
		return fmt.Errorf("%w (it was %v)", err, last)
	}
	return nil
}

// Metrics are the variables of the vttablet's /debug/vars.
func (t *Tablet) Metrics(ctx context.Context) (map[string]any, error) {
	resp, err := httpGet(ctx, t.url("/debug/vars"))
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	vars := map[string]any{}
	if err := json.NewDecoder(resp.Body).Decode(&vars); err != nil {
		return nil, fmt.Errorf("cluster: variables of %s: %w", t.Alias, err)
	}
	return vars, nil
}

func (t *Tablet) url(path string) string { return "http://" + addr(t.HTTPPort) + path }

// client opens a connection for each request: a daemon that was killed and started again must not be asked
// over one of before, and no idle connection's goroutine may be left when a test ends.
var client = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 5 * time.Second}

func httpGet(ctx context.Context, url string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	return client.Do(req)
}

// httpOK says whether a GET of the URL answers with 200.
func httpOK(ctx context.Context, url string) bool {
	resp, err := httpGet(ctx, url)
	if err != nil {
		return false
	}
	resp.Body.Close()
	return resp.StatusCode == http.StatusOK
}
