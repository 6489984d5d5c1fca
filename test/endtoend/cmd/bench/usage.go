// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/vttablet-ext/vttablet-ext/test/endtoend/cluster"
)

// usage measures what processes use during one vdiff, from /proc.
type usage struct {
	targets, sources, targetMySQL, sourceMySQL group
	idle, peak                                 int64 // resident bytes of the target vttablet that has most above its idle
	idles                                      []int64
}

// group is processes whose CPU time is added up.
type group struct {
	pids  []int
	start time.Duration
}

// newUsage finds the processes of the tablets and reads where they start from.
func newUsage(targets, sources []*cluster.Tablet) (*usage, error) {
	children, err := childProcesses()
	if err != nil {
		return nil, err
	}
	u := &usage{}
	for _, find := range []struct {
		group   *group
		tablets []*cluster.Tablet
		mark    func(*cluster.Tablet) string
	}{
		{&u.targets, targets, vttabletMark}, {&u.sources, sources, vttabletMark},
		{&u.targetMySQL, targets, mysqldMark}, {&u.sourceMySQL, sources, mysqldMark},
	} {
		for _, t := range find.tablets {
			pid, ok := childWith(children, find.mark(t))
			if !ok {
				return nil, fmt.Errorf("no process of tablet %s has %q in its command line", t.Alias, find.mark(t))
			}
			find.group.pids = append(find.group.pids, pid)
		}
		if find.group.start, err = find.group.cpu(); err != nil {
			return nil, err
		}
	}
	for _, pid := range u.targets.pids {
		rss, err := residentBytes(pid)
		if err != nil {
			return nil, err
		}
		u.idles = append(u.idles, rss)
	}
	return u, nil
}

func vttabletMark(t *cluster.Tablet) string { return "\x00--tablet-path\x00" + t.Alias + "\x00" }

func mysqldMark(t *cluster.Tablet) string {
	return "--defaults-file=" + filepath.Join(filepath.Dir(t.Socket()), "my.cnf") + "\x00"
}

// sample looks at the memory of the target vttablets. It is for one goroutine.
func (u *usage) sample() {
	for i, pid := range u.targets.pids {
		rss, err := residentBytes(pid)
		if err == nil && rss-u.idles[i] >= u.peak-u.idle {
			u.idle, u.peak = u.idles[i], rss
		}
	}
}

// since returns what was used since newUsage.
func (u *usage) since() (m Measurement, err error) {
	for _, out := range []struct {
		group group
		to    *Seconds
	}{{u.targets, &m.CPUTarget}, {u.sources, &m.CPUSource}, {u.targetMySQL, &m.CPUTargetMySQL}, {u.sourceMySQL, &m.CPUSourceMySQL}} {
		now, err := out.group.cpu()
		if err != nil {
			return m, err
		}
		*out.to = seconds(now - out.group.start)
	}
	m.IdleMB, m.PeakMB, m.OverIdleMB = megabytes(u.idle), megabytes(u.peak), megabytes(u.peak-u.idle)
	return m, nil
}

func megabytes(n int64) int64 { return (n + 1<<19) >> 20 }

func (g group) cpu() (time.Duration, error) {
	var sum time.Duration
	for _, pid := range g.pids {
		data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			return 0, err
		}
		cpu, err := cpuTime(data)
		if err != nil {
			return 0, fmt.Errorf("/proc/%d/stat: %w", pid, err)
		}
		sum += cpu
	}
	return sum, nil
}

// cpuTime is the time in user and system mode from a stat file. Linux shows it in hundredths of a second on every platform.
func cpuTime(stat []byte) (time.Duration, error) {
	// The name in parentheses may hold anything.
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if len(fields) < 13 {
		return 0, fmt.Errorf("only %d fields", len(fields))
	}
	var ticks int64
	for _, field := range fields[11:13] {
		n, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return 0, err
		}
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond, nil
}

// residentBytes is the memory of a process that is in RAM now.
func residentBytes(pid int) (int64, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		return 0, err
	}
	var size, resident int64
	if _, err := fmt.Sscan(string(data), &size, &resident); err != nil {
		return 0, fmt.Errorf("/proc/%d/statm: %w", pid, err)
	}
	return resident * int64(os.Getpagesize()), nil
}

// childProcesses are the command lines of the processes that this one started, by process id.
func childProcesses() (map[int]string, error) {
	paths, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return nil, err
	}
	children := map[int]string{}
	for _, path := range paths {
		stat, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended
		}
		fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
		if len(fields) < 2 || fields[1] != strconv.Itoa(os.Getpid()) {
			continue
		}
		dir := filepath.Dir(path)
		pid, err := strconv.Atoi(filepath.Base(dir))
		if err != nil {
			return nil, err
		}
		if line, err := os.ReadFile(filepath.Join(dir, "cmdline")); err == nil {
			children[pid] = string(line)
		}
	}
	return children, nil
}

func childWith(children map[int]string, mark string) (int, bool) {
	for pid, line := range children {
		if strings.Contains(line, mark) {
			return pid, true
		}
	}
	return 0, false
}
