// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package differ

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"vitess.io/vitess/go/sqltypes"
	"vitess.io/vitess/go/vt/vterrors"
	"vitess.io/vitess/go/vt/vttablet/tabletmanager/vdiff"

	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/digest"
	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/pkrange"
	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/plan"
	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/report"
	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/scan"
	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/sidecar"
	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/verify"

	querypb "vitess.io/vitess/go/vt/proto/query"
	tabletmanagerdatapb "vitess.io/vitess/go/vt/proto/tabletmanagerdata"
	topodatapb "vitess.io/vitess/go/vt/proto/topodata"
	vtrpcpb "vitess.io/vitess/go/vt/proto/vtrpc"
)

func answer(sums ...digest.Sum) *scan.Answer {
	return &scan.Answer{Digests: []scan.Digest{{Sums: sums}}}
}

// Tests what digests of several sources say: they add up, those of a reference table are each the whole, buckets are told
// apart, and a source that stopped early makes nothing equal.
func TestOutcome(t *testing.T) {
	sum := func(rows, lo uint64) digest.Sum { return digest.Sum{Rows: rows, Lo: lo} }
	f := func(reference bool, want bool, target *scan.Answer, sources ...*scan.Answer) verify.Outcome {
		t.Helper()
		o := outcomeOf(0, reference, target, sources)
		assert.Equal(t, want, o.Equal)
		return o
	}
	f(false, true, answer(sum(3, 30)), answer(sum(1, 10)), answer(sum(2, 20)))
	o := f(false, false, answer(sum(3, 30)), answer(sum(1, 10)), answer(sum(2, 21)))
	assert.Equal(t, int64(3), o.TargetRows)
	assert.Equal(t, int64(3), o.SourceRows)
	f(false, false, answer(sum(4, 30)), answer(sum(3, 30)))
	f(true, true, answer(sum(3, 30)), answer(sum(3, 30)), answer(sum(3, 30)))
	f(true, false, answer(sum(3, 30)), answer(sum(3, 30)), answer(sum(3, 31)))
	o = f(false, false, answer(sum(1, 1), sum(2, 2)), answer(sum(1, 1), sum(2, 3)))
	assert.Equal(t, []bool{true, false}, o.EqualBuckets)
	assert.Equal(t, []int64{1, 2}, o.BucketRows)
	o = f(true, false, answer(sum(1, 1), sum(2, 2)), answer(sum(1, 1), sum(2, 2)), answer(sum(1, 1), sum(2, 3)))
	assert.Equal(t, []bool{true, false}, o.EqualBuckets)
	f(false, false, answer(sum(1, 1), sum(2, 2)), answer(sum(3, 3)))
	early := answer(sum(3, 30))
	early.Digests[0].UpTo = pkrange.Bound{{Int: 7}}
	o = f(false, false, answer(sum(3, 30)), early)
	assert.Equal(t, early.Digests[0].UpTo, o.SourceUpTo)
}

// Tests that a walk whose sources failed is not walked again when its task is taken up once more, but read as the range that it was:
// the target may have got other rows since, and the machine would take the outcome of one range for that of another.
func TestWalkedRanges(t *testing.T) {
	at, end := pkrange.Bound{{Int: 7}}, pkrange.Bound{{Int: 9}}
	target := &scan.Answer{Digests: []scan.Digest{{UpTo: at}, {}, {}}}
	tasks := []verify.Task{
		{ID: 1, Range: pkrange.Range{UpTo: end}, Limit: 10, MaxBytes: 1, MaxTime: 1, SourceLimit: 20}, {ID: 2, Range: pkrange.Range{UpTo: end}, Limit: 10}, {ID: 3, Buckets: 4},
	}
	assert.Equal(t, []verify.Task{{ID: 1, Range: pkrange.Range{UpTo: at}, SourceLimit: 20}, {ID: 2, Range: pkrange.Range{UpTo: end}}, {ID: 3, Buckets: 4}}, walkedRanges(tasks, target))
	assert.Equal(t, int64(10), tasks[0].Limit, "the caller's tasks are not changed")
}

// Tests which errors of a scan mean that the table cannot be read this way at all.
func TestCannotScan(t *testing.T) {
	assert.True(t, cannotScan(vterrors.Wrap(vterrors.New(vtrpcpb.Code_UNIMPLEMENTED, "x"), "table t")))
	assert.True(t, cannotScan(vterrors.New(vtrpcpb.Code_INVALID_ARGUMENT, "x")))
	assert.True(t, cannotScan(fmt.Errorf("tablet: %w", scan.ErrUnsupported)))
	assert.True(t, cannotScan(errors.New("Table 'x.t' doesn't exist (errno 1146) (sqlstate 42S02)")))
	// An index that has another name on one shard: the row way needs none.
	assert.True(t, cannotScan(vterrors.New(vtrpcpb.Code_FAILED_PRECONDITION, "Key 'uk' doesn't exist in table 't' (errno 1176) (sqlstate 42000)")))
	assert.False(t, cannotScan(vterrors.New(vtrpcpb.Code_UNAVAILABLE, "x")))
	assert.False(t, cannotScan(vterrors.New(vtrpcpb.Code_FAILED_PRECONDITION, "stream 1 is in state Error")))
}

