// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"runtime"
	"slices"
	"time"
)

// Seconds is a time with milliseconds.
type Seconds float64

func seconds(d time.Duration) Seconds { return Seconds(math.Round(d.Seconds()*1000) / 1000) }

// Results is what build/bench.json holds.
type Results struct {
	Started   string    `json:"started"`
	CPUs      int       `json:"cpus"`
	Load      string    `json:"load_average_at_start"`
	Runs      int       `json:"runs"`
	Scenarios []*Result `json:"scenarios"`
}

// Result is one scenario.
type Result struct {
	Name   string  `json:"name"`
	What   string  `json:"what"`
	Tables int     `json:"tables"`
	Rows   int64   `json:"rows"`
	Ratio  float64 `json:"ratio"` // stock time / plugin time, of the medians
	// Floor is the time of CHECKSUM TABLE on all mysqlds at once, where it was measured.
	Floor  Seconds `json:"floor_seconds,omitempty"`
	Stock  Engine  `json:"stock"`
	Plugin Engine  `json:"plugin"`
}

// Engine is one engine in one scenario.
type Engine struct {
	Median Measurement   `json:"median"` // of each number on its own
	Runs   []Measurement `json:"runs"`
}

// Measurement is one vdiff.
type Measurement struct {
	Seconds       Seconds `json:"seconds"`
	RowsPerSecond int64   `json:"rows_per_second"`
	// CPU seconds, all shards together.
	CPUTarget      Seconds `json:"cpu_target_vttablet"`
	CPUSource      Seconds `json:"cpu_source_vttablet"`
	CPUTargetMySQL Seconds `json:"cpu_target_mysqld"`
	CPUSourceMySQL Seconds `json:"cpu_source_mysqld"`
	// Stopped is how long at least one stream of the workflow was not Running, LongestStop the longest such time: sampled.
	Stopped     Seconds `json:"stopped_seconds_sampled"`
	LongestStop Seconds `json:"longest_stop_seconds_sampled"`
	// Resident memory of the target vttablet (of the one that grew most): before the vdiff, the most that was sampled, and the
	// difference.
	IdleMB     int64 `json:"rss_idle_mb"`
	PeakMB     int64 `json:"rss_peak_mb"`
	OverIdleMB int64 `json:"rss_over_idle_mb"`
}

func (m Measurement) String() string {
	return fmt.Sprintf("%.2f s, %d rows/s, CPU s of vttablet %.2f target %.2f source, of mysqld %.2f target %.2f source, streams stopped %.2f s (longest %.2f), memory %d MB over %d",
		m.Seconds, m.RowsPerSecond, m.CPUTarget, m.CPUSource, m.CPUTargetMySQL, m.CPUSourceMySQL, m.Stopped, m.LongestStop, m.OverIdleMB, m.IdleMB)
}

func newResults(cfg config) *Results {
	load, _ := os.ReadFile("/proc/loadavg") // an empty one says that it is not known
	return &Results{Started: time.Now().UTC().Format(time.RFC3339), CPUs: runtime.NumCPU(), Load: string(load), Runs: cfg.runs}
}

func (r *Results) write(path string) error {
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(text, '\n'), 0o644)
}

// summarize computes the medians and the ratio.
func (r *Result) summarize() {
	r.Stock.Median, r.Plugin.Median = medians(r.Stock.Runs), medians(r.Plugin.Runs)
	r.Ratio = math.Round(float64(r.Stock.Median.Seconds)/float64(r.Plugin.Median.Seconds)*100) / 100
}

// line is the line that the benchmark is there for.
func (r *Result) line() string {
	return fmt.Sprintf("BENCH %s stock=%.2f plugin=%.2f ratio=%.2f", r.Name, r.Stock.Median.Seconds, r.Plugin.Median.Seconds, r.Ratio)
}

// details are the medians of everything else.
func (r *Result) details() []string {
	lines := []string{
		fmt.Sprintf("%s: stock  median: %s", r.Name, r.Stock.Median),
		fmt.Sprintf("%s: plugin median: %s", r.Name, r.Plugin.Median),
	}
	if r.Floor > 0 {
		lines = append(lines, fmt.Sprintf("%s: floor (checksum table on all mysqlds at once): %.2f s", r.Name, r.Floor))
	}
	return lines
}

// medians takes the median of each number on its own.
func medians(runs []Measurement) Measurement {
	return Measurement{
		Seconds:        median(runs, func(m Measurement) Seconds { return m.Seconds }),
		RowsPerSecond:  median(runs, func(m Measurement) int64 { return m.RowsPerSecond }),
		CPUTarget:      median(runs, func(m Measurement) Seconds { return m.CPUTarget }),
		CPUSource:      median(runs, func(m Measurement) Seconds { return m.CPUSource }),
		CPUTargetMySQL: median(runs, func(m Measurement) Seconds { return m.CPUTargetMySQL }),
		CPUSourceMySQL: median(runs, func(m Measurement) Seconds { return m.CPUSourceMySQL }),
		Stopped:        median(runs, func(m Measurement) Seconds { return m.Stopped }),
		LongestStop:    median(runs, func(m Measurement) Seconds { return m.LongestStop }),
		IdleMB:         median(runs, func(m Measurement) int64 { return m.IdleMB }),
		PeakMB:         median(runs, func(m Measurement) int64 { return m.PeakMB }),
		OverIdleMB:     median(runs, func(m Measurement) int64 { return m.OverIdleMB }),
	}
}

// median is the middle value; of an even count, the mean of the two in the middle.
func median[N interface {
	cmp.Ordered
	~int64 | ~float64
}](runs []Measurement, of func(Measurement) N) N {
	values := make([]N, len(runs))
	for i, m := range runs {
		values[i] = of(m)
	}
	slices.Sort(values)
	middle := len(values) / 2
	if len(values)%2 == 1 {
		return values[middle]
	}
	return (values[middle-1] + values[middle]) / 2
}
