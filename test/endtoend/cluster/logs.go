// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
)

// logPath is the file that takes the output of a daemon.
func (c *Cluster) logPath(name string) string { return filepath.Join(c.dir, "log", name+".log") }

// LogDir holds the logs of all daemons, while the cluster runs.
func (c *Cluster) LogDir() string { return filepath.Join(c.dir, "log") }

// LogPaths are the log files of the tablet: vttablet's and mysqld's.
func (t *Tablet) LogPaths() []string {
	return []string{t.c.logPath("vttablet-" + t.Alias), t.c.logPath("mysqld-" + t.Alias)}
}

// GrepLogs returns the lines of the tablet's logs that match, each with its file's name before it.
func (t *Tablet) GrepLogs(re *regexp.Regexp) ([]string, error) { return grep(t.LogPaths(), re) }

// GrepLogs returns the lines of all logs of the cluster that match, each with its file's name before it.
func (c *Cluster) GrepLogs(re *regexp.Regexp) ([]string, error) {
	paths, err := filepath.Glob(filepath.Join(c.LogDir(), "*.log"))
	if err != nil {
		return nil, fmt.Errorf("cluster: %w", err)
	}
	return grep(paths, re)
}

func grep(paths []string, re *regexp.Regexp) ([]string, error) {
	var found []string
	for _, path := range paths {
		f, err := os.Open(path)
		if os.IsNotExist(err) {
			continue
		}
		if err != nil {
			return found, fmt.Errorf("cluster: %w", err)
		}
		scan := bufio.NewScanner(f)
		scan.Buffer(make([]byte, 1<<16), 1<<26)
		for n := 1; scan.Scan(); n++ {
			if re.Match(scan.Bytes()) {
				found = append(found, fmt.Sprintf("%s:%d: %s", filepath.Base(path), n, scan.Text()))
			}
		}
		err = scan.Err()
		f.Close()
		if err != nil {
			return found, fmt.Errorf("cluster: read %s: %w", path, err)
		}
	}
	return found, nil
}
