// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package report

import (
	"math"

	tabletmanagerdatapb "vitess.io/vitess/go/vt/proto/tabletmanagerdata"
)

// DefaultMaxBytes bounds a report when nothing else does.
const DefaultMaxBytes = 1 << 20

// Options says which samples a report keeps and what they show.
type Options struct {
	// MaxMismatched, MaxExtraSource and MaxExtraTarget are how many samples of each kind are kept.
	MaxMismatched  int64
	MaxExtraSource int64
	MaxExtraTarget int64
	// OnlyPKs shows key columns only, DebugQuery adds a query that reads the row.
	OnlyPKs    bool
	DebugQuery bool
	// TruncateAt is the number of bytes that a value which is not of the key is cut to, 0 for no cut.
	TruncateAt int
	// MaxBytes bounds the JSON. It is DefaultMaxBytes when it is not positive.
	MaxBytes int
}

// NewOptions takes what a vdiff's options say. Of mismatched rows max_report_sample_rows are kept, 0
// for all. Of extra rows no more than max_extra_rows_to_compare are kept either, where 0 is none.
func NewOptions(options *tabletmanagerdatapb.VDiffOptions, maxBytes int) Options {
	core, report := options.GetCoreOptions(), options.GetReportOptions()
	o := Options{
		MaxMismatched: report.GetMaxSampleRows(),
		OnlyPKs:       report.GetOnlyPks(),
		DebugQuery:    report.GetDebugQuery(),
		TruncateAt:    int(min(max(report.GetRowDiffColumnTruncateAt(), 0), math.MaxInt32)),
		MaxBytes:      maxBytes,
	}
	if o.MaxMismatched <= 0 {
		o.MaxMismatched = math.MaxInt64
	}
	extra := min(max(core.GetMaxExtraRowsToCompare(), 0), o.MaxMismatched)
	o.MaxExtraSource, o.MaxExtraTarget = extra, extra
	return o
}

// Bound returns the MaxBytes of a report that is stored by a statement of at most maxAllowedPacket
// bytes: as a literal in SQL every byte may have to be escaped by another one, and the rest of the
// statement needs room too.
func Bound(maxAllowedPacket int) int {
	const statement, least = 16 << 10, 1 << 10
	return max(min(DefaultMaxBytes, (maxAllowedPacket-statement)/2), least)
}

func (o Options) maxBytes() int {
	if o.MaxBytes <= 0 {
		return DefaultMaxBytes
	}
	return o.MaxBytes
}
