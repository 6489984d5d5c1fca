// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package differ

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"vitess.io/vitess/go/sqltypes"
	"vitess.io/vitess/go/vt/log"
	"vitess.io/vitess/go/vt/vterrors"
	"vitess.io/vitess/go/vt/vttablet/tabletmanager/vdiff"

	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/pkrange"
	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/plan"
	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/report"
	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/sidecar"
	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/verify"
)

const (
	checkpointVersion = 1
	// maxSegments bounds a checkpoint; a table in more pieces is described with less precision.
	maxSegments = 256
)

// checkpoint is what report.Report.Checkpoint holds.
type checkpoint struct {
	Version int `json:"version"`
	// Key has the target's key columns: segments are ranges of these.
	Key []string `json:"key"`
	// Counted is how many verified rows the report's own counts include: those of the first segment, when lastpk is
	// its end.
	Counted  int64     `json:"counted"`
	Segments []segment `json:"segments"`
	// Last is the last key that was seen at the table's end.
	Last pkrange.Bound `json:"last,omitempty"`
}

type segment struct {
	Range pkrange.Range `json:"range"`
	Done  bool          `json:"done,omitempty"`
	Rows  int64         `json:"rows,omitempty"`
}

// segments returns where the record of the job left it: the ranges of its checkpoint, those before and
// behind its lastpk, or nil.
func (j *job) segments() []verify.Segment {
	if !j.table.Digest.Ranged {
		return nil
	}
	if j.stored != nil {
		var list []verify.Segment
		for _, s := range j.stored.Segments {
			list = append(list, verify.Segment{Range: s.Range, Done: s.Done, Rows: s.Rows})
		}
		return list
	}
	if j.lastPK == nil {
		return nil
	}
	bound, err := keyBound(j.table, j.after.SQLValues(targetTypes(j.table)))
	if err != nil {
		log.Warn(fmt.Sprintf("vdiff %s: table %s: its lastpk is no place to go on from, comparing it from the first row: %v", j.r.v.UUID, j.table.Name, err))
		j.restart()
		return nil
	}
	return []verify.Segment{{Range: pkrange.Range{UpTo: bound}, Done: true}, {Range: pkrange.Range{After: bound}}}
}

// keyBound returns the key of a row as a bound.
func keyBound(t *plan.Table, row []sqltypes.Value) (pkrange.Bound, error) {
	var bound pkrange.Bound
	for _, i := range t.Key {
		v := row[i]
		value := pkrange.Value{Kind: pkrange.Bytes, Bytes: v.Raw()}
		var err error
		switch typ := t.Columns[i].Target.Type; {
		case v.IsNull():
			err = fmt.Errorf("column %s is NULL", t.Columns[i].Name)
		case sqltypes.IsUnsigned(typ) && typ != sqltypes.Year:
			value = pkrange.Value{Kind: pkrange.Uint}
			value.Uint, err = v.ToUint64()
		case sqltypes.IsIntegral(typ):
			value = pkrange.Value{Kind: pkrange.Int}
			value.Int, err = sqltypes.MakeTrusted(sqltypes.Int64, v.Raw()).ToInt64()
		case sqltypes.IsDecimal(typ):
			value.Kind = pkrange.Decimal
		case sqltypes.IsDateOrTime(typ):
			value.Kind = pkrange.Temporal
		}
		if err != nil {
			return nil, err
		}
		bound = append(bound, value)
	}
	return bound, nil
}

// boundPK returns the lastpk of a bound, or nil when the bound is not a whole key or too long to be stored.
func boundPK(t *plan.Table, bound pkrange.Bound) []byte {
	if len(bound) != len(t.Key) || len(bound) == 0 {
		return nil
	}
	row := make([]sqltypes.Value, len(t.Columns))
	for n, i := range t.Key {
		typ := t.Columns[i].Target.Type
		switch v := bound[n]; v.Kind {
		case pkrange.Int:
			row[i] = sqltypes.MakeTrusted(typ, fmt.Append(nil, v.Int))
		case pkrange.Uint:
			row[i] = sqltypes.MakeTrusted(typ, fmt.Append(nil, v.Uint))
		default:
			row[i] = sqltypes.MakeTrusted(typ, v.Bytes)
		}
	}
	lastPK, err := plan.EncodeLastPK(t, row)
	if err != nil {
		return nil
	}
	return lastPK
}

