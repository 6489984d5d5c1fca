// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"vitess.io/vitess/go/vt/vtctl/workflow"
	"vitess.io/vitess/go/vt/vttablet/tabletmanager/vdiff"

	"github.com/vttablet-ext/vttablet-ext/test/endtoend/load"
)

// TestLine tests the line that scripts read, and that the ratio is the one of the medians.
func TestLine(t *testing.T) {
	f := func(stock, plugin []Seconds, want string) {
		t.Helper()
		r := &Result{Name: "big"}
		for _, s := range stock {
			r.Stock.Runs = append(r.Stock.Runs, Measurement{Seconds: s})
		}
		for _, s := range plugin {
			r.Plugin.Runs = append(r.Plugin.Runs, Measurement{Seconds: s})
		}
		r.summarize(limits{})
		require.Equal(t, want, r.line())
	}
	f([]Seconds{18}, []Seconds{4}, "BENCH big stock=18.00 plugin=4.00 ratio=4.50")
	f([]Seconds{90, 17, 18}, []Seconds{4, 1, 40}, "BENCH big stock=18.00 plugin=4.00 ratio=4.50")
	f([]Seconds{10, 20}, []Seconds{4, 6}, "BENCH big stock=15.00 plugin=5.00 ratio=3.00")
}

// TestCheckVerdict tests that only a completed vdiff with every row of every table equal passes.
func TestCheckVerdict(t *testing.T) {
	s := scenario{name: "x", rows: 5, tables: []load.Table{{Name: "a"}, {Name: "b"}}}
	good := func() *workflow.Summary {
		table := workflow.TableSummary{State: vdiff.CompletedState, RowsCompared: 5, MatchingRows: 5}
		return &workflow.Summary{State: vdiff.CompletedState, TableSummaryMap: map[string]workflow.TableSummary{"a": table, "b": table}}
	}
	require.NoError(t, checkVerdict(good(), s, 0))
	f := func(spoil func(*workflow.Summary, *workflow.TableSummary)) {
		t.Helper()
		summary := good()
		table := summary.TableSummaryMap["b"]
		summary.TableSummaryMap["b"] = workflow.TableSummary{}
		spoil(summary, &table)
		if _, ok := summary.TableSummaryMap["b"]; ok {
			summary.TableSummaryMap["b"] = table
		}
		require.Error(t, checkVerdict(summary, s, 0))
	}
	f(func(s *workflow.Summary, _ *workflow.TableSummary) { s.State = vdiff.ErrorState })
	f(func(s *workflow.Summary, _ *workflow.TableSummary) { s.HasMismatch = true })
	f(func(s *workflow.Summary, _ *workflow.TableSummary) { s.Errors = map[string]string{"0": "broken"} })
	f(func(s *workflow.Summary, _ *workflow.TableSummary) { delete(s.TableSummaryMap, "b") })
	f(func(_ *workflow.Summary, t *workflow.TableSummary) { t.MatchingRows = 4 })
	f(func(_ *workflow.Summary, t *workflow.TableSummary) { t.RowsCompared = 6 })
	f(func(_ *workflow.Summary, t *workflow.TableSummary) { t.MismatchedRows = 1 })
	f(func(_ *workflow.Summary, t *workflow.TableSummary) { t.ExtraRowsSource = 1 })
	f(func(_ *workflow.Summary, t *workflow.TableSummary) { t.ExtraRowsTarget = 1 })
	f(func(_ *workflow.Summary, t *workflow.TableSummary) { t.State = vdiff.StartedState })
}

// TestCheckVerdictOfChurn tests that rows which may be deleted may be missing, and no more.
func TestCheckVerdictOfChurn(t *testing.T) {
	s := scenario{name: "x", rows: 5, tables: []load.Table{{Name: "a"}}}
	f := func(rows int64, ok bool) {
		t.Helper()
		summary := &workflow.Summary{State: vdiff.CompletedState, TableSummaryMap: map[string]workflow.TableSummary{
			"a": {State: vdiff.CompletedState, RowsCompared: rows, MatchingRows: rows},
		}}
		require.Equal(t, ok, checkVerdict(summary, s, 2) == nil)
	}
	f(2, false)
	f(3, true)
	f(5, true)
	f(6, false)
}

