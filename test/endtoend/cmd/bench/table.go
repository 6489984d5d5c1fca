// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"strings"
	"text/tabwriter"
)

// table shows all medians for people: two lines for each scenario.
func (r *Results) table() string {
	var out bytes.Buffer
	w := tabwriter.NewWriter(&out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, strings.Join([]string{
		"scenario", "engine", "s", "ratio", "gRPC MB", "view s source", "view s target", "stopped s", "longest", "stops",
		"CPU s vttablet target", "source", "mysqld target", "source", "MB over idle", "changes/s", "targets",
	}, "\t")+"\t")
	for _, s := range r.Scenarios {
		s.rows(w)
	}
	if err := w.Flush(); err != nil { // a bytes.Buffer takes everything
		return err.Error()
	}
	var lines []string
	for line := range strings.Lines(out.String()) {
		lines = append(lines, strings.TrimRight(line, " \n"))
	}
	return strings.Join(lines, "\n") + "\n"
}

func (r *Result) rows(w *tabwriter.Writer) {
	for _, e := range []struct {
		name string
		Engine
	}{{"stock", r.Stock}, {"plugin", r.Plugin}} {
		m, name, ratio, changes, targets := e.Median, r.Name, "", "", ""
		if e.name == "plugin" {
			name, ratio = "", fmt.Sprintf("%.2f", r.Ratio)
			var texts []string
			for _, t := range r.Targets {
				texts = append(texts, t.String())
			}
			targets = strings.Join(texts, ", ")
		}
		if m.ChangesPerSecond > 0 {
			changes = fmt.Sprint(m.ChangesPerSecond)
		}
		fmt.Fprintf(w, "%s\t%s\t%.2f\t%s\t%.3f\t%.1f\t%.1f\t%.2f\t%.2f\t%d\t%.2f\t%.2f\t%.2f\t%.2f\t%d\t%s\t%s\t\n",
			name, e.name, m.Seconds, ratio, float64(m.GRPCBytes)/1e6, m.ViewSource, m.ViewTarget, m.Stopped, m.LongestStop, m.Stops,
			m.CPUTarget, m.CPUSource, m.CPUTargetMySQL, m.CPUSourceMySQL, m.OverIdleMB, changes, targets)
	}
	if r.Floor > 0 {
		fmt.Fprintf(w, "\tfloor\t%.2f\t%s\n", r.Floor, strings.Repeat("\t", 14))
	}
}
