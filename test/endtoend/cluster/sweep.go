// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

// dirPrefix begins the name of every cluster's directory.
const dirPrefix = "vtext-"

// ownerFile, in a cluster's directory, names the process that will remove it. A directory that is meant to stay (a
// detached cluster, Options.Keep) has none.
const ownerFile = "owner"

// claim writes the owner file.
func (c *Cluster) claim() error {
	if c.opts.StateFile != "" || c.opts.Keep {
		return nil
	}
	data, err := json.Marshal(stateLine{PID: os.Getpid(), Start: startTime(os.Getpid()), Boot: bootID()})
	if err != nil {
		return fmt.Errorf("cluster: %w", err)
	}
	if err := os.WriteFile(filepath.Join(c.dir, ownerFile), data, 0o600); err != nil {
		return fmt.Errorf("cluster: %w", err)
	}
	return nil
}

// sweep removes the directories of clusters whose process was killed. The kernel has killed their daemons, but
// nobody was left to remove the data. What cannot be removed (another user's) is not this user's business.
func sweep(dir string, logf func(format string, args ...any)) {
	owners, _ := filepath.Glob(filepath.Join(dir, dirPrefix+"*", ownerFile)) // the pattern is well formed
	for _, path := range owners {
		data, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		var owner stateLine
		if json.Unmarshal(data, &owner) != nil || owner.PID == 0 || owner.running() {
			continue
		}
		if os.RemoveAll(filepath.Dir(path)) == nil {
			logf("removed %s, left by a process that was killed", filepath.Dir(path))
		}
	}
}