// loadCheckpoint takes the checkpoint of a stored report, if it has one that fits the table. The report's
// counts are brought back to what the segments do not have.
func (j *job) loadCheckpoint(prior *report.Report) error {
	if len(prior.Checkpoint) == 0 || j.table.Digest == nil || !j.table.Digest.Ranged {
		return nil
	}
	c := &checkpoint{}
	if err := json.Unmarshal(prior.Checkpoint, c); err != nil {
		return fmt.Errorf("its checkpoint of %d bytes cannot be read", len(prior.Checkpoint))
	}
	switch {
	case c.Version != checkpointVersion || !slices.Equal(c.Key, j.table.Digest.Target.Key) || len(c.Segments) == 0:
		return fmt.Errorf("its checkpoint is one of another version or key")
	case c.Counted < 0 || c.Counted > prior.MatchingRows || c.Counted > prior.ProcessedRows:
		return fmt.Errorf("its checkpoint counts %d rows of %d", c.Counted, prior.MatchingRows)
	}
	for _, s := range c.Segments {
		if s.Rows < 0 || len(s.Range.After) > len(c.Key) || len(s.Range.UpTo) > len(c.Key) || len(c.Last) > len(c.Key) {
			return fmt.Errorf("its checkpoint has a segment that is none")
		}
	}
	base := *prior
	base.ProcessedRows -= c.Counted
	base.MatchingRows -= c.Counted
	j.stored, j.report = c, report.NewBuilder(j.table, &base, j.r.reportOptions())
	return nil
}

// record writes down what the tables have come to: those that are verified as completed, others now and then.
func (d *digests) record(ctx context.Context, tables []*digestTable) error {
	var all []sidecar.TableProgress
	var completed []*digestTable
	for _, t := range tables { // in the order of their ids, as every worker does: nobody waits in a circle
		t.saving.Lock()
		defer t.saving.Unlock()
		p, finished, err := d.snapshot(t)
		if err != nil {
			return err
		}
		if p != nil {
			all = append(all, sidecar.TableProgress{Table: t.job.table.Name, Progress: p})
			t.saved = time.Now()
		}
		if finished {
			completed = append(completed, t)
		}
	}
	if len(all) == 0 {
		return nil
	}
	if err := d.r.Store.SaveProgressOf(ctx, d.r.v.ID, all); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return vterrors.Wrap(err, "writing the progress of the tables")
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, t := range completed {
		t.completed = true
	}
	return nil
}

// snapshot returns what is to be written of a table now, nil when nothing is, and tells the observer. The
// caller holds t.saving, so that what is written later is not older.
func (d *digests) snapshot(t *digestTable) (p *sidecar.Progress, finished bool, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if t.rowWay || t.completed {
		return nil, false, nil
	}
	j := t.job
	stats := d.machine.Stats(t.id)
	d.r.obs.RowsCompared(j.table.Name, stats.Rows-t.told)
	t.told = stats.Rows
	d.r.obs.Ranges(j.table.Name, int64(stats.Verified), int64(stats.Retrying), int64(stats.Fenced))
	finished = d.machine.Finished(t.id) && len(d.machine.Left(t.id)) == 0 && len(d.machine.LeftBuckets(t.id)) == 0
	rows := j.report.Report().ProcessedRows + stats.Rows
	different := j.report.Report().Different()
	switch {
	case finished:
		doc, err := j.report.MarshalCheckpoint(stats.Rows, nil)
		if err != nil {
			return nil, false, err
		}
		return &sidecar.Progress{RowsCompared: rows, LastPK: boundPK(j.table, t.last), Report: doc, Mismatch: different, State: vdiff.CompletedState}, true, nil
	case !j.table.Digest.Ranged || time.Since(t.saved) < d.r.CheckpointInterval:
		return nil, false, nil
	}
	p, err = d.checkpointOf(t)
	if p != nil {
		p.RowsCompared, p.Mismatch = rows, different
	}
	return p, false, err
}

// checkpointOf makes the checkpoint of a table with as many segments as there is room for.
func (d *digests) checkpointOf(t *digestTable) (*sidecar.Progress, error) {
	j := t.job
	for most := maxSegments; most >= 1; most /= 4 {
		c := checkpoint{Version: checkpointVersion, Key: j.table.Digest.Target.Key, Last: t.last}
		for _, s := range d.machine.Checkpoint(t.id, most) {
			c.Segments = append(c.Segments, segment{Range: s.Range, Done: s.Done, Rows: s.Rows})
		}
		lastPK := j.lastPK
		if j.stored != nil {
			c.Counted = j.stored.Counted // those before j.lastPK that its report has no more
		}
		if first := c.Segments[0]; first.Done {
			if pk := boundPK(j.table, first.Range.UpTo); pk != nil {
				lastPK, c.Counted = pk, first.Rows
			}
		}
		if !c.Segments[0].Done && j.processed() > 0 {
			return nil, nil // the rows that the report has are those of the first segment: the checkpoint before stays
		}
		text, err := json.Marshal(&c)
		if err != nil {
			return nil, err
		}
		if len(text) > d.r.maxReport/2 {
			continue
		}
		doc, err := j.report.MarshalCheckpoint(c.Counted, text)
		if err != nil {
			return nil, err
		}
		return &sidecar.Progress{LastPK: lastPK, Report: doc}, nil
	}
	return nil, nil // keys of thousands of bytes: the checkpoint before stays
}
