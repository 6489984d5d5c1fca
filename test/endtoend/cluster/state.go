// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"
)

// stateLine is one line of the state file of a detached cluster: its directory (the first line), or a process.
type stateLine struct {
	Dir  string `json:"dir,omitempty"`
	Name string `json:"name,omitempty"`
	PID  int    `json:"pid,omitempty"`
	// Start and Boot tell this process from a later one that got the same id.
	Start string `json:"start,omitempty"`
	Boot  string `json:"boot,omitempty"`
}

// record appends a line to the state file, if there is one.
func (c *Cluster) record(line stateLine) error {
	if c.opts.StateFile == "" {
		return nil
	}
	data, err := json.Marshal(line)
	if err != nil {
		return fmt.Errorf("cluster: %w", err)
	}
	f, err := os.OpenFile(c.opts.StateFile, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return fmt.Errorf("cluster: %w", err)
	}
	if _, err := f.Write(append(data, '\n')); err != nil {
		f.Close()
		return fmt.Errorf("cluster: %w", err)
	}
	return f.Close()
}

func (c *Cluster) recordProcess(p *process) error {
	if c.opts.StateFile == "" {
		return nil
	}
	return c.record(stateLine{Name: p.name, PID: p.pid(), Start: startTime(p.pid()), Boot: bootID()})
}

// startTime is when the process started, in ticks since boot; empty when there is no such process (or only its corpse).
func startTime(pid int) string {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return ""
	}
	// The name in parentheses may hold anything; what follows it is fixed: state is the first field, start time the 20th.
	fields := strings.Fields(string(data[bytes.LastIndexByte(data, ')')+1:]))
	if len(fields) < 20 || fields[0] == "Z" || fields[0] == "X" {
		return ""
	}
	return fields[19]
}

func bootID() string {
	data, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(data))
}

func (l stateLine) running() bool {
	return l.PID > 0 && l.Start != "" && l.Boot == bootID() && startTime(l.PID) == l.Start
}

// readState returns the directories and processes of a state file, in the order in which they were written.
func readState(path string) ([]stateLine, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var lines []stateLine
	scan := bufio.NewScanner(bytes.NewReader(data))
	for scan.Scan() {
		var line stateLine
		if err := json.Unmarshal(scan.Bytes(), &line); err != nil {
			return nil, fmt.Errorf("cluster: state file %s: %w", path, err)
		}
		lines = append(lines, line)
	}
	return lines, scan.Err()
}

// DetachedRunning counts the daemons of a detached cluster that still run; zero when there is no state file.
func DetachedRunning(stateFile string) (int, error) {
	lines, err := readState(stateFile)
	if errors.Is(err, os.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	n := 0
	for _, line := range lines {
		if line.running() {
			n++
		}
	}
	return n, nil
}

// EndDetached ends every daemon in the state file by its process id, removes the cluster's directory and the
// state file. Tablets go first, then their mysqlds, then the rest, each kind at once; a daemon gets SIGTERM, and SIGKILL when
// it has not ended after a while. It is fine to call it for a cluster that is gone, or that came up only in part.
func EndDetached(ctx context.Context, stateFile string, logf func(format string, args ...any)) error {
	lines, err := readState(stateFile)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, kind := range []string{"vttablet-", "mysqld-", ""} {
		group, groupCtx := errgroup.WithContext(ctx)
		for _, line := range lines {
			if !strings.HasPrefix(line.Name, kind) || !line.running() {
				continue
			}
			logf("ending %s (pid %d)", line.Name, line.PID)
			group.Go(func() error {
				if err := endByPID(groupCtx, line); err != nil {
					return fmt.Errorf("cluster: end %s (pid %d): %w", line.Name, line.PID, err)
				}
				return nil
			})
		}
		if err := group.Wait(); err != nil {
			return err
		}
	}
	for _, line := range lines {
		if line.Dir == "" {
			continue
		}
		logf("removing %s", line.Dir)
		if err := os.RemoveAll(line.Dir); err != nil {
			return fmt.Errorf("cluster: %w", err)
		}
	}
	return os.Remove(stateFile)
}

// endByPID ends the process of a line and waits until it is gone.
func endByPID(ctx context.Context, line stateLine) error {
	for _, step := range []struct {
		signal  syscall.Signal
		timeout time.Duration
	}{{syscall.SIGTERM, 15 * time.Second}, {syscall.SIGKILL, 30 * time.Second}} {
		if err := syscall.Kill(line.PID, step.signal); err != nil && !errors.Is(err, syscall.ESRCH) {
			return err
		}
		stepCtx, cancel := context.WithTimeout(ctx, step.timeout)
		err := WaitFor(stepCtx, "its end", 20*time.Millisecond, func(context.Context) (bool, error) { return !line.running(), nil })
		cancel()
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return err
		}
	}
	return errors.New("it does not end, not even on SIGKILL")
}
