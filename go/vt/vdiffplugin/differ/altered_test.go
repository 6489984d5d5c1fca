// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package differ

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"vitess.io/vitess/go/vt/topo"
	"vitess.io/vitess/go/vt/vtenv"
	"vitess.io/vitess/go/vt/vterrors"
	"vitess.io/vitess/go/vt/vttablet/tabletmanager/vdiff"

	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/report"
	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/sidecar"

	binlogdatapb "vitess.io/vitess/go/vt/proto/binlogdata"
	tabletmanagerdatapb "vitess.io/vitess/go/vt/proto/tabletmanagerdata"
	topodatapb "vitess.io/vitess/go/vt/proto/topodata"
)

// recordStore has records of tables, which it changes as the database would.
type recordStore struct {
	Store
	tables  []*sidecar.Table
	streams []*sidecar.Stream
	reads   func(n int) // called before the streams are read for the nth time, if set
	count   int
	broken  error // of StartTables
}

func (s *recordStore) Streams(context.Context, string) ([]*sidecar.Stream, error) {
	if s.count++; s.reads != nil {
		s.reads(s.count)
	}
	return s.streams, nil
}

func (s *recordStore) table(name string) *sidecar.Table {
	for _, t := range s.tables {
		if t.Name == name {
			return t
		}
	}
	return &sidecar.Table{}
}

func (s *recordStore) Tables(context.Context, int64) ([]*sidecar.Table, error) {
	var tables []*sidecar.Table
	for _, t := range s.tables {
		one := *t
		tables = append(tables, &one)
	}
	return tables, nil
}

func (s *recordStore) StartTables(_ context.Context, _ int64, names []string) error {
	if s.broken != nil {
		return s.broken
	}
	for _, name := range names {
		s.table(name).State = vdiff.StartedState
	}
	return nil
}

func (s *recordStore) SaveProgressOf(_ context.Context, _ int64, tables []sidecar.TableProgress) error {
	for _, p := range tables {
		t := s.table(p.Table)
		t.RowsCompared, t.LastPK, t.Report, t.Mismatch = p.RowsCompared, p.LastPK, p.Report, p.Mismatch
		if p.State != "" {
			t.State = p.State
		}
	}
	return nil
}

func (s *recordStore) SaveProgress(_ context.Context, _ int64, table string, p *sidecar.Progress) error {
	return s.SaveProgressOf(context.Background(), 0, []sidecar.TableProgress{{Table: table, Progress: p}})
}

func (s *recordStore) EnsureTables(context.Context, int64, []string, bool) error { return nil }

func (s *recordStore) Log(context.Context, int64, string) error { return nil }

// runOfTable is a run whose workflow has the tables t and other; it has the columns of t on the target and on each source shard, nil
// for none.
func runOfTable(t *testing.T, target []string, shards ...[]string) (*run, *recordStore) {
	t.Helper()
	names := []string{"-80", "80-"}[:len(shards)]
	ts := topoOfShards(t, names...)
	client := &schemaClient{columns: map[string]map[string][]string{"0": {"other": {"id"}}}}
	if target != nil {
		client.columns["0"]["t"] = target
	}
	var sources []source
	for i, columns := range shards {
		shard := names[i]
		sources = append(sources, source{int32(i + 1), shard})
		client.columns[shard] = map[string][]string{"other": {"id"}}
		if columns != nil {
			client.columns[shard]["t"] = columns
		}
	}
	require.NoError(t, ts.SaveVSchema(t.Context(), &topo.KeyspaceVSchemaInfo{Name: "ks"}))
	store := &recordStore{}
	for _, s := range sources {
		store.streams = append(store.streams, &sidecar.Stream{ID: s.streamID, State: "Running", Pos: sourceGTIDs})
	}
	v := &sidecar.VDiff{UUID: "u", Options: &tabletmanagerdatapb.VDiffOptions{CoreOptions: &tabletmanagerdatapb.VDiffCoreOptions{}}}
	return &run{
		Config: Config{Env: vtenv.NewTestEnv(), Store: store, Tablet: func() *topodatapb.Tablet { return &topodatapb.Tablet{Keyspace: "tk", Shard: "0"} }},
		v:      v, obs: silentObserver{}, sourceTopo: ts, sourceKeyspace: "ks", shards: sources, tmc: client, maxReport: 1 << 20,
		filter: &binlogdatapb.Filter{Rules: []*binlogdatapb.Rule{{Match: "t"}, {Match: "other"}}},
	}, store
}

