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
		require.Len(t, first.Fingerprint, len(fingerprintVersion)+33)
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
	again, err := width.fingerprint("", nil)
	require.NoError(t, err)
	require.Equal(t, width.Fingerprint, again, "not all versions of MySQL show the width")

	const old = "create table t(v varchar(10) collate utf8mb3_general_ci primary key)"
	named := build(t, "", old, old)
	text := &named.Columns[0].Source
	require.Equal(t, "utf8mb3_general_ci", text.Stored.Collation)
	text.Stored.Collation = "utf8_general_ci"
	again, err = named.fingerprint("", nil)
	require.NoError(t, err)
	require.Equal(t, named.Fingerprint, again, "older versions of MySQL say utf8")
}

// TestFingerprintOfRead tests that the type and the collation of a column by which the rule chooses rows are part of the fingerprint,
// selected or not: another collation chooses other rows.
func TestFingerprintOfRead(t *testing.T) {
	f := func(filter, columns string) {
		t.Helper()
		of := func(s string) string {
			return build(t, filter, "create table t(id int primary key, s "+s+")", "create table t("+columns+")").Fingerprint
		}
		ci := of("varchar(9) collate utf8mb4_general_ci")
		require.Equal(t, ci, of("varchar(9) collate utf8mb4_general_ci"))
		require.NotEqual(t, ci, of("varchar(9) collate utf8mb4_bin"))
		require.NotEqual(t, ci, of("varbinary(9)"))
	}
	const id = "id int primary key"
	f("select id from t where s <> 'x'", id)
	f("select id from t where s = 'x' and id > 1", id)
	f("select id from t where in_keyrange(s, 'xxhash', '-80')", id)
	f("select id, s from t where s <> 'x'", id+", s varchar(9) collate utf8mb4_bin")
}

// TestHasFingerprint tests that a fingerprint of another version is told from one of another plan.
func TestHasFingerprint(t *testing.T) {
	table := build(t, "", "create table t(id int primary key)", "create table t(id int primary key)")
	f := func(fingerprint string, wantSame, wantKnown bool) {
		t.Helper()
		same, known := table.HasFingerprint(fingerprint)
		require.Equal(t, wantSame, same)
		require.Equal(t, wantKnown, known)
	}
	f(table.Fingerprint, true, true)
	f(fingerprintVersion+":00", false, true)
	f("0:00", false, false)
	f("d97b36a2d97b36a2d97b36a2d97b36a2", false, false)
	f("", false, false)
}