// TestTargets tests that each limit is compared with the right number, and how it is shown.
func TestTargets(t *testing.T) {
	r := &Result{Name: "x", Floor: 2}
	r.Stock.Runs = []Measurement{{Seconds: 18}}
	r.Plugin.Runs = []Measurement{{Seconds: 4, OverIdleMB: 70, Stopped: 1}, {Seconds: 4, OverIdleMB: 70, Stopped: 3}}
	r.summarize(limits{ratio: 4.5, floors: 2, overIdleMB: 64, stopped: 2})
	var got []string
	for _, target := range r.Targets {
		got = append(got, target.String())
	}
	require.Equal(t, []string{
		"ratio 4.50 (>= 4.5): ok",
		"time/floor 2.00 (<= 2.0): ok",
		"MB over idle 70.00 (<= 64): below",
		"s stopped 3.00 (<= 2.0): below",
	}, got)
	r.summarize(limits{})
	require.Empty(t, r.Targets)
}

// TestTable tests that every line of the table for people has the columns of its header.
func TestTable(t *testing.T) {
	r := &Result{Name: "big", Floor: 2}
	r.Stock.Runs = []Measurement{{Seconds: 18, GRPCBytes: 5_000_000, Stops: 3}}
	r.Plugin.Runs = []Measurement{{Seconds: 4, ChangesPerSecond: 499}}
	r.summarize(limits{ratio: 5})
	lines := strings.Split(strings.TrimSpace((&Results{Scenarios: []*Result{r}}).table()), "\n")
	require.Len(t, lines, 4)
	require.Contains(t, lines[0], "gRPC MB")
	require.Contains(t, lines[1], "big   stock  18.00")
	require.Contains(t, lines[1], "5.000")
	require.Contains(t, lines[2], "ratio 4.50 (>= 5.0): below")
	require.Contains(t, lines[3], "floor   2.00")
}

// TestConfig tests that scenarios, runs and rows come from the environment, and that a slip in them is an error.
func TestConfig(t *testing.T) {
	f := func(scenarios, runs, rows string, want ...string) {
		t.Helper()
		t.Setenv("BENCH_SCENARIOS", scenarios)
		t.Setenv("BENCH_RUNS", runs)
		t.Setenv("BENCH_ROWS", rows)
		cfg, err := configFromEnv()
		if want == nil {
			require.Error(t, err)
			return
		}
		require.NoError(t, err)
		var names []string
		for _, s := range cfg.scenarios {
			names = append(names, s.name)
		}
		require.Equal(t, want, names)
	}
	f("", "", "", "big", "many", "shard", "merge", "wide", "busy", "stock-source")
	f("many, big", "1", "100", "big", "many")
	f("nosuch", "", "")
	f("big,nosuch", "", "")
	f("", "0", "")
	f("", "x", "")
	f("", "", "-5")
}

// TestProc tests on real processes that CPU time and memory are read from the right fields of /proc, and that a child is found.
func TestProc(t *testing.T) {
	before, err := group{pids: []int{os.Getpid()}}.cpu()
	require.NoError(t, err)
	for started, n := time.Now(), 0; time.Since(started) < 300*time.Millisecond; n++ {
		_ = n * n
	}
	after, err := group{pids: []int{os.Getpid()}}.cpu()
	require.NoError(t, err)
	require.Greater(t, after, before)
	require.Less(t, after, time.Hour)

	cpu, err := cpuTime([]byte("1 (a) b) S 2 3 4 5 6 7 8 9 10 11 150 50 14 15"))
	require.NoError(t, err)
	require.Equal(t, 2*time.Second, cpu)
	_, err = cpuTime([]byte("1 (a) S 2"))
	require.Error(t, err)

	rss, err := residentBytes(os.Getpid())
	require.NoError(t, err)
	require.Greater(t, rss, int64(1<<20))

	child := exec.CommandContext(t.Context(), "sleep", "60.125")
	require.NoError(t, child.Start())
	defer func() {
		_ = child.Process.Kill() // an error says that it has ended
		_ = child.Wait()
	}()
	children, err := childProcesses()
	require.NoError(t, err)
	pid, ok := childWith(children, "\x0060.125\x00")
	require.True(t, ok)
	require.Equal(t, child.Process.Pid, pid)
}

// TestRowsOf tests that the shards of a table have each row once.
func TestRowsOf(t *testing.T) {
	for _, rows := range []int64{1, 2, 7, 100} {
		require.Equal(t, rows, rowsOf("0", rows).Len())
		require.Equal(t, rows, rowsOf("-80", rows).Len()+rowsOf("80-", rows).Len())
	}
}
