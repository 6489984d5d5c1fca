// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package report

import (
	"encoding/json"
	"fmt"
	"slices"

	"vitess.io/vitess/go/vt/vttablet/tabletmanager/vdiff"
)

// Report is what is stored in _vt.vdiff_table.report: upstream's report and three keys of our own.
type Report struct {
	vdiff.DiffReport
	// Truncated is true when samples were left out to keep the report within its bound. Counts are
	// always complete.
	Truncated bool `json:"Truncated,omitempty"`
	// Checkpoint says which ranges of a table are verified that is being compared by digests. The counts above do
	// not have them, except for those that lie before the table's lastpk. The stock engine does not know it.
	Checkpoint json.RawMessage `json:"Checkpoint,omitempty"`
	// Plan is the fingerprint of the plan under which the rows were compared. The stock engine, which does not know it, drops it
	// when it writes a report: what has none was written by another engine, or by an older version.
	Plan string `json:"Plan,omitempty"`
}

// maxCount is more rows than any table has: a count above it was not made by counting.
const maxCount = int64(1) << 56

// Different says whether the report holds any difference.
func (r *Report) Different() bool {
	return r.MismatchedRows > 0 || r.ExtraRowsSource > 0 || r.ExtraRowsTarget > 0
}

// Unmarshal reads a stored report. No bytes at all are an empty report. JSON that is no report, or one
// whose counts cannot be, is an error; the error does not repeat the stored bytes.
func Unmarshal(stored []byte) (*Report, error) {
	r := &Report{}
	if len(stored) == 0 {
		return r, nil
	}
	if err := json.Unmarshal(stored, r); err != nil {
		return nil, fmt.Errorf("stored report of %d bytes cannot be read", len(stored))
	}
	counts := []int64{r.ProcessedRows, r.MatchingRows, r.MismatchedRows, r.ExtraRowsSource, r.ExtraRowsTarget}
	for _, count := range counts {
		if count < 0 || count > maxCount {
			return nil, fmt.Errorf("stored report has a count of %d rows", count)
		}
	}
	r.MismatchedRowsDiffs = slices.DeleteFunc(r.MismatchedRowsDiffs, func(d *vdiff.DiffMismatch) bool { return d == nil })
	r.ExtraRowsSourceDiffs = withoutNil(r.ExtraRowsSourceDiffs)
	r.ExtraRowsTargetDiffs = withoutNil(r.ExtraRowsTargetDiffs)
	return r, nil
}

func withoutNil(samples []*vdiff.RowDiff) []*vdiff.RowDiff {
	return slices.DeleteFunc(samples, func(d *vdiff.RowDiff) bool { return d == nil })
}

// Marshal returns the report as JSON of at most max bytes. Samples that do not fit are left out, the
// last ones of the longest list first, and Truncated says so. r itself is not changed.
func (r *Report) Marshal(max int) ([]byte, error) {
	text, err := json.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("report: %w", err)
	}
	if len(text) <= max {
		return text, nil
	}
	short := *r
	short.Truncated = true
	mismatched := sizes(r.MismatchedRowsDiffs)
	source := sizes(r.ExtraRowsSourceDiffs)
	target := sizes(r.ExtraRowsTargetDiffs)
	for {
		excess := len(text) - max
		if excess <= 0 {
			return text, nil
		}
		// Dropping what the sizes say is enough in one go, except when a list becomes empty and loses
		// its key, or for the Truncated key: then another round corrects it.
		for excess > 0 {
			longest := longestOf(&mismatched, &source, &target)
			if len(*longest) == 0 {
				break
			}
			last := len(*longest) - 1
			excess -= (*longest)[last] + 1
			*longest = (*longest)[:last]
		}
		if len(mismatched)+len(source)+len(target) == 0 && len(short.MismatchedRowsDiffs)+len(short.ExtraRowsSourceDiffs)+len(short.ExtraRowsTargetDiffs) == 0 {
			return nil, fmt.Errorf("report without samples has %d bytes, more than the bound of %d", len(text), max)
		}
		short.MismatchedRowsDiffs = r.MismatchedRowsDiffs[:len(mismatched)]
		short.ExtraRowsSourceDiffs = r.ExtraRowsSourceDiffs[:len(source)]
		short.ExtraRowsTargetDiffs = r.ExtraRowsTargetDiffs[:len(target)]
		if text, err = json.Marshal(&short); err != nil {
			return nil, fmt.Errorf("report: %w", err)
		}
	}
}

// longestOf returns the list with the most bytes.
func longestOf(lists ...*[]int) *[]int {
	return slices.MaxFunc(lists, func(a, b *[]int) int { return sum(*a) - sum(*b) })
}

func sum(list []int) int {
	total := 0
	for _, n := range list {
		total += n
	}
	return total
}

// sizes returns the length of each sample's JSON.
func sizes[T any](samples []*T) []int {
	list := make([]int, len(samples))
	for i, sample := range samples {
		list[i] = size(sample)
	}
	return list
}

// size returns the length of a sample's JSON. Samples hold strings only, which always can be encoded.
func size(sample any) int {
	text, err := json.Marshal(sample)
	if err != nil {
		return 0
	}
	return len(text)
}
