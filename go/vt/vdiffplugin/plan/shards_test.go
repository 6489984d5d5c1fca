// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package plan

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestUnlike tests that whatever makes the plan of one source shard wrong for another one is told, whichever of the two has it.
func TestUnlike(t *testing.T) {
	const table = "create table t(id int primary key, v varchar(10) character set utf8mb4 collate utf8mb4_bin, x int not null)"
	f := func(other, want string) {
		t.Helper()
		a, b := parseTable(t, table), parseTable(t, table)
		a.Columns[1].Stored.Collation, b.Columns[1].Stored.Collation = "utf8mb4_bin", "utf8mb4_0900_ai_ci"
		require.Contains(t, Unlike(a, b), "collate utf8mb4_bin and varchar(10) character set utf8mb4 collate utf8mb4_0900_ai_ci")
		a.Columns[1].Charset, b.Columns[1].Charset = "utf8", "utf8mb3"
		a.Columns[1].Stored.Collation, b.Columns[1].Stored.Collation = "utf8_bin", "utf8mb3_bin"
		require.Empty(t, Unlike(a, b))
		a, b = parseTable(t, table), parseTable(t, other)
		for _, got := range []string{Unlike(a, b), Unlike(b, a)} {
			if want == "" {
				require.Empty(t, got)
			} else {
				require.Contains(t, got, want)
			}
		}
	}
	f(table, "")
	f("create table t(x int not null, v varchar(10) character set utf8mb4 collate utf8mb4_bin, ID int primary key)", "")
	f("create table t(id int primary key, v varchar(10) character set utf8mb4 collate utf8mb4_bin, x int not null, c int)", "only one of them has column c")
	f("create table t(id int primary key, v varchar(10) character set latin1 collate latin1_bin, x int not null)", "character set latin1")
	f("create table t(id int primary key, v varchar(10) character set utf8mb4 collate utf8mb4_bin, x bigint not null)", "column x is")
	f("create table t(id int, v varchar(10) character set utf8mb4 collate utf8mb4_bin, x int not null, primary key(id, x))", "the key is")
	f("create table t(id int primary key, v varchar(10) character set utf8mb4 collate utf8mb4_bin, x int not null, unique key u(x))", "unique index of (x)")

	a, b := parseTable(t, table), parseTable(t, table)
	b.Columns[0].ColumnType.ColumnType, b.Rows = "int(11)", 7
	require.Empty(t, Unlike(a, b), "not all versions of MySQL show the width")
	require.Empty(t, Unlike(nil, nil))
	require.NotEmpty(t, Unlike(a, nil))
	require.NotEmpty(t, Unlike(nil, b))
}
