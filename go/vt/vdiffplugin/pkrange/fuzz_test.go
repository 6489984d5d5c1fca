// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package pkrange

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"
)

// collate orders single letters without regard to case, so that values that are not the same may be equal.
func collate(_ int, a, b Value) int {
	return bytes.Compare(bytes.ToLower(a.Bytes), bytes.ToLower(b.Bytes))
}

// evaluator evaluates the SQL that Predicate writes for one row.
type evaluator struct {
	tokens []string
	params []Value
	row    map[string]Value
}

// evaluate tells whether the condition is true for a row.
func evaluate(sql string, params []Value, row map[string]Value) bool {
	if sql == "" {
		return true
	}
	sql = strings.NewReplacer("(", " ( ", ")", " ) ").Replace(sql)
	e := &evaluator{tokens: strings.Fields(sql), params: params, row: row}
	got := e.or()
	if len(e.tokens) > 0 || len(e.params) > 0 {
		panic(fmt.Sprintf("left over: %q %v", e.tokens, e.params))
	}
	return got
}

// take returns the next token, "" at the end.
func (e *evaluator) take() string {
	if len(e.tokens) == 0 {
		return ""
	}
	token := e.tokens[0]
	e.tokens = e.tokens[1:]
	return token
}

// or is a chain of ORs; in SQL it binds less than AND.
func (e *evaluator) or() bool {
	got := e.and()
	for len(e.tokens) > 0 && e.tokens[0] == "or" {
		e.take()
		right := e.and()
		got = got || right
	}
	return got
}

// and is a chain of ANDs.
func (e *evaluator) and() bool {
	got := e.operand()
	for len(e.tokens) > 0 && e.tokens[0] == "and" {
		e.take()
		right := e.operand()
		got = got && right
	}
	return got
}

// operand is a comparison with a parameter, or something in parentheses.
func (e *evaluator) operand() bool {
	token := e.take()
	if token == "(" {
		got := e.or()
		if e.take() != ")" {
			panic("no )")
		}
		return got
	}
	operator := e.take()
	if e.take() != "?" {
		panic("no ?")
	}
	c := collate(0, e.row[token], e.params[0])
	e.params = e.params[1:]
	switch operator {
	case "=":
		return c == 0
	case "<":
		return c < 0
	case "<=":
		return c <= 0
	case ">":
		return c > 0
	case ">=":
		return c >= 0
	}
	panic("operator " + operator)
}

// letters makes a bound of up to three letters.
func letters(s string) (b Bound) {
	for _, c := range s {
		if c = c%26 + 'A' + 32*(c/26%2); unicode.IsLetter(c) && len(b) < 3 {
			b = append(b, Value{Kind: Bytes, Bytes: []byte{byte(c)}})
		}
	}
	return b
}

// FuzzPredicate tests on any bounds and keys that the SQL of a range, evaluated, is what Contains says, and that a
// range that is cut anywhere within falls into two that share no key and lose none.
func FuzzPredicate(f *testing.F) {
	f.Add("ab", "aBc", "aa", "abc")
	f.Add("", "b", "a", "Bzz")
	f.Add("a", "", "", "Abb")
	f.Add("abc", "ab", "abd", "ABD")
	columns := []string{"a", "b", "c"}
	f.Fuzz(func(t *testing.T, after, upTo, cut, key string) {
		k := letters(key + "aaa")
		row := map[string]Value{"a": k[0], "b": k[1], "c": k[2]}
		in := func(r Range) bool {
			want := Contains(k, r, collate)
			sql, params := Predicate(columns, r)
			require.Equal(t, want, evaluate(sql, params, row), "%s, %v of %v", sql, r, k)
			return want
		}
		r := Range{After: letters(after), UpTo: letters(upTo)}
		whole := in(r)
		place := letters(cut)
		if len(place) == 0 {
			return
		}
		below, above := in(Range{UpTo: place}), in(Range{After: place})
		require.NotEqual(t, below, above)
		first, second := in(Range{After: r.After, UpTo: place}), in(Range{After: place, UpTo: r.UpTo})
		require.False(t, first && second && below && above)
		if whole {
			require.NotEqual(t, first, second)
		}
	})
}

// FuzzRangeJSON tests that whatever bytes are decoded as a range never panic, that an error shows none of them, and that what is
// accepted is encoded to text that means the same range.
func FuzzRangeJSON(f *testing.F) {
	f.Add([]byte(`[[],[]]`))
	f.Add([]byte(`[["i-9223372036854775808","u18446744073709551615"],["dMTIuNQ","tMjAyNi0wMS0wMQ","bAP8"]]`))
	f.Add([]byte(`[["i07"],null]`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var r Range
		if err := r.UnmarshalJSON(data); err != nil {
			require.Contains(t, []error{errValue, errBound, errRange}, err)
			return
		}
		got, err := r.MarshalJSON()
		require.NoError(t, err)
		var again Range
		require.NoError(t, again.UnmarshalJSON(got))
		require.Equal(t, r, again)
		require.True(t, r.Equal(again))
	})
}
