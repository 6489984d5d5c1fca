// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"

	"vitess.io/vitess/go/vt/vtctl/workflow"
	"vitess.io/vitess/go/vt/vttablet/tabletmanager/vdiff"
)

// counts is the verdict on one table.
type counts struct {
	compared, matching, mismatched, extraSource, extraTarget int64
}

func countsOf(t workflow.TableSummary) counts {
	return counts{t.RowsCompared, t.MatchingRows, t.MismatchedRows, t.ExtraRowsSource, t.ExtraRowsTarget}
}

func (c counts) String() string {
	return fmt.Sprintf("%s compared, %s equal, %d mismatched, %d extra on the source, %d extra on the target",
		count(c.compared), count(c.matching), c.mismatched, c.extraSource, c.extraTarget)
}

// checkSame returns an error unless every row of every table was compared once and is equal.
func checkSame(s *workflow.Summary, tables []table) error {
	return checkVerdict(s, tables, map[string]counts{})
}

// checkVerdict returns an error unless the vdiff is completed with exactly these counts. A table that want does not name must
// have nothing but equal rows.
func checkVerdict(s *workflow.Summary, tables []table, want map[string]counts) error {
	if s.State != vdiff.CompletedState || len(s.Errors) > 0 {
		return fmt.Errorf("vdiff %s is %s, errors %v", s.UUID, s.State, s.Errors)
	}
	if s.HasMismatch != (len(want) > 0) {
		return fmt.Errorf("vdiff %s says of itself that it has a mismatch: %v", s.UUID, s.HasMismatch)
	}
	if len(s.TableSummaryMap) != len(tables) {
		return fmt.Errorf("vdiff %s has %d tables of %d", s.UUID, len(s.TableSummaryMap), len(tables))
	}
	for _, t := range tables {
		expected, ok := want[t.Name]
		if !ok {
			expected = counts{compared: t.rows, matching: t.rows}
		}
		got, ok := s.TableSummaryMap[t.Name]
		if !ok || got.State != vdiff.CompletedState || countsOf(got) != expected {
			return fmt.Errorf("vdiff %s: table %s is %s: %v; it must be: %v", s.UUID, t.Name, got.State, countsOf(got), expected)
		}
	}
	return nil
}

// showTables prints the verdict on each table.
func (d *demo) showTables(s *workflow.Summary) {
	for _, t := range d.tables {
		d.out.say("%-6s %v", t.Name, countsOf(s.TableSummaryMap[t.Name]))
	}
}
