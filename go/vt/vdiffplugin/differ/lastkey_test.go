// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package differ

import (
	"context"
	"encoding/json"
	"math"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"vitess.io/vitess/go/vt/vttablet/tabletmanager/vdiff"

	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/pkrange"
	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/report"
	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/scan"
	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/sidecar"
	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/verify"

	topodatapb "vitess.io/vitess/go/vt/proto/topodata"
)

func intBound(id int64) pkrange.Bound { return pkrange.Bound{{Kind: pkrange.Int, Int: id}} }

// keyRow is the last row of a comparison in a fence.
func keyRow(id int64) scan.Row {
	text := strconv.FormatInt(id, 10)
	return scan.Row{Lengths: []int32{int32(len(text)), -1}, Values: []byte(text)}
}

// Tests that the record of a table that is completed never has a lastpk of before with the counts of all rows: resumed, it goes on
// behind the last key where that is known, and else from the first row with counts from zero.
func TestResumeOfCompleted(t *testing.T) {
	f := func(last, wantLast pkrange.Bound, wantCounted int64) {
		t.Helper()
		sides := &streamedSides{}
		d, dt := streamedDigests(t, sides)
		table, at := dt.job.table, intBound(5)
		table.Digest.Source.Key = table.Digest.Target.Key
		c, err := json.Marshal(checkpoint{Version: checkpointVersion, Key: []string{"id"}, Counted: 6, Last: last, Segments: []segment{
			{Range: pkrange.Range{UpTo: at}, Done: true, Rows: 6}, {Range: pkrange.Range{After: at, UpTo: intBound(9)}}, {Range: pkrange.Range{After: intBound(9)}, Done: true, Rows: 4},
		}})
		require.NoError(t, err)
		doc, err := json.Marshal(report.Report{DiffReport: vdiff.DiffReport{TableName: "t", ProcessedRows: 6, MatchingRows: 6}, Checkpoint: c})
		require.NoError(t, err)
		d.r.Reader = func(context.Context, string, *topodatapb.Tablet, bool) (Reader, error) {
			return nil, scan.ErrUnsupported
		}
		d.machine.Remove("t")
		tables, rows := d.r.digestible(t.Context(), []*job{d.r.newJob(table, &sidecar.Table{Name: "t", LastPK: boundPK(table, at), Report: doc})})
		require.Empty(t, rows)
		dt = tables[0]
		require.NoError(t, d.machine.Add(dt.forMachine()))
		d.tables["t"] = dt

		dt.saved = time.Time{}
		require.NoError(t, d.record(t.Context(), tables))
		var stored checkpoint
		prior, err := report.Unmarshal(sides.saved[0].Report)
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(prior.Checkpoint, &stored))
		assert.Equal(t, last, stored.Last, "the next run knows it, too")

		require.NoError(t, d.worker(t.Context()))
		require.NoError(t, d.record(t.Context(), tables))
		saved := sides.saved[len(sides.saved)-1]
		require.Equal(t, vdiff.CompletedState, saved.State)
		assert.Equal(t, int64(10), saved.RowsCompared)
		assert.Equal(t, string(boundPK(table, wantLast)), string(saved.LastPK))
		again := d.r.newJob(table, &sidecar.Table{Name: "t", LastPK: saved.LastPK, Report: saved.Report, RowsCompared: saved.RowsCompared})
		assert.Equal(t, wantCounted, again.processed())
		assert.Equal(t, wantCounted == 0, again.lastPK == nil)
	}
	f(intBound(70), intBound(70), 10)
	f(nil, nil, 0)
}

// Tests what is noted as a table's last key: that of the last read of its end, with or without a limit, and where that had no row
// the place it began behind.
func TestReached(t *testing.T) {
	d, dt := streamedDigests(t, &streamedSides{})
	f := func(task verify.Task, answer, want pkrange.Bound) {
		t.Helper()
		dt.reached(task, &scan.Digest{Last: answer})
		assert.Equal(t, want, dt.last)
	}
	f(verify.Task{Limit: 10}, intBound(100), intBound(100))
	f(verify.Task{Limit: 10, Range: pkrange.Range{UpTo: intBound(7)}}, intBound(7), intBound(100))
	f(verify.Task{Range: pkrange.Range{After: intBound(50)}}, intBound(101), intBound(101))
	f(verify.Task{Range: pkrange.Range{After: intBound(50)}}, nil, intBound(50))
	f(verify.Task{}, nil, nil)

	end, middle := verify.Task{Table: "t"}, verify.Task{Table: "t", Range: pkrange.Range{UpTo: intBound(7)}}
	requests := d.targetRequests([]verify.Task{end, middle})
	assert.Equal(t, int64(math.MaxInt64), requests[0].MaxRows, "a read with a limit of any kind tells its last key")
	assert.Zero(t, requests[1].MaxRows)
}

// Tests the last key of a table whose ranges were compared in a fence: all rows that are counted are before it.
func TestLastKey(t *testing.T) {
	_, dt := streamedDigests(t, &streamedSides{})
	dt.last = intBound(100)
	f := func(last scan.Row, want pkrange.Bound, left ...pkrange.Range) {
		t.Helper()
		dt.left = left
		assert.Equal(t, want, dt.lastKey(last))
	}
	middle, end := pkrange.Range{After: intBound(1), UpTo: intBound(9)}, pkrange.Range{After: intBound(50)}
	f(keyRow(5), intBound(100), middle)
	f(keyRow(104), intBound(104), end)
	f(scan.Row{}, intBound(50), end)
	f(scan.Row{}, nil, pkrange.Range{})
	f(keyRow(104), nil, middle, end)
}
