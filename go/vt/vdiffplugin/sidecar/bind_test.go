// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package sidecar

import (
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"vitess.io/vitess/go/constants/sidecar"
)

// TestBind tests that values are quoted, that lists and NULL work, that the configured name of the
// sidecar database is used, and that a wrong number of values is an error and no panic.
func TestBind(t *testing.T) {
	f := func(statement string, values []any, want string) {
		t.Helper()
		got, err := bind(statement, values...)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	f("select 1 from %#s.vdiff", nil, "select 1 from _vt.vdiff")
	f("select %a, %a", []any{int64(7), "it's \\ %a %#s :v0"}, `select 7, 'it\'s \\ %a %#s :v0'`)
	f("select %a, %a, %a", []any{nil, true, 3}, "select null, 1, 3")
	f("x in %a", []any{[]string{"a", "b'c"}}, `x in ('a', 'b\'c')`)
	f("x = %a", []any{nullable([]byte(`{"a":"é"}`))}, `x = '{"a":"é"}'`)
	f("x = %a", []any{nullable(nil)}, "x = null")

	sidecar.SetName("my-vt")
	defer sidecar.SetName(sidecar.DefaultName)
	f("select 1 from %#s.vdiff where a = %a", []any{"b"}, "select 1 from `my-vt`.vdiff where a = 'b'")

	_, err := bind("select %a, %a", 1)
	require.Error(t, err)
	_, err = bind("select %a", 1, 2)
	require.Error(t, err)
}

// TestCut tests that what is cut is valid UTF-8 of at most the given number of bytes, and that
// nothing else is changed.
func TestCut(t *testing.T) {
	f := func(s string, max int, want string) {
		t.Helper()
		got := cut(s, max)
		require.Equal(t, want, got)
		require.LessOrEqual(t, len(got), max)
		require.True(t, utf8.ValidString(got))
	}
	f("", 0, "")
	f("abc", 3, "abc")
	f("abc", 2, "ab")
	f("aé", 3, "aé")
	f("aé", 2, "a")
	f("世界", 5, "世")
	f("世界", 2, "")
	f("a\xffb", 100, "a\uFFFDb")
	f("a\xffb", 3, "a")
}
