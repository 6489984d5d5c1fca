// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package report

import (
	"slices"

	"vitess.io/vitess/go/sqltypes"
	"vitess.io/vitess/go/vt/vttablet/tabletmanager/vdiff"

	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/plan"
)

const (
	// overhead is kept free for everything in the JSON that is not a sample.
	overhead = 1 << 10
	// A value takes at most a sixty-fourth of the report, so that a few rows with huge values are all
	// shown; where even that is too much for the room that is left, smallValue bytes.
	valueShare = 64
	smallValue = 128
)

// Builder counts the rows of one table and keeps samples. Rows have the columns of plan.Table.Columns
// in their order; a Builder keeps no reference to them. It is not safe for concurrent use.
type Builder struct {
	table   *plan.Table
	options Options
	report  Report
	isKey   []bool
	// Bytes of the samples of each kind, commas included, and how many each kind may have.
	mismatched, extraSource, extraTarget budget
}

// budget is the room for one kind of sample. Once a sample did not fit it is full, so that millions of
// rows that differ do not each make a sample in vain.
type budget struct {
	used, max int
	full      bool
}

// NewBuilder returns a Builder that goes on from prior, nil for a table that is compared from its
// first row.
func NewBuilder(t *plan.Table, prior *Report, options Options) *Builder {
	b := &Builder{table: t, options: options, isKey: make([]bool, len(t.Columns))}
	for _, i := range t.Key {
		b.isKey[i] = true
	}
	if prior != nil {
		b.report = *prior
		b.report.MismatchedRowsDiffs = slices.Clone(prior.MismatchedRowsDiffs)
		b.report.ExtraRowsSourceDiffs = slices.Clone(prior.ExtraRowsSourceDiffs)
		b.report.ExtraRowsTargetDiffs = slices.Clone(prior.ExtraRowsTargetDiffs)
		b.report.Checkpoint = nil // it is the one of a moment before
	}
	b.report.TableName, b.report.Plan = t.Name, t.Fingerprint

	// Each kind has a share of its own, so that thousands of one kind do not hide another.
	room := max(options.maxBytes()-overhead, 0)
	b.mismatched = budget{used: used(b.report.MismatchedRowsDiffs), max: room / 2}
	b.extraSource = budget{used: used(b.report.ExtraRowsSourceDiffs), max: room / 4}
	b.extraTarget = budget{used: used(b.report.ExtraRowsTargetDiffs), max: room / 4}
	return b
}

func used[T any](samples []*T) int {
	return sum(sizes(samples)) + len(samples)
}

// AddMatching counts n rows that are equal on both sides.
func (b *Builder) AddMatching(n int64) {
	b.report.ProcessedRows += n
	b.report.MatchingRows += n
}

// AddMismatch counts a row that is there on both sides and differs.
func (b *Builder) AddMismatch(source, target []sqltypes.Value) {
	b.report.ProcessedRows++
	b.report.MismatchedRows++
	if int64(len(b.report.MismatchedRowsDiffs)) >= b.options.MaxMismatched {
		return
	}
	keep(b, &b.report.MismatchedRowsDiffs, &b.mismatched, func(maxValue int) (*vdiff.DiffMismatch, bool) {
		skips := b.skips(source, target, maxValue)
		s, cutSource := b.sample(sourceSide, source, skips, maxValue)
		t, cutTarget := b.sample(targetSide, target, skips, maxValue)
		t.Query += b.repair(source, target, maxValue)
		return &vdiff.DiffMismatch{Source: s, Target: t}, cutSource || cutTarget
	})
}

// AddExtraSource counts a row that is there on the source only.
func (b *Builder) AddExtraSource(row []sqltypes.Value) {
	b.report.ProcessedRows++
	b.report.ExtraRowsSource++
	if int64(len(b.report.ExtraRowsSourceDiffs)) >= b.options.MaxExtraSource {
		return
	}
	keep(b, &b.report.ExtraRowsSourceDiffs, &b.extraSource, func(maxValue int) (*vdiff.RowDiff, bool) {
		sample, cut := b.sample(sourceSide, row, nil, maxValue)
		sample.Query += b.repair(row, nil, maxValue)
		return sample, cut
	})
}

// AddExtraTarget counts a row that is there on the target only.
func (b *Builder) AddExtraTarget(row []sqltypes.Value) {
	b.report.ProcessedRows++
	b.report.ExtraRowsTarget++
	if int64(len(b.report.ExtraRowsTargetDiffs)) >= b.options.MaxExtraTarget {
		return
	}
	keep(b, &b.report.ExtraRowsTargetDiffs, &b.extraTarget, func(maxValue int) (*vdiff.RowDiff, bool) {
		sample, cut := b.sample(targetSide, row, nil, maxValue)
		sample.Query += b.repair(nil, row, maxValue)
		return sample, cut
	})
}

// keep adds the sample that make returns, when it fits into the budget of its kind with values of the
// one or the other size. make says whether it had to cut a value to that size.
func keep[T any](b *Builder, samples *[]*T, budget *budget, make func(maxValue int) (*T, bool)) {
	if budget.full {
		b.report.Truncated = true
		return
	}
	for _, maxValue := range []int{max(b.options.maxBytes()/valueShare, smallValue), smallValue} {
		sample, cut := make(maxValue)
		bytes := size(sample) + 1
		if budget.used+bytes > budget.max {
			continue
		}
		budget.used += bytes
		*samples = append(*samples, sample)
		b.report.Truncated = b.report.Truncated || cut
		return
	}
	b.report.Truncated, budget.full = true, true
}

// Report returns the report as it is now. It is a snapshot: rows added later do not change it. Its
// samples must not be changed.
func (b *Builder) Report() *Report {
	snapshot := b.report
	snapshot.MismatchedRowsDiffs = slices.Clip(snapshot.MismatchedRowsDiffs)
	snapshot.ExtraRowsSourceDiffs = slices.Clip(snapshot.ExtraRowsSourceDiffs)
	snapshot.ExtraRowsTargetDiffs = slices.Clip(snapshot.ExtraRowsTargetDiffs)
	return &snapshot
}

// MarshalCheckpoint returns the JSON of the report with matching more rows and a checkpoint, within the options' MaxBytes.
// The report itself is not changed.
func (b *Builder) MarshalCheckpoint(matching int64, checkpoint []byte) ([]byte, error) {
	r := b.report
	r.ProcessedRows += matching
	r.MatchingRows += matching
	r.Checkpoint = checkpoint
	return r.Marshal(b.options.maxBytes())
}

// Marshal returns the JSON of the report as it is now, within the options' MaxBytes.
func (b *Builder) Marshal() ([]byte, error) {
	return b.report.Marshal(b.options.maxBytes())
}
