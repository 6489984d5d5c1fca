// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"vitess.io/vitess/go/vt/vtctl/workflow"
	"vitess.io/vitess/go/vt/vttablet/tabletmanager/vdiff"
)

// TestCheckVerdict tests that only exactly the expected counts pass.
func TestCheckVerdict(t *testing.T) {
	all := tables(1000)
	require.Equal(t, int64(1000), total(all))
	want := map[string]counts{ordersTable: {compared: 701, matching: 698, mismatched: 1, extraSource: 1, extraTarget: 1}}
	summary := func(tampered bool) *workflow.Summary {
		s := &workflow.Summary{State: vdiff.CompletedState, HasMismatch: tampered, TableSummaryMap: map[string]workflow.TableSummary{}}
		for _, table := range all {
			s.TableSummaryMap[table.Name] = workflow.TableSummary{State: vdiff.CompletedState, RowsCompared: table.rows, MatchingRows: table.rows}
		}
		if tampered {
			s.TableSummaryMap[ordersTable] = workflow.TableSummary{
				State: vdiff.CompletedState, RowsCompared: 701, MatchingRows: 698, MismatchedRows: 1, ExtraRowsSource: 1, ExtraRowsTarget: 1,
			}
		}
		return s
	}
	require.NoError(t, checkSame(summary(false), all))
	require.NoError(t, checkVerdict(summary(true), all, want))
	require.Error(t, checkSame(summary(true), all))
	require.Error(t, checkVerdict(summary(false), all, want))

	f := func(spoil func(*workflow.Summary)) {
		t.Helper()
		s := summary(false)
		spoil(s)
		require.Error(t, checkSame(s, all))
	}
	f(func(s *workflow.Summary) { s.State = vdiff.StartedState })
	f(func(s *workflow.Summary) { s.HasMismatch = true })
	f(func(s *workflow.Summary) { s.Errors = map[string]string{"-80": "broken"} })
	f(func(s *workflow.Summary) { delete(s.TableSummaryMap, "events") })
	f(func(s *workflow.Summary) {
		events := s.TableSummaryMap["events"]
		events.MatchingRows--
		s.TableSummaryMap["events"] = events
	})
}

// TestMidway tests what counts as the middle of a table.
func TestMidway(t *testing.T) {
	f := func(c checkpoint, want bool) {
		t.Helper()
		require.Equal(t, want, c.midway(100))
	}
	f(checkpoint{}, false)
	f(checkpoint{state: "started", tableState: "started"}, false)
	f(checkpoint{state: "started", tableState: "started", tableRows: 1}, true)
	f(checkpoint{state: "started", tableState: "started", tableRows: 99}, true)
	f(checkpoint{state: "started", tableState: "started", tableRows: 100}, false)
	f(checkpoint{state: "started", tableState: "completed", tableRows: 99}, false)
	f(checkpoint{state: "error", tableState: "started", tableRows: 99}, false)
	f(checkpoint{state: "pending", tableState: "started", tableRows: 99}, false)
}

// TestPrinterInFile tests that output which is not a terminal is plain lines without colour, and that progress is rare.
func TestPrinterInFile(t *testing.T) {
	file, err := os.CreateTemp(t.TempDir(), "out")
	require.NoError(t, err)
	defer file.Close()
	p := newPrinter(file)
	p.step("do it")
	p.progress(1, 4, "rows") // too soon
	p.last = time.Now().Add(-time.Hour)
	p.progress(1234, 4936, "rows")
	p.good("it is %d", 1)
	p.stepDone()
	p.summary([]string{"found: nothing"})
	p.fail("no: %v", io.EOF)
	text, err := os.ReadFile(file.Name())
	require.NoError(t, err)
	require.NotContains(t, string(text), "\x1b")
	require.Equal(t, `
[1] do it
     25.0 %  1,234 of 4,936 rows
    ok it is 1

Summary
          0s  [1] do it
          0s  in all
    found: nothing

DONE every verdict was exactly as it must be

FAILED no: EOF
`, string(text))
}

// TestCount tests the commas.
func TestCount(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", 1234567: "1,234,567", -123: "-123", -123456: "-123,456"} {
		require.Equal(t, want, count(n))
	}
}

// TestRowText tests that the key comes first and that a long value is cut.
func TestRowText(t *testing.T) {
	require.Equal(t, "id=7 a=1 note=aaaaaaaaaaaaaaaaa...", rowText(map[string]string{"note": strings.Repeat("a", 50), "id": "7", "a": "1"}))
}
