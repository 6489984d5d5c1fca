// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package differ

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"vitess.io/vitess/go/sqltypes"
	"vitess.io/vitess/go/vt/vttablet/queryservice"
	"vitess.io/vitess/go/vt/vttablet/tabletmanager/vdiff"
	"vitess.io/vitess/go/vt/vttablet/tmclient"

	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/pkrange"
	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/plan"
	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/scan"
	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/sidecar"
	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/verify"

	binlogdatapb "vitess.io/vitess/go/vt/proto/binlogdata"
	querypb "vitess.io/vitess/go/vt/proto/query"
	tabletmanagerdatapb "vitess.io/vitess/go/vt/proto/tabletmanagerdata"
	topodatapb "vitess.io/vitess/go/vt/proto/topodata"
)

const gtids = "MySQL56/3e11fa47-71ca-11e1-9e33-c80aa9429562:1-"

// streamedSides is a source that is read by VStreamRows, a target that is read by its scan service, the client that waits for
// positions, and the store; it notes in which order they are asked.
type streamedSides struct {
	Store
	silentObserver
	scan.Digester

	mu             sync.Mutex
	source, target []int          // ids of the rows
	changed        map[int]string // values on the source that are not "v"
	now            int            // transaction of the source's next read view
	broken         bool           // the source fails
	asked          []string
	saved          []sidecar.TableProgress
}

// sourceService and positionClient are the two faces of streamedSides whose interfaces share method names.
type sourceService struct {
	queryservice.QueryService
	*streamedSides
}

type positionClient struct {
	tmclient.TabletManagerClient
	*streamedSides
}

func (f *streamedSides) ask(format string, args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked = append(f.asked, fmt.Sprintf(format, args...))
}

func idRow(id int, value string) *querypb.Row {
	text := strconv.Itoa(id)
	return &querypb.Row{Lengths: []int64{int64(len(text)), int64(len(value))}, Values: []byte(text + value)}
}

var idFields = []*querypb.Field{{Name: "id", Type: sqltypes.Int64}, {Name: "v", Type: sqltypes.VarChar}}

func (f sourceService) VStreamRows(_ context.Context, req *binlogdatapb.VStreamRowsRequest, send func(*binlogdatapb.VStreamRowsResponse) error) error {
	after := -1 << 62
	if f.broken {
		return fmt.Errorf("disk full")
	}
	if req.Lastpk != nil {
		var err error
		if after, err = strconv.Atoi(string(req.Lastpk.Rows[0].Values)); err != nil {
			return err
		}
	}
	f.ask("source")
	if err := send(&binlogdatapb.VStreamRowsResponse{Fields: idFields, Gtid: gtids + strconv.Itoa(f.now)}); err != nil {
		return err
	}
	for _, id := range f.source {
		if id <= after {
			continue
		}
		value := "v"
		if other, ok := f.changed[id]; ok {
			value = other
		}
		if err := send(&binlogdatapb.VStreamRowsResponse{Rows: []*querypb.Row{idRow(id, value)}}); err != nil {
			return err
		}
	}
	return nil
}

func (f *streamedSides) Rows(_ context.Context, call *scan.RowsCall, start func(*scan.RowsStart) error, send func(*scan.RowsBatch) error, _ scan.Progress) error {
	f.ask("target")
	if call.Lock || len(call.Streams) != 1 {
		return fmt.Errorf("the target is read without its positions, or locked")
	}
	if err := start(&scan.RowsStart{Positions: map[int32]string{1: gtids + "5"}}); err != nil {
		return err
	}
	batch, r := &scan.RowsBatch{Fields: idFields}, call.Reads[0].Ranges[0]
	for _, id := range f.target {
		if len(r.After) > 0 && id <= int(r.After[0].Int) || len(r.UpTo) > 0 && id > int(r.UpTo[0].Int) {
			continue
		}
		batch.Rows = []*querypb.Row{idRow(id, "v")}
		if err := send(batch); err != nil {
			return err
		}
		batch = &scan.RowsBatch{}
	}
	if batch.Fields != nil {
		return send(batch)
	}
	return nil
}

func (f positionClient) WaitForPosition(_ context.Context, _ *topodatapb.Tablet, position string) error {
	f.ask("wait for %s", position[len(gtids):])
	return nil
}

func (f *streamedSides) SaveProgressOf(_ context.Context, _ int64, tables []sidecar.TableProgress) error {
	f.saved = append(f.saved, tables...)
	return nil
}

