// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package plan

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/prototext"

	"vitess.io/vitess/go/sqltypes"

	querypb "vitess.io/vitess/go/vt/proto/query"
	tabletmanagerdatapb "vitess.io/vitess/go/vt/proto/tabletmanagerdata"
)

// sqlOf returns the key of a lastpk as SQL, as VStreamRows puts it into its query.
func sqlOf(qr *querypb.QueryResult) string {
	var list []string
	for _, value := range sqltypes.Proto3ToResult(qr).Rows[0] {
		var sb strings.Builder
		value.EncodeSQLStringBuilder(&sb)
		list = append(list, sb.String())
	}
	return strings.Join(list, ",")
}

// TestLastPK tests that a row comes back as the key of each side, and that the source's is stored only
// where it differs from the target's.
func TestLastPK(t *testing.T) {
	f := func(plan *Table, row []sqltypes.Value, wantSource, wantTarget string, wantOwnSource bool) {
		t.Helper()
		require.True(t, plan.Ordered, plan.NotOrdered)
		stored, err := EncodeLastPK(plan, row)
		require.NoError(t, err)
		var message tabletmanagerdatapb.VDiffTableLastPK
		require.NoError(t, prototext.Unmarshal(stored, &message))
		require.Equal(t, wantOwnSource, message.Source != nil)
		source, target, err := DecodeLastPK(plan, stored)
		require.NoError(t, err)
		require.Equal(t, wantSource, sqlOf(source))
		require.Equal(t, wantTarget, sqlOf(target))
	}
	one := "create table t(id int, k varbinary(9), n varchar(9), primary key(k,id))"
	row := []sqltypes.Value{sqltypes.NewInt32(7), sqltypes.NewVarBinary("\x00\xff'"), sqltypes.NewVarChar("x")}
	f(build(t, "", one, one), row, `_binary'\0`+"\xff"+`\'',7`, `_binary'\0`+"\xff"+`\'',7`, false)
	f(build(t, "", one, "create table t(id bigint, k varbinary(9), n varchar(9), primary key(k,id))"),
		row, `_binary'\0`+"\xff"+`\'',7`, `_binary'\0`+"\xff"+`\'',7`, true)
	tenants := build(t, "select * from t where tenant = 2", "create table t(id int primary key, tenant int not null)", "create table t(id int, tenant int, primary key(tenant,id))")
	f(tenants, []sqltypes.Value{sqltypes.NewInt32(7), sqltypes.NewInt32(2)}, "7", "2,7", true)
	dates := "create table t(d date, dec1 decimal(10,2), n varchar(9), primary key(d,dec1,n))"
	f(build(t, "", dates, dates), []sqltypes.Value{
		sqltypes.MakeTrusted(sqltypes.Date, []byte("2026-01-02")), sqltypes.MakeTrusted(sqltypes.Decimal, []byte("-1.50")), sqltypes.NewVarChar("é'"),
	}, `'2026-01-02',-1.50,'é\''`, `'2026-01-02',-1.50,'é\''`, false)
}

// TestLastPKTooLong tests that a key that does not fit the column is told from other errors.
func TestLastPKTooLong(t *testing.T) {
	const table = "create table t(k varbinary(3000) primary key)"
	plan := build(t, "", table, table)
	f := func(value string, wantTooLong bool) {
		t.Helper()
		stored, err := EncodeLastPK(plan, []sqltypes.Value{sqltypes.NewVarBinary(value)})
		require.Equal(t, wantTooLong, err != nil)
		require.LessOrEqual(t, len(stored), MaxLastPK)
		if wantTooLong {
			require.ErrorIs(t, err, ErrLastPKTooLong)
			require.ErrorIs(t, err, ErrNoCheckpoint)
			require.NotContains(t, err.Error(), value)
		}
	}
	f(strings.Repeat("a", 1800), false)
	f(strings.Repeat("a", 2000), true)
	f(strings.Repeat("\x00", 1800), true)

	merged := build(t, "", "create table t(id int primary key, day date not null)", "create table t(id int, day date, primary key(id,day))")
	_, err := EncodeLastPK(merged, []sqltypes.Value{sqltypes.NewInt32(1), sqltypes.NewVarChar("2020-01-01")})
	require.ErrorIs(t, err, ErrNoCheckpoint)
	require.NotErrorIs(t, err, ErrLastPKTooLong)
	_, _, err = DecodeLastPK(merged, []byte(`target:{}`))
	require.ErrorIs(t, err, ErrNoCheckpoint)
}

