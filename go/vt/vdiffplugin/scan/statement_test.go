// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package scan

import (
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"vitess.io/vitess/go/mysql/binlog"

	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/pkrange"
)

func prepared(a *answer, id uint32, columns []column, params int, eof bool) {
	a.sequence = 1
	ok := binary.LittleEndian.AppendUint32([]byte{okPacket}, id)
	ok = binary.LittleEndian.AppendUint16(ok, uint16(len(columns)))
	ok = binary.LittleEndian.AppendUint16(ok, uint16(params))
	a.packet(append(ok, 0, 0, 0))
	for i := range params {
		a.packet(definition(&column{name: fmt.Sprint("?", i), kind: binlog.TypeVarString}))
	}
	if params > 0 && eof {
		a.end()
	}
	a.definitions(columns, eof)
}

// Tests prepare, execute and close, with servers that mark the end of definitions and with those that do not: one statement is
// prepared once, and the one that was not used for longest goes when there are too many.
func TestStatement(t *testing.T) {
	columns := []column{intColumn("id"), textColumn("a")}
	for _, eof := range []bool{false, true} {
		a := newAnswer()
		prepared(a, 7, columns, 2, eof)
		for range 2 {
			a.sequence = 1
			a.packet([]byte{2}).definitions(columns, eof).packet(binaryRow(columns, long(1), []byte("x"))).packet(binaryRow(columns, long(2), nil)).end()
		}
		for i := range uint32(maxStatements) {
			prepared(a, 8+i, columns, 0, eof)
		}
		s := fakeSession(&a.Buffer, 4096)
		s.eof = eof
		for range 2 {
			st, err := s.prepare("select ?, ?")
			require.NoError(t, err)
			assert.EqualValues(t, 7, st.id)
			assert.Equal(t, columns, st.columns)
			got, err := s.execute(st, []pkrange.Value{{Kind: pkrange.Int, Int: -2}, {Kind: pkrange.Bytes, Bytes: []byte("ab")}})
			require.NoError(t, err)
			assert.Equal(t, columns, got)
			for range 2 {
				row, long, err := s.next()
				require.NoError(t, err)
				assert.False(t, long)
				assert.NotNil(t, row)
			}
			require.NoError(t, s.drain())
		}
		for i := range maxStatements {
			_, err := s.prepare(fmt.Sprint("select ", i))
			require.NoError(t, err)
		}
		assert.Len(t, s.statements, maxStatements)
		written := s.raw.(*fakeConn).written.Bytes()
		want := []byte{12, 0, 0, 0, comStmtPrepare, 's', 'e', 'l', 'e', 'c', 't', ' ', '?', ',', ' ', '?'}
		assert.Equal(t, want, written[:len(want)])
		execute := []byte{27, 0, 0, 0, comStmtExecute, 7, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 8, 0, 0xfc, 0, 0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 'a', 'b'}
		assert.Equal(t, execute, written[len(want):len(want)+len(execute)])
		assert.Equal(t, execute, written[len(want)+len(execute):len(want)+2*len(execute)], "prepared once")
		assert.Contains(t, string(written), string([]byte{5, 0, 0, 0, comStmtClose, 7, 0, 0, 0}))
		_, err := s.execute(s.statements[0], []pkrange.Value{{}})
		assert.ErrorContains(t, err, "1 parameters")
	}
}

// Tests that an error of the server is told wherever it comes.
func TestStatementFails(t *testing.T) {
	columns := []column{intColumn("id")}
	_, err := fakeSession(&newAnswer().fail(1146, "no table").Buffer, 4096).prepare("x")
	number, ok := serverCode(err)
	assert.True(t, ok)
	assert.Equal(t, 1146, number)
	s := fakeSession(&newAnswer().packet([]byte{1}).definitions(columns, false).packet(binaryRow(columns, long(1))).fail(1317, "interrupted").Buffer, 4096)
	_, err = s.query("x")
	require.NoError(t, err)
	number, _ = serverCode(s.drain())
	assert.Equal(t, 1317, number)
	for _, broken := range [][]byte{{okPacket, 0, 0, 2, 0, 0, 0}, {0xfb, 'x'}, {0}, {0xfd, 0xff, 0xff, 0xff}} {
		_, err := fakeSession(&newAnswer().packet(broken).Buffer, 4096).query("x")
		assert.ErrorIs(t, err, errProtocol)
	}
	_, err = fakeSession(&newAnswer().packet([]byte{okPacket, 1}).Buffer, 4096).prepare("x")
	assert.ErrorIs(t, err, errProtocol)
}