// Tests which completed tables are compared again at the end of a run: those whose plan is another one now, from the first row. Where the two
// sides do not fit together at that moment it is an error that is tried again, and tables that are gone stay completed.
func TestAltered(t *testing.T) {
	old, wide := []string{"id", "v"}, []string{"id", "v", "c"}
	first, _ := runOfTable(t, old, old)
	list, _, err := first.tables(t.Context())
	require.NoError(t, err)
	doc := func(plan string) []byte {
		b := report.NewBuilder(list[1].table, nil, first.reportOptions())
		text, err := b.Marshal()
		require.NoError(t, err)
		r, err := report.Unmarshal(text)
		require.NoError(t, err)
		if plan != "same" {
			r.Plan = plan
		}
		other := *list[1].table
		other.Fingerprint = r.Plan
		text, err = report.NewBuilder(&other, r, first.reportOptions()).Marshal()
		require.NoError(t, err)
		return text
	}
	require.Equal(t, "t", list[1].name)
	f := func(print string, known bool, wantJobs int, wantErr string, target []string, shards ...[]string) {
		t.Helper()
		r, store := runOfTable(t, target, shards...)
		r.v.Options.CoreOptions.Tables = "t"
		store.tables = []*sidecar.Table{{Name: "t", State: vdiff.CompletedState, Report: doc(print), RowsCompared: 1000, LastPK: []byte("x")}}
		var failed []tableError
		if known {
			failed = []tableError{{"t", assert.AnError}}
		}
		jobs, failed, err := r.altered(t.Context(), failed)
		require.NoError(t, err)
		require.Len(t, jobs, wantJobs)
		record := store.table("t")
		if wantJobs > 0 {
			assert.Nil(t, jobs[0].lastPK)
			assert.Equal(t, vdiff.StartedState, record.State)
			assert.Nil(t, record.LastPK, "nobody goes on behind it")
			assert.Zero(t, record.RowsCompared)
			now, err := report.Unmarshal(record.Report)
			require.NoError(t, err)
			assert.Equal(t, jobs[0].table.Fingerprint, now.Plan)
			assert.NotEqual(t, list[1].table.Fingerprint, now.Plan)
			return
		}
		assert.Equal(t, vdiff.CompletedState, record.State)
		if wantErr == "" {
			assert.Empty(t, failed)
			return
		}
		require.Len(t, failed, 1)
		assert.ErrorContains(t, failed[0].err, wantErr)
		class, _ := sidecar.ClassOf(failed[0].err)
		assert.Equal(t, sidecar.Transient, class)
	}
	f("same", false, 0, "", old, old)
	f("same", false, 1, "", wide, wide)
	f("same", true, 0, "", wide, wide) // it failed, and is tried again anyway
	f("same", false, 0, "", wide, old) // a column that only the target has is nobody's difference
	f("same", false, 0, "columns that the target table does not have", old, wide)
	f("same", false, 0, "not the same on the source shards", wide, wide, old)
	f("same", false, 0, "", old, nil)
	f("same", false, 0, "", nil, old)
	f("", false, 0, "", wide, wide)     // by the stock engine
	f("", false, 0, "", old, wide)      // likewise
	f("0:12", false, 0, "", wide, wide) // by another version of ours
}

// Tests that an altered table whose comparison could not begin again is compared by the next run: it is not left completed with a report that says
// nothing but the new plan.
func TestAlteredBroken(t *testing.T) {
	first, _ := runOfTable(t, []string{"id"}, []string{"id"})
	list, _, err := first.tables(t.Context())
	require.NoError(t, err)
	text, err := report.NewBuilder(list[1].table, nil, first.reportOptions()).Marshal()
	require.NoError(t, err)
	r, store := runOfTable(t, []string{"id", "v"}, []string{"id", "v"})
	r.v.Options.CoreOptions.Tables = "t"
	store.tables = []*sidecar.Table{{Name: "t", State: vdiff.CompletedState, Report: text, RowsCompared: 1000, Mismatch: true}}
	store.broken = assert.AnError
	_, _, err = r.altered(t.Context(), nil)
	require.ErrorIs(t, vterrors.RootCause(err), assert.AnError)
	store.broken = nil
	jobs, failed, err := r.plan(t.Context())
	require.NoError(t, err)
	require.Empty(t, failed)
	require.Len(t, jobs, 1)
}

// Tests that an ALTER that is on its way is tried again as often as it takes, and that a table that never could be compared is not.
func TestAlteredOnItsWay(t *testing.T) {
	first, _ := runOfTable(t, []string{"id"}, []string{"id"})
	list, _, err := first.tables(t.Context())
	require.NoError(t, err)
	text, err := report.NewBuilder(list[1].table, nil, first.reportOptions()).Marshal()
	require.NoError(t, err)
	f := func(text []byte, want sidecar.Class) {
		t.Helper()
		r, store := runOfTable(t, []string{"id"}, []string{"id", "v"})
		r.v.Options.CoreOptions.Tables = "t"
		store.tables = []*sidecar.Table{{Name: "t", State: vdiff.ErrorState, Report: text}}
		_, failed, err := r.plan(t.Context())
		require.NoError(t, err)
		require.Len(t, failed, 1)
		class, _ := sidecar.ClassOf(summary(failed))
		assert.Equal(t, want, class)
	}
	f(text, sidecar.Transient)
	f(nil, sidecar.Permanent)
}

