// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package main

import "fmt"

// limits are what a scenario is meant to reach; zero is no limit. They hold for the default number of rows. A limit that is
// missed is shown and does not fail the benchmark: on a busy machine times say little.
type limits struct {
	ratio      float64 // of the medians, at least
	floors     float64 // time of the plug-in as a multiple of the floor, at most
	overIdleMB int64   // memory of the target vttablet over idle, at most
	stopped    Seconds // how long the workflow stands in all, in the worst run, at most
}

// Target is one limit and whether it was kept.
type Target struct {
	What  string  `json:"what"`
	Value float64 `json:"value"`
	Limit string  `json:"limit"`
	OK    bool    `json:"ok"`
}

func (t Target) String() string {
	verdict := "ok"
	if !t.OK {
		verdict = "below"
	}
	return fmt.Sprintf("%s %.2f (%s): %s", t.What, t.Value, t.Limit, verdict)
}

// targets compares a summarized result with its limits.
func (l limits) targets(r *Result) []Target {
	var targets []Target
	add := func(what string, value float64, limit string, ok bool) {
		targets = append(targets, Target{What: what, Value: value, Limit: limit, OK: ok})
	}
	if l.ratio > 0 {
		add("ratio", r.Ratio, fmt.Sprintf(">= %.1f", l.ratio), r.Ratio >= l.ratio)
	}
	if l.floors > 0 && r.Floor > 0 {
		floors := float64(r.Plugin.Median.Seconds / r.Floor)
		add("time/floor", floors, fmt.Sprintf("<= %.1f", l.floors), floors <= l.floors)
	}
	if l.overIdleMB > 0 {
		over := r.Plugin.Median.OverIdleMB
		add("MB over idle", float64(over), fmt.Sprintf("<= %d", l.overIdleMB), over <= l.overIdleMB)
	}
	if l.stopped > 0 {
		worst := Seconds(0)
		for _, m := range r.Plugin.Runs {
			worst = max(worst, m.Stopped)
		}
		add("s stopped", float64(worst), fmt.Sprintf("<= %.1f", l.stopped), worst <= l.stopped)
	}
	return targets
}
