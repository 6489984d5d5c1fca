// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Cluster is a running cluster. All methods may be called from any goroutine, unless they say otherwise.
type Cluster struct {
	opts      Options
	dir       string
	binDir    string
	mysqlRoot string
	cred      *syscall.Credential
	launcher  *launcher

	etcdPort, etcdPeerPort     int
	vtctldHTTP, vtctldGRPCPort int

	templateMu  sync.Mutex // held while the template is made: every tablet waits for it
	templateDir string

	mu        sync.Mutex
	processes map[*process]bool // all that were ever started
	ports     map[int]bool
	tablets   map[string]*Tablet // by alias
	order     []*Tablet
	primaries map[string]string // keyspace/shard -> alias
	nextUID   int
	failed    bool
	closed    bool
}

// New starts a cluster without tablets: etcd, vtctld, the cells. Close ends it; after an error nothing is left.
func New(ctx context.Context, opts Options) (*Cluster, error) {
	opts, err := opts.withDefaults()
	if err != nil {
		return nil, err
	}
	sweep(opts.Dir, opts.Logf)
	dir, err := os.MkdirTemp(opts.Dir, dirPrefix)
	if err != nil {
		return nil, fmt.Errorf("cluster: %w", err)
	}
	c := &Cluster{
		opts:      opts,
		dir:       dir,
		cred:      unprivileged(),
		launcher:  newLauncher(),
		processes: map[*process]bool{},
		ports:     map[int]bool{},
		tablets:   map[string]*Tablet{},
		primaries: map[string]string{},
		nextUID:   100,
	}
	if err := c.start(ctx); err != nil {
		c.Fail()
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

func (c *Cluster) start(ctx context.Context) error {
	if err := c.record(stateLine{Dir: c.dir}); err != nil {
		return err
	}
	if err := c.claim(); err != nil {
		return err
	}
	if err := c.own(c.dir); err != nil {
		return fmt.Errorf("cluster: %w", err)
	}
	if _, err := c.mkdir("log"); err != nil {
		return err
	}
	var err error
	if c.binDir, err = c.stage(c.opts.BinDir, "bin", "etcd"); err != nil {
		return err
	}
	if c.mysqlRoot, err = c.stage(c.opts.MySQLRoot, "mysql", "bin/mysqld"); err != nil {
		return err
	}
	if err := c.writeExtraCnf(); err != nil {
		return err
	}
	if err := c.startEtcd(ctx); err != nil {
		return err
	}
	return c.startVtctld(ctx)
}

func (c *Cluster) startEtcd(ctx context.Context) error {
	data, err := c.mkdir("etcd")
	if err != nil {
		return err
	}
	start := func() (*process, error) {
		client, peer := "http://"+addr(c.etcdPort), "http://"+addr(c.etcdPeerPort)
		return c.spawn("etcd", nil, filepath.Join(c.binDir, "etcd"),
			"--name", "default",
			"--data-dir", data,
			"--listen-client-urls", client,
			"--advertise-client-urls", client,
			"--listen-peer-urls", peer,
			"--initial-advertise-peer-urls", peer,
			"--initial-cluster", "default="+peer,
			"--unsafe-no-fsync",
			"--log-level", "warn",
		)
	}
	_, err = c.launchWithPorts(ctx, []*int{&c.etcdPort, &c.etcdPeerPort}, start, func(ctx context.Context) bool {
		return httpOK(ctx, "http://"+addr(c.etcdPort)+"/health")
	})
	return err
}

func (c *Cluster) startVtctld(ctx context.Context) error {
	start := func() (*process, error) {
		args := append([]string{filepath.Join(c.binDir, "vtctld")}, c.topoFlags()...)
		return c.spawn("vtctld", nil, append(args,
			"--service-map", "grpc-vtctl,grpc-vtctld",
			"--port", strconv.Itoa(c.vtctldHTTP),
			"--grpc-port", strconv.Itoa(c.vtctldGRPCPort),
			"--bind-address", localhost,
			"--grpc-bind-address", localhost,
			"--log-format", "text",
		)...)
	}
	_, err := c.launchWithPorts(ctx, []*int{&c.vtctldHTTP, &c.vtctldGRPCPort}, start, func(ctx context.Context) bool {
		return httpOK(ctx, "http://"+addr(c.vtctldHTTP)+"/debug/vars") && listening(ctx, c.vtctldGRPCPort)
	})
	if err != nil {
		return err
	}
	for _, cell := range c.opts.Cells {
		if _, err := c.Vtctl(ctx, "AddCellInfo", "--root", "/vitess/"+cell, "--server-address", addr(c.etcdPort), cell); err != nil {
			return err
		}
	}
	return nil
}

// topoFlags tell a Vitess daemon where the topology is. A lock of a killed daemon lasts for its lease: ten seconds
// keep tests that kill short.
func (c *Cluster) topoFlags() []string {
	return []string{
		"--topo-implementation", "etcd2",
		"--topo-global-server-address", addr(c.etcdPort),
		"--topo-global-root", topoRoot,
		"--topo-etcd-lease-ttl", "10",
	}
}

// Dir is the directory of the cluster; its VTDATAROOT.
func (c *Cluster) Dir() string { return c.dir }

// BinDir holds the programs as the daemons run them.
func (c *Cluster) BinDir() string { return c.binDir }

// MySQLRoot is VT_MYSQL_ROOT as the daemons see it.
func (c *Cluster) MySQLRoot() string { return c.mysqlRoot }

// VtctldAddr is the gRPC address of vtctld.
func (c *Cluster) VtctldAddr() string { return addr(c.vtctldGRPCPort) }

// EtcdAddr is the client address of etcd: with TopoRoot, what another cluster needs to mount this one.
func (c *Cluster) EtcdAddr() string { return addr(c.etcdPort) }

// TopoRoot is the path of the global topology in etcd.
func (c *Cluster) TopoRoot() string { return topoRoot }

// Cells are the cells of the topology.
func (c *Cluster) Cells() []string { return append([]string(nil), c.opts.Cells...) }

// Tablets are all tablets in the order in which they were added.
func (c *Cluster) Tablets() []*Tablet {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]*Tablet(nil), c.order...)
}