// Tests parameters of every kind, and what is none.
func TestParameter(t *testing.T) {
	f := func(v pkrange.Value, kind, flag byte, want ...byte) {
		t.Helper()
		k, fl := parameterType(&v)
		assert.Equal(t, []byte{kind, flag}, []byte{k, fl})
		got, err := appendParameter(nil, &v)
		require.NoError(t, err)
		assert.Equal(t, want, got)
	}
	text := func(kind pkrange.Kind, s string) pkrange.Value { return pkrange.Value{Kind: kind, Bytes: []byte(s)} }
	f(pkrange.Value{Kind: pkrange.Int, Int: -1}, 8, 0, 255, 255, 255, 255, 255, 255, 255, 255)
	f(pkrange.Value{Kind: pkrange.Uint, Uint: 1 << 63}, 8, 0x80, 0, 0, 0, 0, 0, 0, 0, 0x80)
	f(text(pkrange.Decimal, "-1.50"), 246, 0, 5, '-', '1', '.', '5', '0')
	f(text(pkrange.Temporal, "2020-02-09"), 10, 0, 4, 0xe4, 7, 2, 9)
	f(text(pkrange.Temporal, "0000-00-00"), 10, 0, 4, 0, 0, 0, 0)
	f(text(pkrange.Temporal, "2020-02-09 01:02:03"), 12, 0, 11, 0xe4, 7, 2, 9, 1, 2, 3, 0, 0, 0, 0)
	f(text(pkrange.Temporal, "2020-02-09 01:02:03.0204"), 12, 0, 11, 0xe4, 7, 2, 9, 1, 2, 3, 0xb0, 0x4f, 0, 0)
	f(text(pkrange.Bytes, "a\x00"), 252, 0, 2, 'a', 0)
	f(text(pkrange.Bytes, ""), 252, 0, 0)
	for _, v := range []pkrange.Value{
		text(pkrange.Decimal, ""), text(pkrange.Decimal, "-"), text(pkrange.Decimal, "1.2.3"), text(pkrange.Decimal, "1 or 1"), text(pkrange.Decimal, "1e5"),
		text(pkrange.Temporal, ""), text(pkrange.Temporal, "2020-02-0"), text(pkrange.Temporal, "2020-02-09 "), text(pkrange.Temporal, "2020-02-09 01:02:03."+"1234567"),
		text(pkrange.Temporal, "2020-02-09' or ''='"), text(pkrange.Temporal, "2020-02-09 01:02:03x1"), text(9, "1"),
	} {
		_, err := appendParameter(nil, &v)
		assert.Error(t, err, "%s", v.Bytes)
		_, err = literal(&v, nil)
		assert.Error(t, err, "%s", v.Bytes)
	}
}

// Tests that each placeholder of a range's condition is replaced as its column needs it, whatever the column is called.
func TestSubstitute(t *testing.T) {
	german := &collation{name: "latin1_german1_ci", charset: "latin1"}
	collations := map[string]*collation{"`a?`": german, "```b`": nil}
	sql, params := pkrange.Predicate([]string{"`a?`", "```b`"}, pkrange.Range{
		After: pkrange.Bound{{Kind: pkrange.Bytes, Bytes: []byte("x'\xe9")}, {Kind: pkrange.Bytes, Bytes: []byte("y")}}, UpTo: pkrange.Bound{{Kind: pkrange.Bytes}}})
	got, err := substitute(sql, func(column string, i int) (string, error) { return placeholder(&params[i], collations[column]), nil })
	require.NoError(t, err)
	const cast = "convert(cast(? as binary) using latin1) collate latin1_german1_ci"
	assert.Equal(t, "`a?` >= "+cast+" and (`a?` > "+cast+" or (`a?` = "+cast+" and ```b` > ?)) and `a?` <= "+cast, got)
	got, err = substitute(sql, func(column string, i int) (string, error) { return literal(&params[i], collations[column]) })
	require.NoError(t, err)
	assert.Contains(t, got, "(`a?` = convert(x'7827e9' using latin1) collate latin1_german1_ci and ```b` > x'79')")
	assert.Contains(t, got, "`a?` <= convert(x'' using latin1) collate latin1_german1_ci")
}
