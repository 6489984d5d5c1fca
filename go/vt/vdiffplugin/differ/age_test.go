// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package differ

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"vitess.io/vitess/go/mysql/collations"
	"vitess.io/vitess/go/sqltypes"
	"vitess.io/vitess/go/vt/sqlparser"
	"vitess.io/vitess/go/vt/vttablet/queryservice"

	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/plan"
	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/scan"
	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/sidecar"

	binlogdatapb "vitess.io/vitess/go/vt/proto/binlogdata"
	querypb "vitess.io/vitess/go/vt/proto/query"
	tabletmanagerdatapb "vitess.io/vitess/go/vt/proto/tabletmanagerdata"
	topodatapb "vitess.io/vitess/go/vt/proto/topodata"
)

const (
	// agedBatch is how many rows come in a tenth of a second: more than the comparison tells its progress after.
	agedBatch = 3_000
	agedTick  = 100 * time.Millisecond
)

// agedRows sends a batch of rows (d, id) each tick of the bubble's clock: first some of a date that is no literal, then some of one.
type agedRows struct {
	queryservice.QueryService
	zero, dated int
	stalls      bool // no row comes after these
}

func (a agedRows) VStreamRows(ctx context.Context, _ *binlogdatapb.VStreamRowsRequest, send func(*binlogdatapb.VStreamRowsResponse) error) error {
	fields := []*querypb.Field{{Name: "d", Type: sqltypes.Datetime}, {Name: "id", Type: sqltypes.Int32}}
	if err := send(&binlogdatapb.VStreamRowsResponse{Fields: fields, Gtid: gtids + "5"}); err != nil {
		return err
	}
	id := int32(0)
	for n := range a.zero + a.dated {
		date := "0000-00-00 00:00:00"
		if n >= a.zero {
			date = "2024-01-01 00:00:00"
		}
		rows := make([]*querypb.Row, agedBatch)
		for i := range rows {
			id++
			rows[i] = sqltypes.RowToProto3([]sqltypes.Value{sqltypes.MakeTrusted(sqltypes.Datetime, []byte(date)), sqltypes.NewInt32(id)})
		}
		if err := send(&binlogdatapb.VStreamRowsResponse{Rows: rows}); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(agedTick):
		}
	}
	if a.stalls {
		<-ctx.Done()
	}
	return ctx.Err()
}

// Tests read views that grow too old among rows whose key cannot be stored: they live on until a row has one that can, so that the
// table does not begin again for ever. --max-diff-duration ends it with an error that says so.
func TestOldViewsWithoutPlace(t *testing.T) {
	date := plan.ColumnSchema{Name: "d", ColumnType: plan.ColumnType{Type: sqltypes.Datetime, ColumnType: "datetime", Collation: collations.CollationBinaryID}}
	id := plan.ColumnSchema{Name: "id", ColumnType: plan.ColumnType{Type: sqltypes.Int32, ColumnType: "int", Collation: collations.CollationBinaryID}}
	schema := &plan.TableSchema{Name: "t", Columns: []plan.ColumnSchema{date, id}, Key: []string{"d", "id"}, KeyUnique: true,
		Unique: []plan.UniqueIndex{{Name: "PRIMARY", Columns: []string{"d", "id"}}}}
	built, err := plan.Build(plan.Input{
		Rule: &binlogdatapb.Rule{Match: "t"}, Source: schema, Target: schema, SourceShards: 1, Parser: sqlparser.NewTestParser(), Collations: collations.MySQL8(),
	})
	require.NoError(t, err)
	require.True(t, built.Ordered)
	f := func(rows agedRows, maxDiff int64, want outcome, wantErr string, rowsKept int64, kept bool) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			alias := &topodatapb.TabletAlias{Cell: "a", Uid: 1}
			v := &sidecar.VDiff{UUID: "u", Options: &tabletmanagerdatapb.VDiffOptions{CoreOptions: &tabletmanagerdatapb.VDiffCoreOptions{MaxDiffSeconds: maxDiff}}}
			r := &run{
				Config: Config{MaxSnapshotAge: time.Second, CheckpointInterval: agedTick, Store: &recordStore{}, Dialer: &scan.Dialer{Local: alias, LocalService: rows}},
				v:      v, obs: silentObserver{}, maxReport: 1 << 20,
			}
			j := r.newJob(built, &sidecar.Table{Name: "t"})
			open := func(query string) *scan.Stream {
				s, err := r.Dialer.Open(t.Context(), scan.Request{Tablet: &topodatapb.Tablet{Alias: alias}, Query: query})
				require.NoError(t, err)
				return s
			}
			res := j.compare(t.Context(), &views{sources: []*scan.Stream{open(built.SourceQuery)}, target: open(built.TargetQuery), opened: time.Now()})
			assert.Equal(t, want, res.outcome)
			if wantErr == "" {
				assert.NoError(t, res.err)
			} else {
				assert.ErrorContains(t, res.err, wantErr)
				assert.True(t, isPermanent(res.err))
			}
			if rowsKept >= 0 {
				assert.Equal(t, rowsKept, j.processed())
			}
			assert.Equal(t, kept, j.lastPK != nil)
			r.Dialer.Wait(time.Second)
		})
	}
	f(agedRows{zero: 200}, 0, outcomeDone, "", 200*agedBatch, false)
	f(agedRows{zero: 200, dated: 5}, 0, outcomeAgain, "", -1, true)
	f(agedRows{dated: 200}, 0, outcomeAgain, "", -1, true)
	f(agedRows{zero: 200}, 5, outcomeFailed, "none of their keys can be stored", -1, false)
	f(agedRows{dated: 200}, 5, outcomeAgain, "", -1, true)
	f(agedRows{dated: 1, stalls: true}, 5, outcomeAgain, "", 0, false) // nothing is wrong with its keys
}
