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
	// Targets are the limits that the scenario is meant to keep.
	Targets []Target `json:"targets,omitempty"`
	// Floor is the median time of CHECKSUM TABLE on all mysqlds at once, where it was measured.
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
	// Stopped is how long at least one stream of the workflow was not Running, LongestStop the longest such time, Stops their
	// number, which is that of the fences unless two overlap: sampled.
	Stopped     Seconds `json:"stopped_seconds_sampled"`
	LongestStop Seconds `json:"longest_stop_seconds_sampled"`
	Stops       int64   `json:"stops_sampled"`
	// ViewSource and ViewTarget are the ages that the oldest transaction reached on the mysqlds of each side: sampled.
	ViewSource Seconds `json:"longest_read_view_source_seconds_sampled"`
	ViewTarget Seconds `json:"longest_read_view_target_seconds_sampled"`
	// GRPCBytes is the payload of all TCP connections to the gRPC ports of the tablets, both ways (see traffic).
	GRPCBytes int64 `json:"grpc_bytes"`
	// ChangesPerSecond is the rate of row changes that was reached on the source meanwhile.
	ChangesPerSecond int64 `json:"row_changes_per_second,omitempty"`
	// Resident memory of the target vttablet (of the one that grew most): before the vdiff, the most that was sampled, and the
	// difference.
	IdleMB     int64 `json:"rss_idle_mb"`
	PeakMB     int64 `json:"rss_peak_mb"`
	OverIdleMB int64 `json:"rss_over_idle_mb"`
}

func (m Measurement) String() string {
	text := fmt.Sprintf("%.2f s, %d rows/s, %.3f MB over gRPC, CPU s of vttablet %.2f target %.2f source, of mysqld %.2f target %.2f source, streams stopped %d times for %.2f s (longest %.2f), read views %.1f s source %.1f s target, memory %d MB over %d",
		m.Seconds, m.RowsPerSecond, float64(m.GRPCBytes)/1e6, m.CPUTarget, m.CPUSource, m.CPUTargetMySQL, m.CPUSourceMySQL, m.Stops, m.Stopped, m.LongestStop, m.ViewSource, m.ViewTarget, m.OverIdleMB, m.IdleMB)
	if m.ChangesPerSecond > 0 {
		text += fmt.Sprintf(", %d row changes/s", m.ChangesPerSecond)
	}
	return text
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

// writeTable writes the table for people.
func (r *Results) writeTable(path string) error {
	return os.WriteFile(path, []byte(r.table()), 0o644)
}

// summarize computes the medians, the ratio and whether the limits are kept.
func (r *Result) summarize(l limits) {
	r.Stock.Median, r.Plugin.Median = medians(r.Stock.Runs), medians(r.Plugin.Runs)
	r.Ratio = math.Round(float64(r.Stock.Median.Seconds)/float64(r.Plugin.Median.Seconds)*100) / 100
	r.Targets = l.targets(r)
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
	for _, t := range r.Targets {
		lines = append(lines, fmt.Sprintf("%s: target: %s", r.Name, t))
	}
	return lines
}

// medians takes the median of each number on its own.
func medians(runs []Measurement) Measurement {
	return Measurement{
		Seconds:          median(runs, func(m Measurement) Seconds { return m.Seconds }),
		RowsPerSecond:    median(runs, func(m Measurement) int64 { return m.RowsPerSecond }),
		CPUTarget:        median(runs, func(m Measurement) Seconds { return m.CPUTarget }),
		CPUSource:        median(runs, func(m Measurement) Seconds { return m.CPUSource }),
		CPUTargetMySQL:   median(runs, func(m Measurement) Seconds { return m.CPUTargetMySQL }),
		CPUSourceMySQL:   median(runs, func(m Measurement) Seconds { return m.CPUSourceMySQL }),
		Stopped:          median(runs, func(m Measurement) Seconds { return m.Stopped }),
		LongestStop:      median(runs, func(m Measurement) Seconds { return m.LongestStop }),
		Stops:            median(runs, func(m Measurement) int64 { return m.Stops }),
		ViewSource:       median(runs, func(m Measurement) Seconds { return m.ViewSource }),
		ViewTarget:       median(runs, func(m Measurement) Seconds { return m.ViewTarget }),
		GRPCBytes:        median(runs, func(m Measurement) int64 { return m.GRPCBytes }),
		ChangesPerSecond: median(runs, func(m Measurement) int64 { return m.ChangesPerSecond }),
		IdleMB:           median(runs, func(m Measurement) int64 { return m.IdleMB }),
		PeakMB:           median(runs, func(m Measurement) int64 { return m.PeakMB }),
		OverIdleMB:       median(runs, func(m Measurement) int64 { return m.OverIdleMB }),
	}
}

// median is the middle value; of an even count, the mean of the two in the middle.
func median[E any, N interface {
	cmp.Ordered
	~int64 | ~float64
}](runs []E, of func(E) N) N {
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