// keyed is a table whose key has a column of every kind.
func keyed() *plan.Table {
	column := func(name string, typ querypb.Type) plan.Column {
		return plan.Column{Name: name, Source: plan.ColumnType{Type: typ}, Target: plan.ColumnType{Type: typ}}
	}
	t := &plan.Table{
		Name: "t", Ordered: true, KeyUnique: true, Mergeable: true, Key: []int{0, 1, 2, 3, 4},
		Columns: []plan.Column{
			column("i", sqltypes.Int64), column("u", sqltypes.Uint64), column("d", sqltypes.Decimal), column("t", sqltypes.Datetime), column("s", sqltypes.VarChar), column("v", sqltypes.Text),
		},
		Digest: &plan.Digest{Ranged: true}, Fingerprint: "f1",
	}
	t.SourceKey, t.TargetKey = t.Key, t.Key
	t.Digest.Target.Key = []string{"i", "u", "d", "t", "s"}
	return t
}

// Tests that a stored lastpk becomes the same bound as the key of a row, and back.
func TestKeyBound(t *testing.T) {
	table := keyed()
	row := []sqltypes.Value{
		sqltypes.NewInt64(-5), sqltypes.NewUint64(18446744073709551615), sqltypes.NewDecimal("1.50"),
		sqltypes.MakeTrusted(sqltypes.Datetime, []byte("2026-01-02 03:04:05.000006")), sqltypes.NewVarChar("a\x00ß"), sqltypes.NULL,
	}
	bound, err := keyBound(table, row)
	require.NoError(t, err)
	assert.Equal(t, pkrange.Bound{
		{Kind: pkrange.Int, Int: -5}, {Kind: pkrange.Uint, Uint: 18446744073709551615}, {Kind: pkrange.Decimal, Bytes: []byte("1.50")},
		{Kind: pkrange.Temporal, Bytes: []byte("2026-01-02 03:04:05.000006")}, {Kind: pkrange.Bytes, Bytes: []byte("a\x00ß")},
	}, bound)
	want, err := plan.EncodeLastPK(table, row)
	require.NoError(t, err)
	assert.Equal(t, string(want), string(boundPK(table, bound)))
	assert.Nil(t, boundPK(table, bound[:4]), "a part of a key is no lastpk")
	assert.Nil(t, boundPK(table, nil))
	row[4] = sqltypes.NULL
	_, err = keyBound(table, row)
	require.ErrorContains(t, err, "NULL")
}

// placeObserver knows from where a table is compared.
type placeObserver struct {
	silentObserver
	rows []int64
}

func (o *placeObserver) TableAt(_ string, rows int64) { o.rows = append(o.rows, rows) }

// Tests what --limit leaves of a table: as many rows again for a vdiff that was completed, and for one that died the rest of its part, be it
// the first one or one behind a resume.
func TestLimit(t *testing.T) {
	r := &run{v: &sidecar.VDiff{Options: &tabletmanagerdatapb.VDiffOptions{CoreOptions: &tabletmanagerdatapb.VDiffCoreOptions{MaxRows: 100}}}}
	table := keyed()
	at := pkrange.Bound{{Int: 1}, {Kind: pkrange.Uint, Uint: 2}, {Kind: pkrange.Decimal, Bytes: []byte("3.0")}, {Kind: pkrange.Temporal, Bytes: []byte("2026-01-01 00:00:00")}, {Kind: pkrange.Bytes, Bytes: []byte("k")}}
	f := func(state vdiff.VDiffState, rows, left int64) {
		t.Helper()
		record := &sidecar.Table{Name: "t", State: state}
		if rows > 0 {
			record.LastPK, record.RowsCompared = boundPK(table, at), rows
			record.Report = fmt.Appendf(nil, `{"ProcessedRows": %d, "MatchingRows": %[1]d, "Plan": "f1"}`, rows)
		}
		assert.Equal(t, left, r.newJob(table, record).left(), "%s with %d rows", state, rows)
	}
	f(vdiff.PendingState, 0, 100)
	f(vdiff.StartedState, 0, 100)
	f(vdiff.StartedState, 30, 70)
	f(vdiff.PendingState, 100, 100)
	f(vdiff.StartedState, 100, 100)
	f(vdiff.StartedState, 150, 50)
	f(vdiff.PendingState, 80, 100)
}