// Tests that tables which the target does not have are told by name and keep no other from being compared: those that a rule names, and those
// that were there when the vdiff began. One that was completed before stays so.
func TestAbsent(t *testing.T) {
	r, store := runOfTable(t, []string{"id"}, []string{"id"})
	r.filter.Rules = append(r.filter.Rules, &binlogdatapb.Rule{Match: "never"})
	for name, state := range map[string]vdiff.VDiffState{"t": vdiff.PendingState, "other": vdiff.PendingState, "never": vdiff.PendingState, "left": vdiff.StartedState, "done": vdiff.CompletedState} {
		store.tables = append(store.tables, &sidecar.Table{Name: name, State: state})
	}
	jobs, failed, err := r.plan(t.Context())
	require.NoError(t, err)
	require.Len(t, jobs, 2)
	err = summary(failed)
	assert.ErrorContains(t, err, "table never: it is a table of the workflow, and the target does not have it")
	assert.ErrorContains(t, err, "table left: it was a table of the workflow when the vdiff began")
	assert.NotContains(t, err.Error(), "done")
	class, _ := sidecar.ClassOf(err)
	assert.Equal(t, sidecar.Permanent, class)

	r, store = runOfTable(t, []string{"id"}, []string{"id"}, []string{"id"})
	r.filter.Rules = []*binlogdatapb.Rule{{Match: "/.*"}}
	r.tmc.(*schemaClient).columns["80-"]["late"] = []string{"id"} // created on the source since
	for _, name := range []string{"t", "other", "late"} {
		store.tables = append(store.tables, &sidecar.Table{Name: name, State: vdiff.PendingState})
	}
	jobs, failed, err = r.plan(t.Context())
	require.NoError(t, err)
	require.Len(t, jobs, 2)
	assert.ErrorContains(t, summary(failed), "table late: it is a table of the workflow, and the target does not have it")
	r.v.Options.CoreOptions.Tables = "t"
	store.tables = []*sidecar.Table{{Name: "t", State: vdiff.PendingState}}
	_, failed, err = r.plan(t.Context())
	require.NoError(t, err)
	assert.Empty(t, failed, "it was not asked for")

	store.tables = store.tables[:0]
	r.filter.Rules = []*binlogdatapb.Rule{{Match: "/x.*"}}
	r.v.Options.CoreOptions.Tables = ""
	_, _, err = r.plan(t.Context())
	assert.ErrorContains(t, err, "no tables on this shard")
	class, _ = sidecar.ClassOf(err)
	assert.Equal(t, sidecar.Permanent, class)
}

// Tests that a run ends although a schema changes whenever its table was compared, with an error of that table alone which is tried again.
func TestAlwaysAltered(t *testing.T) {
	r, store := runOfTable(t, []string{"id"}, []string{"id"})
	client := r.tmc.(*schemaClient)
	list, _, err := r.tables(t.Context())
	require.NoError(t, err)
	for _, p := range list {
		text, err := report.NewBuilder(p.table, nil, r.reportOptions()).Marshal()
		require.NoError(t, err)
		store.tables = append(store.tables, &sidecar.Table{Name: p.name, State: vdiff.CompletedState, Report: text})
	}
	compared := map[string]int{}
	err = r.untilUnaltered(t.Context(), nil, nil, func(_ context.Context, jobs []*job) ([]tableError, error) {
		for _, j := range jobs {
			compared[j.table.Name]++
			store.table(j.table.Name).State = vdiff.CompletedState
		}
		for _, shard := range []string{"0", "-80"} {
			client.columns[shard]["t"] = append(client.columns[shard]["t"], fmt.Sprintf("x%d", compared["t"]))
			if len(client.columns[shard]["t"]) == 3 {
				client.columns[shard]["other"] = []string{"id", "y"}
			}
		}
		return nil, nil
	})
	require.ErrorContains(t, err, "table t: its schema changed")
	assert.NotContains(t, err.Error(), "other")
	class, _ := sidecar.ClassOf(err)
	assert.Equal(t, sidecar.Transient, class)
	assert.Equal(t, map[string]int{"t": maxAltered, "other": 1}, compared)
	assert.Equal(t, []string{"t"}, sidecar.TablesOf(err))
	assert.Equal(t, vdiff.CompletedState, store.table("other").State)
}