// Tablet returns the tablet with this alias, or nil.
func (c *Cluster) Tablet(alias string) *Tablet {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.tablets[alias]
}

// Shard returns the tablets of a shard; its first primary comes first.
func (c *Cluster) Shard(keyspace, shard string) []*Tablet {
	var tablets []*Tablet
	for _, t := range c.Tablets() {
		if t.Keyspace == keyspace && t.Shard == shard {
			tablets = append(tablets, t)
		}
	}
	return tablets
}

// Primary returns the primary of a shard as of the last reparent that went through this Cluster, or nil.
func (c *Cluster) Primary(keyspace, shard string) *Tablet {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.tablets[c.primaries[keyspace+"/"+shard]]
}

// Vtctl runs vtctldclient and returns what it wrote to stdout, also together with an error. The error holds stderr.
func (c *Cluster) Vtctl(ctx context.Context, args ...string) (string, error) {
	out, err := c.vtctl(ctx, args...)
	if err != nil || len(args) == 0 || !strings.HasSuffix(args[0], "ReparentShard") {
		return out, err
	}
	for _, arg := range args[1:] {
		if keyspace, shard, ok := strings.Cut(arg, "/"); ok && len(c.Shard(keyspace, shard)) > 0 {
			return out, c.refreshPrimary(ctx, arg)
		}
	}
	return out, nil
}

func (c *Cluster) vtctl(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, filepath.Join(c.opts.BinDir, "vtctldclient"), append([]string{"--server", c.VtctldAddr(), "--log-format", "text"}, args...)...)
	cmd.Env = append(os.Environ(), "HOME="+c.dir, "TMPDIR="+c.dir)
	cmd.WaitDelay = 5 * time.Second
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return stdout.String(), fmt.Errorf("vtctldclient %s: %w\n%s", strings.Join(args, " "), err, tail(stderr.Bytes(), 20))
	}
	return stdout.String(), nil
}