// Tests that a job takes the checkpoint of its record, with the report's counts brought back to what the ranges do
// not have, and that it begins anew where the checkpoint is garbage, or one of another key or another plan.
func TestLoadCheckpoint(t *testing.T) {
	placed := &placeObserver{}
	r := &run{v: &sidecar.VDiff{Options: &tabletmanagerdatapb.VDiffOptions{CoreOptions: &tabletmanagerdatapb.VDiffCoreOptions{}}}, obs: placed}
	r.Reader = func(context.Context, string, *topodatapb.Tablet, bool) (Reader, error) {
		return nil, scan.ErrUnsupported
	}
	table := keyed()
	table.Digest.Source.Key = table.Digest.Target.Key
	at := pkrange.Bound{{Int: 1}, {Kind: pkrange.Uint, Uint: 2}, {Kind: pkrange.Decimal, Bytes: []byte("3.0")}, {Kind: pkrange.Temporal, Bytes: []byte("2026-01-01 00:00:00")}, {Kind: pkrange.Bytes, Bytes: []byte("k")}}
	good := checkpoint{Version: checkpointVersion, Key: table.Digest.Target.Key, Counted: 60, Segments: []segment{
		{Range: pkrange.Range{UpTo: at}, Done: true, Rows: 60}, {Range: pkrange.Range{After: at}},
	}}
	record := func(c any) *sidecar.Table {
		text, err := json.Marshal(c)
		require.NoError(t, err)
		doc, err := json.Marshal(report.Report{DiffReport: vdiff.DiffReport{TableName: "t", ProcessedRows: 100, MatchingRows: 99, MismatchedRows: 1}, Checkpoint: text, Plan: "f1"})
		require.NoError(t, err)
		return &sidecar.Table{Name: "t", State: vdiff.StartedState, LastPK: boundPK(table, at), RowsCompared: 160, Report: doc}
	}
	j := r.newJob(table, record(good))
	require.NotNil(t, j.stored)
	assert.Equal(t, int64(40), j.processed())
	assert.Equal(t, int64(39), j.report.Report().MatchingRows)
	assert.Equal(t, []verify.Segment{{Range: good.Segments[0].Range, Done: true, Rows: 60}, {Range: good.Segments[1].Range}}, j.segments())
	tables, others := r.digestible(t.Context(), []*job{j})
	require.Empty(t, others)
	assert.Equal(t, int64(60), tables[0].told)
	rewound([]*job{j})
	assert.Equal(t, int64(100), j.processed(), "the row way goes on behind lastpk with the report's counts")
	assert.Nil(t, j.stored)
	assert.Equal(t, []int64{100, 100}, placed.rows, "all rows of earlier runs at once: those that come later are of this one")

	// A checkpoint that has given up the first segment would have the report's rows compared again: the one before stays.
	j = r.newJob(table, record(good))
	r.maxReport = 1 << 20
	d := &digests{r: r, machine: verify.New(r.verifyConfig(false))}
	dt := &digestTable{job: j, id: "t", segments: j.segments()}
	require.NoError(t, d.machine.Add(dt.forMachine()))
	p, err := d.checkpointOf(dt)
	require.NoError(t, err)
	require.NotNil(t, p)
	dt.id, dt.segments = "anew", []verify.Segment{{}}
	require.NoError(t, d.machine.Add(dt.forMachine()))
	p, err = d.checkpointOf(dt)
	require.NoError(t, err)
	require.Nil(t, p)
	j.restart()
	p, err = d.checkpointOf(dt)
	require.NoError(t, err)
	require.NotNil(t, p, "the report has no rows")

	// A lastpk of the row way.
	rows := record(good)
	rows.Report = []byte(`{"ProcessedRows": 100, "MatchingRows": 100, "Plan": "f1"}`)
	j = r.newJob(table, rows)
	assert.Equal(t, int64(100), j.processed())
	assert.Equal(t, []verify.Segment{{Range: pkrange.Range{UpTo: at}, Done: true}, {Range: pkrange.Range{After: at}}}, j.segments())

	// What was compared under another plan, or under one that nobody knows, as of the stock engine, counts for nothing.
	from := func(record *sidecar.Table) {
		t.Helper()
		j := r.newJob(table, record)
		assert.Nil(t, j.stored)
		assert.Nil(t, j.lastPK)
		assert.Zero(t, j.processed())
		assert.Nil(t, j.segments())
		assert.Equal(t, "f1", j.report.Report().Plan, "what is written next is of the new plan")
	}
	rows.Report = []byte(`{"ProcessedRows": 100, "MatchingRows": 100}`)
	from(rows)
	rows.Report = []byte(`{"ProcessedRows": 100, "MatchingRows": 100, "Plan": "f2"}`)
	from(rows)
	changed := record(good)
	changed.Report = bytes.Replace(changed.Report, []byte(`"f1"`), []byte(`"f2"`), 1)
	from(changed)
	changed.LastPK = nil
	from(changed)

	other, version, counted := good, good, good
	other.Key, version.Version, counted.Counted = []string{"x"}, 99, 1000
	for _, c := range []any{"garbage", 7, other, version, counted, checkpoint{Version: checkpointVersion, Key: good.Key}} {
		j = r.newJob(table, record(c))
		assert.Nil(t, j.stored, "%v", c)
		assert.Zero(t, j.processed(), "%v", c)
		assert.Nil(t, j.segments(), "%v", c)
	}
}