func (f *streamedSides) Streams(context.Context, string) ([]*sidecar.Stream, error) {
	return nil, fmt.Errorf("no database")
}

// silentObserver hears nothing.
type silentObserver struct{}

func (silentObserver) RowsCompared(string, int64)          {}
func (silentObserver) Phase(string, string, time.Duration) {}
func (silentObserver) TableRestarted(string)               {}
func (silentObserver) TableAt(string, int64)               {}
func (silentObserver) Ranges(_ string, _, _, _ int64)      {}
func (silentObserver) Read(_, _ int64)                     {}
func (silentObserver) View() func()                        { return func() {} }
func (silentObserver) HeldUp(time.Duration)                {}
func (silentObserver) Waiting(string)                      {}

func column(name string, typ querypb.Type) plan.Column {
	return plan.Column{Name: name, Source: plan.ColumnType{Type: typ}, Target: plan.ColumnType{Type: typ}, Order: plan.OrderSigned}
}

// streamedDigests returns the state of a run that compares one table of the sides.
func streamedDigests(t *testing.T, sides *streamedSides) (*digests, *digestTable) {
	t.Helper()
	table := &plan.Table{
		Name: "t", SourceQuery: "select", Columns: []plan.Column{column("id", sqltypes.Int64), column("v", sqltypes.VarChar)}, Key: []int{0}, SourceKey: []int{0}, TargetKey: []int{0},
		KeyUnique: true, Ordered: true, Mergeable: true, Digest: &plan.Digest{Ranged: true, Target: plan.DigestSide{Key: []string{"id"}}},
	}
	alias := &topodatapb.TabletAlias{Cell: "a", Uid: 1}
	r := &run{
		Config: Config{MaxSnapshotAge: time.Minute, LockWait: time.Minute, Concurrency: 2, CheckpointInterval: time.Hour, Store: sides, Dialer: &scan.Dialer{Local: alias, LocalService: sourceService{streamedSides: sides}}},
		v:      &sidecar.VDiff{Options: &tabletmanagerdatapb.VDiffOptions{CoreOptions: &tabletmanagerdatapb.VDiffCoreOptions{}}}, obs: sides, tmc: positionClient{streamedSides: sides}, maxReport: 1 << 20,
	}
	d := &digests{
		r: r, machine: verify.New(verify.Config{Workers: 2, FirstRows: 10, MinRows: 5, MaxRows: 20, Tries: 2, RetryAfter: time.Millisecond}), changed: make(chan struct{}),
		started: time.Now(), tables: map[verify.TableID]*digestTable{},
		readers: &readers{streamed: true, target: sides, streams: []int32{1}, picked: &tablets{target: &topodatapb.Tablet{Alias: alias}, sources: map[int32]*topodatapb.Tablet{1: {Alias: alias}}}},
	}
	dt := &digestTable{job: r.newJob(table, &sidecar.Table{Name: "t", TableRows: 100}), id: "t", target: &scan.Table{Name: "t"}}
	d.tables["t"] = dt
	require.NoError(t, d.machine.Add(dt.forMachine()))
	return d, dt
}

// Tests tables of a source without a scan service: in walks of few rows, each of which opens the target first, waits for its position, and
// only then opens the source, equal tables are verified and completed; a row that differs, is missing or too many on either side
// is left, in a range of its own table only, at once where nothing has changed on the source and after further tries where something has.
func TestWorkStreamed(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	ids := func(n int, without ...int) (list []int) {
		for id := range n {
			if len(without) == 0 || id != without[0] {
				list = append(list, id*3)
			}
		}
		return list
	}
	f := func(name string, sides *streamedSides, different bool) {
		t.Helper()
		d, dt := streamedDigests(t, sides)
		require.NoError(t, d.worker(t.Context()), name)
		require.False(t, dt.rowWay, name)
		require.True(t, d.machine.Finished("t"), name)
		for i, what := range sides.asked {
			require.Equal(t, []string{"target", "wait for 5", "source"}[i%3], what, name)
		}
		if !different {
			assert.True(t, dt.completed, name)
			last := sides.saved[len(sides.saved)-1]
			assert.Equal(t, vdiff.CompletedState, last.State, name)
			assert.Equal(t, int64(len(sides.target)), last.RowsCompared, name)
			return
		}
		assert.False(t, dt.completed, name)
		left := d.machine.Left("t")
		require.Len(t, left, 1, name)
		if len(left[0].After) > 0 && len(left[0].UpTo) > 0 {
			assert.Less(t, left[0].UpTo[0].Int-left[0].After[0].Int, int64(100), name)
		}
		assert.GreaterOrEqual(t, d.machine.Stats("t").Rows, int64(70), name)
	}
	f("empty", &streamedSides{now: 5}, false)
	f("equal", &streamedSides{source: ids(100), target: ids(100), now: 5}, false)
	f("moving", &streamedSides{source: ids(100), target: ids(100), now: 7}, false)
	for _, now := range []int{5, 7} {
		f("changed", &streamedSides{source: ids(100), target: ids(100), changed: map[int]string{150: "x"}, now: now}, true)
		f("missing", &streamedSides{source: ids(100), target: ids(100, 50), now: now}, true)
		f("extra", &streamedSides{source: ids(100, 50), target: ids(100), now: now}, true)
		f("behind the last", &streamedSides{source: ids(101), target: ids(100), now: now}, true)
		f("before the first", &streamedSides{source: append([]int{-7}, ids(100)...), target: ids(100), now: now}, true)
	}
}

