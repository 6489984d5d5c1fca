// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package plan

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestFingerprint tests that whatever changes which rows or values are compared, or the order of a key, changes the fingerprint of
// a plan, on either side; and that the same plan has the same one.
func TestFingerprint(t *testing.T) {
	const table = "create table t(v varchar(10) collate utf8mb4_0900_ai_ci primary key, x int)"
	f := func(filter, source, target string, wantSame bool) {
		t.Helper()
		first, other := build(t, "", table, table), build(t, filter, source, target)
		require.Len(t, first.Fingerprint, 32)
		require.Equal(t, wantSame, first.Fingerprint == other.Fingerprint)
	}
	f("", table, table, true)
	f("select * from t where x = 1", table, table, false)
	f("-80", table, table, false)
	f("select v, sum(x) as x from t group by v", table, table, false)
	f("select v from t", table, table, false)
	for _, other := range []string{
		"create table t(v varchar(10) collate utf8mb4_bin primary key, x int)",
		"create table t(v varchar(10) collate utf8mb3_general_ci primary key, x int)",
		"create table t(v varchar(11) collate utf8mb4_0900_ai_ci primary key, x int)",
		"create table t(v varchar(10) collate utf8mb4_0900_ai_ci primary key, x bigint)",
		"create table t(v varchar(10) collate utf8mb4_0900_ai_ci primary key, x int not null)",
		"create table t(v varchar(10) collate utf8mb4_0900_ai_ci, x int, primary key(v, x))",
	} {
		f("", other, other, false)
		f("", other, table, false)
		f("", table, other, false)
	}
	const wider = "create table t(v varchar(10) collate utf8mb4_0900_ai_ci primary key, x int, c int not null)"
	f("", wider, wider, false)

	require.Equal(t, build(t, "select v, count(*) as x from t group by v", table, table).Fingerprint, build(t, "select v, count(*) as x from t group by v", table, table).Fingerprint)
	width := build(t, "", table, table)
	width.Columns[1].Source.ColumnType = "int(11)"
	again, err := width.fingerprint("")
	require.NoError(t, err)
	require.Equal(t, width.Fingerprint, again, "not all versions of MySQL show the width")
}