// rowReader is a Reader of rows.
type rowReader struct {
	scan.Digester
	rows func(ctx context.Context, start func(*scan.RowsStart) error, send func(*scan.RowsBatch) error) error
}

func (r *rowReader) Rows(ctx context.Context, _ *scan.RowsCall, start func(*scan.RowsStart) error, send func(*scan.RowsBatch) error, _ scan.Progress) error {
	return r.rows(ctx, start, send)
}

// Tests that the rows of several tables in one stream are told apart, whoever stops reading one of them early, and the ways in
// which a stream fails: before its view is open, in its middle, and by not opening in time.
func TestRowStream(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	fields := []*querypb.Field{{Name: "a", Type: sqltypes.Int64}}
	batch := func(read int, values ...string) *scan.RowsBatch {
		b := &scan.RowsBatch{Read: read}
		for _, v := range values {
			b.Rows = append(b.Rows, &querypb.Row{Lengths: []int64{int64(len(v))}, Values: []byte(v)})
		}
		return b
	}
	first := func(b *scan.RowsBatch) *scan.RowsBatch { b.Fields = fields; return b }
	ctx := t.Context()
	s, err := openRows(ctx, ctx, &rowReader{rows: func(_ context.Context, start func(*scan.RowsStart) error, send func(*scan.RowsBatch) error) error {
		if err := start(&scan.RowsStart{Position: "p"}); err != nil {
			return err
		}
		for _, b := range []*scan.RowsBatch{first(batch(0, "1", "2")), batch(0, "3"), first(batch(1)), first(batch(2, "4")), batch(2, "5")} {
			if err := send(b); err != nil {
				return err
			}
		}
		return nil
	}}, &scan.RowsCall{}, nil)
	require.NoError(t, err)
	assert.Equal(t, "p", s.start.Position)
	next := func(rows *tableRows) int {
		b, err := rows.Next(ctx)
		if errors.Is(err, io.EOF) {
			return 0
		}
		require.NoError(t, err)
		defer b.Release()
		return b.Len()
	}
	rows, err := s.open(ctx, 0)
	require.NoError(t, err)
	assert.Equal(t, 2, next(rows)) // and the rest of it is left
	rows, err = s.open(ctx, 1)
	require.NoError(t, err)
	assert.Equal(t, fields, rows.fields)
	assert.Zero(t, next(rows))
	rows, err = s.open(ctx, 2)
	require.NoError(t, err)
	assert.Equal(t, []int{1, 1, 0}, []int{next(rows), next(rows), next(rows)})
	_, err = s.open(ctx, 3)
	require.ErrorContains(t, err, "no part for table 3")
	s.close()

	_, err = openRows(ctx, ctx, &rowReader{rows: func(context.Context, func(*scan.RowsStart) error, func(*scan.RowsBatch) error) error {
		return errors.New("locked")
	}}, &scan.RowsCall{}, nil)
	require.ErrorContains(t, err, "locked")
	_, err = openRows(ctx, ctx, &rowReader{rows: func(context.Context, func(*scan.RowsStart) error, func(*scan.RowsBatch) error) error { return nil }}, &scan.RowsCall{}, nil)
	require.ErrorContains(t, err, "before their read view was open")
	bounded, cancel := context.WithCancelCause(ctx)
	cancel(errOpenWait)
	_, err = openRows(ctx, bounded, &rowReader{rows: func(ctx context.Context, _ func(*scan.RowsStart) error, _ func(*scan.RowsBatch) error) error {
		<-ctx.Done()
		return ctx.Err()
	}}, &scan.RowsCall{}, nil)
	require.ErrorIs(t, err, errOpenWait)
	s, err = openRows(ctx, ctx, &rowReader{rows: func(_ context.Context, start func(*scan.RowsStart) error, send func(*scan.RowsBatch) error) error {
		if err := start(&scan.RowsStart{}); err != nil {
			return err
		}
		panic("oops")
	}}, &scan.RowsCall{}, nil)
	require.NoError(t, err)
	_, err = s.open(ctx, 0)
	require.ErrorContains(t, err, "oops")
	s.close()
}
