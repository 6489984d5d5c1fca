// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"os"
	"path/filepath"
)

const (
	// topoRoot is the path of the global topology in etcd, and of every cell below it.
	topoRoot = "/vitess/global"
	// maxSocketPath is what fits into the address of a unix socket on Linux, with its final zero.
	maxSocketPath = 107
)

// Options say where a cluster finds its programs and how its tablets run. The zero value is useful.
type Options struct {
	// Dir is the directory below which the cluster makes its own; os.TempDir() when empty.
	Dir string
	// BinDir holds etcd, vtctld, vtctldclient, mysqlctl, vttablet and vttablet-ext. When empty: the environment
	// variable VTTABLET_EXT_BIN, else build/bin of this repository.
	BinDir string
	// MySQLRoot has bin/mysqld. When empty: the environment variable VT_MYSQL_ROOT, else build/mysql of this
	// repository.
	MySQLRoot string
	// Cells of the topology; one called zone1 when empty.
	Cells []string
	// VTTabletFlags are passed to every vttablet, stock or not, after the flags of the harness.
	VTTabletFlags []string
	// ExtFlags are passed to vttablet-ext only: the stock vttablet does not know the flags of the plug-in.
	ExtFlags []string
	// MyCnf are lines for every my.cnf, after those of the harness.
	MyCnf []string
	// Logf tells what the cluster does; may be nil.
	Logf func(format string, args ...any)
	// LogDir is where the logs go when the cluster is closed as failed; build/logs of this repository when empty.
	LogDir string
	// Keep leaves the whole directory in place at Close, data included.
	Keep bool
	// StateFile makes the daemons survive this process, and is where they are written down for EndDetached.
	StateFile string
}

// withDefaults fills in what the caller left open and checks that the programs are there.
func (o Options) withDefaults() (Options, error) {
	build := ""
	if root, err := repositoryRoot(); err == nil {
		build = filepath.Join(root, "build")
	}
	if o.Dir == "" {
		o.Dir = os.TempDir()
	}
	// The longest socket path is that of mysqld, and mysqld adds .lock to it.
	if longest := filepath.Join(o.Dir, dirPrefix+"1234567890", tabletDir(1), "mysql.sock.lock"); len(longest) > maxSocketPath {
		o.Dir = "/tmp"
	}
	var err error
	if o.BinDir, err = locate(o.BinDir, "VTTABLET_EXT_BIN", build, "bin", "etcd"); err != nil {
		return o, err
	}
	if o.MySQLRoot, err = locate(o.MySQLRoot, "VT_MYSQL_ROOT", build, "mysql", "bin/mysqld"); err != nil {
		return o, err
	}
	if len(o.Cells) == 0 {
		o.Cells = []string{"zone1"}
	}
	if o.Logf == nil {
		o.Logf = func(string, ...any) {}
	}
	if o.LogDir == "" && build != "" {
		o.LogDir = filepath.Join(build, "logs")
	}
	return o, nil
}

// locate returns the first of: dir, the value of the environment variable, build/sub. It must hold probe.
func locate(dir, env, build, sub, probe string) (string, error) {
	switch {
	case dir != "":
	case os.Getenv(env) != "":
		dir = os.Getenv(env)
	case build != "":
		dir = filepath.Join(build, sub)
	default:
		return "", fmt.Errorf("cluster: %s is not set, and this is not run inside of the repository", env)
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("cluster: %w", err)
	}
	if _, err := os.Stat(filepath.Join(dir, probe)); err != nil {
		return "", fmt.Errorf("cluster: no %s in %s (run: make build): %w", probe, dir, err)
	}
	return dir, nil
}

// repositoryRoot is the nearest directory, from the working directory upwards, that has a go.mod.
func repositoryRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("cluster: %w", err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", fmt.Errorf("cluster: no go.mod above the working directory")
		}
		dir = parent
	}
}
