// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package plan

import (
	"testing"

	"github.com/stretchr/testify/require"

	"vitess.io/vitess/go/mysql/collations"
)

// TestTextOrder tests texts in the order in which MySQL 9.7 returned them, above all those with
// characters that sort before a space.
func TestTextOrder(t *testing.T) {
	f := func(collation string, ascending ...string) {
		t.Helper()
		order := NewTextOrder(testEnv.LookupByName(collation), testEnv)
		require.NotNil(t, order)
		for i, a := range ascending {
			for j, b := range ascending {
				got := order.Compare([]byte(a), []byte(b))
				require.Equal(t, i < j, got < 0, "%s: %q, %q: %d", collation, a, b, got)
				require.Equal(t, i == j, got == 0, "%s: %q, %q: %d", collation, a, b, got)
				require.Equal(t, i == j, string(order.AppendKey(nil, []byte(a))) == string(order.AppendKey(nil, []byte(b))))
			}
		}
	}
	f("utf8mb4_bin", "\x01\x01Яä", "\x01", "\t\tΩll", "\t", " a", "a\t", "a", "a!", "é")
	f("utf8mb4_general_ci", "\x01 \x01", "\x01", "\x01ä\x01", "\x01A", "a\t", "A")
	f("utf8mb4_unicode_ci", "\t\tÉ", "\t", " 0\t", " 0", "a\t", "A", "b")
	f("latin1_swedish_ci", "\x01\t\xf1", "\x01", "\t\t", "\t", "a\t", "a", "\xe4")
	f("ascii_general_ci", "\t\tZ0", "\t", " \tb", " ", "a")
	f("ucs2_general_ci", "\x00\x01\x00\t\x00A", "\x00\x01", "\x00a\x00\t", "\x00a")
	f("sjis_japanese_ci", "\x01\x84\x91\x01", "\x01\x84\x91", "a")
	f("utf8mb4_0900_ai_ci", "\x01"[:0], " ", "a", "a ", "ab")
	f("utf8mb4_0900_bin", "", "\x01", "\x01\x01", "a", "a\t", "a ")
	f("binary", "", "\x00", "a", "a\x00")

	equal := func(collation, a, b string, want bool) {
		t.Helper()
		order := NewTextOrder(testEnv.LookupByName(collation), testEnv)
		require.Equal(t, want, order.Compare([]byte(a), []byte(b)) == 0)
		prefix := []byte("  ")
		require.Equal(t, want, string(order.AppendKey(prefix, []byte(a))) == string(order.AppendKey(prefix, []byte(b))))
	}
	equal("utf8mb4_general_ci", "a", "A  ", true)
	equal("utf8mb4_bin", "a", "a  ", true)
	equal("utf8mb4_bin", "a", "A", false)
	equal("utf8mb4_0900_ai_ci", "a", "A", true)
	equal("utf8mb4_0900_ai_ci", "a", "a ", false)
	equal("latin1_swedish_ci", "", "   ", true)

	require.Nil(t, NewTextOrder(collations.Unknown, testEnv))
}

func BenchmarkTextOrder(b *testing.B) {
	f := func(collation string) {
		order := NewTextOrder(testEnv.LookupByName(collation), testEnv)
		x, y := []byte("customer-000000012345"), []byte("customer-000000012346")
		b.Run(collation, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				order.Compare(x, y)
			}
		})
	}
	f("utf8mb4_0900_ai_ci")
	f("utf8mb4_general_ci")
	f("utf8mb4_bin")
	f("latin1_swedish_ci")
}