// Tests that a table whose rows have no order, or whose ranges VStreamRows cannot be told, is left to be compared row by row.
func TestNotStreamed(t *testing.T) {
	f := func(table *plan.Table, task verify.Task) {
		t.Helper()
		r := &run{Config: Config{}, v: &sidecar.VDiff{Options: &tabletmanagerdatapb.VDiffOptions{CoreOptions: &tabletmanagerdatapb.VDiffCoreOptions{}}}}
		dt := &digestTable{job: r.newJob(table, &sidecar.Table{Name: "t"}), id: "t"}
		d := &digests{r: r, machine: verify.New(verify.Config{}), changed: make(chan struct{}), tables: map[verify.TableID]*digestTable{"t": dt}}
		task.Table = "t"
		require.NoError(t, d.workStreamed(t.Context(), []verify.Task{task}, &readers{streamed: true}))
		assert.True(t, dt.rowWay)
	}
	f(keyed(), verify.Task{Buckets: 16})
	f(&plan.Table{Name: "t", Digest: &plan.Digest{}}, verify.Task{})
	task := verify.Task{}
	long := keyed()
	bound, err := keyBound(long, []sqltypes.Value{
		sqltypes.NewInt64(1), sqltypes.NewUint64(1), sqltypes.NewDecimal("1"), sqltypes.MakeTrusted(sqltypes.Datetime, []byte("2026-01-02 03:04:05")),
		sqltypes.NewVarChar(string(make([]byte, 1<<16))), sqltypes.NULL,
	})
	require.NoError(t, err)
	task.Range.After = bound
	f(long, task)
}

// Tests that a source which fails every time ends the run with an error that is retried later, although the target answers each time.
func TestSourceThatFails(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	sides := &streamedSides{source: []int{1}, target: []int{1}, broken: true}
	d, dt := streamedDigests(t, sides)
	d.r.RetryInterval = time.Millisecond
	err := d.worker(t.Context())
	require.ErrorContains(t, err, "disk full")
	class, ok := sidecar.ClassOf(err)
	assert.True(t, ok)
	assert.Equal(t, sidecar.Transient, class)
	assert.False(t, dt.completed)
	assert.Empty(t, sides.saved)
}

// Tests that a table whose checkpoint says that every range is verified is completed without any range being read, with the rows of its ranges.
func TestCheckpointOfAll(t *testing.T) {
	sides := &streamedSides{}
	d, dt := streamedDigests(t, sides)
	at := pkrange.Bound{{Kind: pkrange.Int, Int: 5}}
	d.machine.Remove("t")
	dt.segments = []verify.Segment{{Range: pkrange.Range{UpTo: at}, Done: true, Rows: 6}, {Range: pkrange.Range{After: at}, Done: true, Rows: 4}}
	require.NoError(t, d.machine.Add(dt.forMachine()))
	require.NoError(t, d.worker(t.Context()))
	assert.Empty(t, sides.asked)
	require.NoError(t, d.record(t.Context(), []*digestTable{dt}))
	assert.True(t, dt.completed)
	require.Len(t, sides.saved, 1)
	assert.Equal(t, vdiff.CompletedState, sides.saved[0].State)
	assert.Equal(t, int64(10), sides.saved[0].RowsCompared)
}
