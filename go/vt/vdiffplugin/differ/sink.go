// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package differ

import (
	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/report"
	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/rowdiff"
	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/scan"

	querypb "vitess.io/vitess/go/vt/proto/query"
)

// sink hands the verdicts of a comparison to the report.
type sink struct {
	report *report.Builder
	source []*querypb.Field
	target []*querypb.Field
}

var _ rowdiff.Sink = (*sink)(nil)

func newSink(j *job, vs *views) *sink {
	return &sink{report: j.report, source: vs.sources[0].Fields(), target: vs.target.Fields()}
}

// Match is part of rowdiff.Sink.
func (s *sink) Match() { s.report.AddMatching(1) }

// Mismatch is part of rowdiff.Sink.
func (s *sink) Mismatch(source, target scan.Row) error {
	s.report.AddMismatch(sqlRow(source, s.source), sqlRow(target, s.target))
	return nil
}

// ExtraSource is part of rowdiff.Sink.
func (s *sink) ExtraSource(row scan.Row) error {
	s.report.AddExtraSource(sqlRow(row, s.source))
	return nil
}

// ExtraTarget is part of rowdiff.Sink.
func (s *sink) ExtraTarget(row scan.Row) error {
	s.report.AddExtraTarget(sqlRow(row, s.target))
	return nil
}