// TestLastPKDates tests that no stream is told to begin behind a date that MySQL may refuse to compare with: with zeros in it, or of a day
// that is none.
func TestLastPKDates(t *testing.T) {
	f := func(source, target, value string, ok bool) {
		t.Helper()
		plan := build(t, "", "create table t(id int, d "+source+" not null, primary key(id,d))", "create table t(id int, d "+target+" not null, primary key(id,d))")
		_, err := EncodeLastPK(plan, []sqltypes.Value{sqltypes.NewInt32(1), sqltypes.MakeTrusted(plan.Columns[1].Target.Type, []byte(value))})
		if ok {
			require.NoError(t, err)
			return
		}
		require.ErrorIs(t, err, ErrNoCheckpoint)
	}
	for _, date := range []string{"2024-02-29", "1000-01-01", "9999-12-31"} {
		f("date", "date", date, true)
		f("datetime(3)", "datetime(3)", date+" 23:59:59.999", true)
		f("timestamp", "timestamp", date+" 00:00:00", true)
	}
	for _, date := range []string{"0000-00-00", "2020-00-00", "2020-01-00", "0000-01-01", "2023-02-29", "", "2020"} {
		f("date", "date", date, false)
		f("datetime", "datetime", date+" 12:07:35", false)
		f("timestamp", "timestamp", date+" 00:00:00", false)
		f("datetime", "date", date, false)
	}
	f("varchar(20)", "varchar(20)", "0000-00-00", true)
	f("year", "year", "0000", true)
}

// TestDecodeLastPK tests that whatever does not fit the table is refused: it would make the stream
// start somewhere else, or its query something else.
func TestDecodeLastPK(t *testing.T) {
	const table = "create table t(id bigint, k varchar(9), primary key(id,k))"
	plan := build(t, "", table, table)
	f := func(stored, want string) {
		t.Helper()
		_, _, err := DecodeLastPK(plan, []byte(stored))
		if want == "" {
			require.NoError(t, err)
			return
		}
		require.ErrorContains(t, err, want)
		require.NotContains(t, err.Error(), "secret")
	}
	const (
		id = `fields:{name:"id" type:INT64}`
		k  = `fields:{name:"k" type:VARCHAR}`
	)
	f(`target:{`+id+k+` rows:{lengths:1 lengths:2 values:"7ab"}}`, "")
	// The stock engine's fields say more, and it knows the source's as the target's column.
	f(`target:{fields:{name:"ID" type:INT64 table:"t" org_table:"t" database:"vt_x" org_name:"id" column_length:20 charset:63 flags:49667}`+k+` rows:{lengths:1 lengths:2 values:"7ab"}} source:{`+id+k+` rows:{lengths:1 lengths:0 values:"7"}}`, "")
	// It takes text of a _bin collation for binary.
	f(`target:{`+id+`fields:{name:"k" type:VARBINARY} rows:{lengths:1 lengths:2 values:"7ab"}}`, "")
	f(`target:{`+id+`fields:{name:"k" type:BLOB} rows:{lengths:1 lengths:2 values:"7ab"}}`, "field 2")
	f(`secret`, "not a VDiffTableLastPK")
	f(`target:{`, "not a VDiffTableLastPK")
	f(``, "missing")
	f(`source:{`+id+k+` rows:{lengths:1 lengths:2 values:"7ab"}}`, "for the target: missing")
	f(`target:{`+id+k+`}`, "one row")
	f(`target:{`+id+` rows:{lengths:1 values:"7"}}`, "one row of 2 columns")
	f(`target:{`+id+k+` rows:{lengths:1 lengths:2 values:"7ab"} rows:{lengths:1 lengths:2 values:"7ab"}}`, "one row")
	f(`target:{`+id+k+` rows:{lengths:1 values:"7"}}`, "one row")
	f(`target:{`+k+id+` rows:{lengths:1 lengths:1 values:"77"}}`, "field 1 is not column id")
	f(`target:{`+id+`fields:{name:"k" type:INT64} rows:{lengths:1 lengths:1 values:"77"}}`, "field 2 is not column k")
	f(`target:{`+id+k+` rows:{lengths:1 lengths:9 values:"7secret"}}`, "column k has no value")
	f(`target:{`+id+k+` rows:{lengths:-1 lengths:1 values:"7"}}`, "column id has no value")
	f(`target:{`+id+k+` rows:{lengths:1 lengths:1 values:"7secret"}}`, "left over")
	f(`target:{`+id+k+` rows:{lengths:8 lengths:1 values:"1 or 1=1x"}}`, "column id is not of its type")
	f(`target:{`+id+k+` rows:{lengths:1 lengths:2 values:"7ab"}} source:{`+id+` rows:{lengths:1 values:"7"}}`, "for the source")

	// A source key of its own must be there when the sides differ.
	wider := build(t, "", "create table t(id int primary key)", "create table t(id bigint primary key)")
	_, _, err := DecodeLastPK(wider, []byte(`target:{fields:{name:"id" type:INT64} rows:{lengths:1 values:"7"}}`))
	require.ErrorContains(t, err, "for the source: missing")
	_, err = EncodeLastPK(wider, nil)
	require.ErrorContains(t, err, "0 columns")
}