// Reparent makes a tablet the primary of its shard with PlannedReparentShard.
func (c *Cluster) Reparent(ctx context.Context, keyspace, shard, newPrimary string) error {
	_, err := c.vtctl(ctx, "PlannedReparentShard", keyspace+"/"+shard, "--new-primary", newPrimary, "--wait-replicas-timeout", "30s")
	if err == nil {
		c.setPrimary(keyspace+"/"+shard, newPrimary)
	}
	return err
}

func (c *Cluster) setPrimary(shard, alias string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.primaries[shard] = alias
}

// refreshPrimary reads from the topology which tablet is the primary of a shard.
func (c *Cluster) refreshPrimary(ctx context.Context, shard string) error {
	out, err := c.vtctl(ctx, "GetShard", shard)
	if err != nil {
		return err
	}
	var record struct {
		Shard struct {
			PrimaryAlias *struct {
				Cell string
				UID  int
			} `json:"primary_alias"`
		}
	}
	if err := json.Unmarshal([]byte(out), &record); err != nil {
		return fmt.Errorf("cluster: GetShard %s: %w", shard, err)
	}
	if alias := record.Shard.PrimaryAlias; alias != nil {
		c.setPrimary(shard, tabletAlias(alias.Cell, alias.UID))
	}
	return nil
}

// Fail makes Close keep the logs.
func (c *Cluster) Fail() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failed = true
}

// Detach leaves the daemons running; only for a cluster with a state file. Nothing but that file may be used then.
func (c *Cluster) Detach() error {
	if c.opts.StateFile == "" {
		return errors.New("cluster: only a cluster with a state file can be detached")
	}
	c.launcher.close()
	return nil
}

// Close kills every daemon, waits for its end and removes the directory. After Fail the logs are moved to
// Options.LogDir, and where they are is logged. The cluster must not be used during or after Close.
func (c *Cluster) Close() error {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return nil
	}
	c.closed = true
	processes := make([]*process, 0, len(c.processes))
	for p := range c.processes {
		processes = append(processes, p)
	}
	failed := c.failed
	c.mu.Unlock()
	for _, p := range processes {
		_ = p.cmd.Process.Kill() // an error says that it has ended already
	}
	for _, p := range processes {
		<-p.done
	}
	c.launcher.close()

	var errs []error
	if failed && !c.opts.Keep {
		kept, err := c.keepLogs()
		if err != nil {
			c.opts.Logf("the logs could not be moved (%v); the cluster's directory is left: %s", err, c.dir)
			return fmt.Errorf("cluster: keep logs: %w", err)
		}
		c.opts.Logf("the logs of the failed cluster: %s", kept)
	}
	if c.opts.Keep {
		c.opts.Logf("the cluster's directory is kept: %s", c.dir)
	} else {
		errs = append(errs, os.RemoveAll(c.dir))
	}
	if c.opts.StateFile != "" {
		errs = append(errs, os.Remove(c.opts.StateFile))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("cluster: close: %w", err)
	}
	return nil
}

// keepLogs copies the logs to where they outlive the cluster.
func (c *Cluster) keepLogs() (string, error) {
	if c.opts.LogDir == "" {
		return "", errors.New("no directory for logs is known")
	}
	kept := filepath.Join(c.opts.LogDir, filepath.Base(c.dir))
	if err := os.MkdirAll(c.opts.LogDir, 0o755); err != nil {
		return "", err
	}
	return kept, copyTree(c.LogDir(), kept, false, func(string) error { return nil })
}

// listening says whether something accepts connections on the port.
func listening(ctx context.Context, port int) bool {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", addr(port))
	if err != nil {
		return false
	}
	return conn.Close() == nil
}
