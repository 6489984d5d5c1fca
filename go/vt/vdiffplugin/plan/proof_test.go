// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package plan

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	binlogdatapb "vitess.io/vitess/go/vt/proto/binlogdata"
)

// TestProof tests what equal digests of a table prove while the workflow runs, for tables with and without unique keys on either
// side, and by which columns rows fall into buckets.
func TestProof(t *testing.T) {
	check := func(in Input, want Proof, wantMoves bool, wantBuckets string) {
		t.Helper()
		plan, err := Build(in)
		require.NoError(t, err)
		require.NotNil(t, plan.Digest, plan.NotDigestible)
		assert.Equal(t, want, plan.Digest.Proof)
		assert.Equal(t, wantMoves, plan.KeyMoves)
		assert.Equal(t, wantBuckets, names(plan, plan.Digest.BucketKey))
		assert.False(t, plan.Digest.Ranged && (want != ProofAnyTime || wantMoves))
	}
	f := func(source, target string, want Proof, wantMoves bool, wantBuckets string) {
		t.Helper()
		check(input(t, "", "create table t("+source+")", "create table t("+target+")"), want, wantMoves, wantBuckets)
	}
	f("id int primary key, v int", "id int primary key, v int", ProofAnyTime, false, "id")
	f("id int primary key", "id bigint primary key", ProofAnyTime, false, "id")
	f("id int not null, v int, unique key(id)", "id int not null, v int, unique key(id)", ProofAnyTime, false, "id")
	f("e enum('a','b') primary key", "e enum('a','b') primary key", ProofAnyTime, false, "e")
	// The target's key has what the source's has.
	f("id int primary key, day int not null", "id int, day int, primary key(id,day)", ProofAnyTime, false, "id,day")
	f("id int primary key, t int", "id int, t int, primary key(t,id)", ProofAnyTime, false, "t,id")

	// No unique key, a nullable one, or one on the source alone: VReplication finds rows by all columns.
	f("a int, b int", "a int, b int", ProofSamePosition, false, "")
	f("a int, b int, unique key(a)", "a int, b int, unique key(a)", ProofSamePosition, false, "")
	f("a int primary key, b int", "a int, b int", ProofSamePosition, false, "")
	f("a int primary key, b int", "a int, b int, unique key(a)", ProofSamePosition, false, "")
	f("a int not null, b int not null", "a int, b int, primary key(a,b)", ProofSamePosition, false, "")
	// One on the target alone: an update moves what are whole rows here.
	f("a int not null, b int", "a int primary key, b int", ProofAtOnce, true, "")
	f("a int, b int, unique key(a)", "a int primary key, b int", ProofAtOnce, true, "")

	// The target's own key is not unique on the source.
	f("id int, day int, primary key(id,day)", "id int primary key, day int not null", ProofAtOnce, true, "id,day")
	f("a int primary key, b int not null", "a int not null, b int primary key", ProofAtOnce, true, "b,a")
	f("a int primary key, b int not null", "b int primary key, a int not null, unique key(a)", ProofAtOnce, true, "a")
	// Or it is, and rows are paired by another index for its order: buckets do without one.
	f("id int primary key, u int not null, unique key(u)", "id int not null, u int primary key, unique key k(id)", ProofAnyTime, true, "u")
	f("e enum('a','b') primary key, n int not null, unique key(n)", "e enum('a','b') primary key, n int not null, unique key(n)", ProofAnyTime, true, "e")

	// Keys that are unlike on the source may be one on the target.
	f("k varchar(10) collate utf8mb4_bin primary key", "k varchar(10) primary key", ProofAtOnce, true, "k")
	f("k varchar(10) character set latin1 primary key", "k varchar(10) primary key", ProofAtOnce, true, "k")
	f("k varchar(10) primary key", "k varchar(20) primary key", ProofAnyTime, false, "k")
	f("k datetime(6) primary key", "k datetime primary key", ProofAtOnce, true, "k")
	f("k binary(16) primary key", "k varbinary(16) primary key", ProofAnyTime, false, "k")
	f("a int, k int generated always as (a) stored primary key", "a int, k int generated always as (a) stored primary key", ProofAtOnce, true, "k")

	// A rule that tells VReplication by which key to write.
	const both = "create table t(id int primary key, u int not null, unique key u(u))"
	in := input(t, "", both, both)
	in.Rule = &binlogdatapb.Rule{Match: "t", TargetUniqueKeyColumns: "id", SourceUniqueKeyColumns: "id", SourceUniqueKeyTargetColumns: "id"}
	check(in, ProofAnyTime, false, "id")
	in.Rule = &binlogdatapb.Rule{Match: "t", TargetUniqueKeyColumns: "u", SourceUniqueKeyColumns: "u", SourceUniqueKeyTargetColumns: "u"}
	check(in, ProofAtOnce, true, "id")
}
