// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package scan

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"vitess.io/vitess/go/mysql/binlog"

	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/digest"
)

// kinds are wire types, one for each class at least.
var kinds = []byte{
	binlog.TypeTiny, binlog.TypeShort, binlog.TypeYear, binlog.TypeLong, binlog.TypeInt24, binlog.TypeLongLong, binlog.TypeFloat, binlog.TypeDouble,
	binlog.TypeDate, binlog.TypeDateTime, binlog.TypeTimestamp, binlog.TypeTime, binlog.TypeNewDecimal, binlog.TypeVarString, binlog.TypeString,
	binlog.TypeBlob, binlog.TypeBit, binlog.TypeJSON, binlog.TypeGeometry,
}

func randomRow(r *rand.Rand, columns []column) (row []byte, values [][]byte) {
	values = make([][]byte, len(columns))
	for i := range columns {
		if r.IntN(4) == 0 {
			continue
		}
		n := width[columns[i].class]
		switch columns[i].class {
		case classString:
			n = []int{0, 1, 250, 251, 300, 70_000}[r.IntN(6)]
		case classDate:
			n = []int{0, 4, 7, 11}[r.IntN(4)]
		case classTime:
			n = []int{0, 8, 12}[r.IntN(3)]
		}
		values[i] = bytes.Repeat([]byte{byte(r.IntN(256))}, n)
		if n == 0 {
			values[i] = []byte{}
		}
	}
	return binaryRow(columns, values...), values
}

// Tests that the values of random rows of all types are found, in a row in memory and in one that is read in pieces of a
// few bytes, and that both have the hash of the row's bytes. A row that ends too early, or late, is an error.
func TestBinaryRow(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 1))
	for range 300 {
		columns := make([]column, 1+r.IntN(20))
		for i := range columns {
			columns[i] = define(fmt.Sprint("c", i), kinds[r.IntN(len(kinds))], 0, binaryCollation)
		}
		row, want := randomRow(r, columns)
		parser := rowParser{columns: columns}
		parser.want(true)
		for i := range columns {
			if r.IntN(2) == 0 {
				parser.want(true, i)
			} else {
				want[i] = nil
			}
		}
		require.NoError(t, parser.parse(row, parser.last), "seed %d", seed)
		require.Equal(t, want, parser.values, "seed %d", seed)

		hasher := digest.NewHasher(5)
		in := func(row []byte) *packets {
			p := &packets{r: bytes.NewReader(newAnswer().packet(row).Bytes()), buf: make([]byte, 8+r.IntN(30)), sequence: 1}
			_, _, err := p.begin()
			require.NoError(t, err)
			return p
		}
		if p := in(row); p.left > 0 { // a short row may fit even into the smallest buffer
			clear(parser.values)
			require.NoError(t, parser.parsePieces(p, func(b []byte) { _, _ = hasher.Write(b) }), "seed %d", seed)
			require.Equal(t, want, parser.values, "seed %d", seed)
			require.Equal(t, digest.Row(5, row), hasher.Sum(), "seed %d", seed)
		}
		if p := in(row[:len(row)-1]); p.left > 0 {
			require.Error(t, parser.parsePieces(p, func([]byte) {}))
		}
		if p := in(append(row, 0)); p.left > 0 {
			require.ErrorIs(t, parser.parsePieces(p, func([]byte) {}), errProtocol)
		}
		for range 10 {
			_ = parser.parse(row[:r.IntN(len(row))], len(columns)-1) // no panic
		}
	}
}

// Tests raw values as text, as MySQL prints them.
func TestValueText(t *testing.T) {
	f := func(want string, c column, raw ...byte) {
		t.Helper()
		got, err := c.appendText([]byte("x"), raw)
		require.NoError(t, err)
		assert.Equal(t, "x"+want, string(got))
	}
	of := func(kind byte, flags uint16, length uint32, decimals uint8) column {
		c := define("c", kind, flags, binaryCollation)
		c.length, c.decimals = length, decimals
		return c
	}
	f("-1", of(binlog.TypeTiny, 0, 4, 0), 0xff)
	f("255", of(binlog.TypeTiny, flagUnsigned, 3, 0), 0xff)
	f("-2", of(binlog.TypeShort, 0, 6, 0), 0xfe, 0xff)
	f("1999", of(binlog.TypeYear, flagUnsigned|flagZerofill, 4, 0), 0xcf, 0x07)
	f("0000", of(binlog.TypeYear, flagUnsigned|flagZerofill, 4, 0), 0, 0)
	f("-3", of(binlog.TypeLong, 0, 11, 0), 0xfd, 0xff, 0xff, 0xff)
	f("0000000042", of(binlog.TypeLong, flagUnsigned|flagZerofill, 10, 0), 42, 0, 0, 0)
	f("16777215", of(binlog.TypeInt24, flagUnsigned, 8, 0), 0xff, 0xff, 0xff, 0)
	f("18446744073709551615", of(binlog.TypeLongLong, flagUnsigned, 20, 0), 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff)
	f("-1", of(binlog.TypeLongLong, 0, 20, 0), 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff)
	f("2020-02-09", of(binlog.TypeDate, 0, 10, 0), 0xe4, 7, 2, 9)
	f("0000-00-00", of(binlog.TypeDate, 0, 10, 0))
	f("0045-01-02 03:04:05", of(binlog.TypeDateTime, 0, 19, 0), 45, 0, 1, 2, 3, 4, 5)
	f("2020-02-09 00:00:00.00", of(binlog.TypeTimestamp, 0, 22, 2), 0xe4, 7, 2, 9)
	f("2020-02-09 01:02:03.0204", of(binlog.TypeDateTime, 0, 24, 4), 0xe4, 7, 2, 9, 1, 2, 3, 0xb0, 0x4f, 0, 0)
	f("-838:59:58.999", of(binlog.TypeTime, 0, 14, 3), 1, 34, 0, 0, 0, 22, 59, 58, 0x58, 0x3e, 0x0f, 0)
	f("00:00:00", of(binlog.TypeTime, 0, 10, 0))
	f("1.50", of(binlog.TypeNewDecimal, 0, 4, 2), '1', '.', '5', '0')
	double := func(want string, decimals uint8, v float64) {
		t.Helper()
		f(want, of(binlog.TypeDouble, 0, 22, decimals), binary.LittleEndian.AppendUint64(nil, math.Float64bits(v))...)
	}
	double("0.3333333333333333", notFixed, 1.0/3)
	double("-0", notFixed, math.Copysign(0, -1))
	double("0.00001", notFixed, 1e-5)
	double("0.0000001", notFixed, 1e-7)
	double("-1e-16", notFixed, -1e-16)
	double("100000000000000", notFixed, 1e14)
	double("1.5e20", notFixed, 1.5e20)
	double("1e15", notFixed, 1e15)
	double("3333333333333333.5", notFixed, 1e16/3)
	double("1.50", 2, 1.5)
	for _, broken := range []struct {
		c   column
		raw []byte
	}{
		{of(binlog.TypeDate, 0, 10, 0), []byte{1}}, {of(binlog.TypeTime, 0, 10, 0), []byte{1, 2}},
		{of(binlog.TypeDateTime, 0, 26, 6), bytes.Repeat([]byte{0xff}, 11)}, {of(binlog.TypeFloat, 0, 10, notFixed), make([]byte, 4)},
	} {
		_, err := broken.c.appendText(nil, broken.raw)
		assert.Error(t, err)
	}
}

// Tests the fingerprint of wire types: alike for types that lie alike in a row, unlike for all others.
func TestForm(t *testing.T) {
	f := func(kind byte, flags uint16) uint64 {
		return form([]column{intColumn("a"), define("b", kind, flags, 255)})
	}
	alike := [][]uint64{
		{f(binlog.TypeVarString, 0), f(binlog.TypeString, 0), f(binlog.TypeBlob, flagBinary), f(binlog.TypeNewDecimal, 0), f(binlog.TypeJSON, 0), f(binlog.TypeBlob, flagUnsigned)},
		{f(binlog.TypeLong, 0), f(binlog.TypeInt24, 0)}, {f(binlog.TypeLong, flagUnsigned), f(binlog.TypeInt24, flagUnsigned)},
		{f(binlog.TypeShort, flagUnsigned), f(binlog.TypeYear, flagUnsigned|flagZerofill)},
		{f(binlog.TypeTiny, 0)}, {f(binlog.TypeTiny, flagUnsigned)}, {f(binlog.TypeShort, 0)}, {f(binlog.TypeLongLong, 0)}, {f(binlog.TypeLongLong, flagUnsigned)},
		{f(binlog.TypeFloat, 0)}, {f(binlog.TypeDouble, 0)}, {f(binlog.TypeDate, 0), f(binlog.TypeDateTime, 0), f(binlog.TypeTimestamp, 0)}, {f(binlog.TypeTime, 0)},
	}
	seen := map[uint64]bool{}
	for i, class := range alike {
		for _, other := range class {
			assert.Equal(t, class[0], other, "class %d", i)
		}
		assert.False(t, seen[class[0]], "class %d", i)
		seen[class[0]] = true
	}
	assert.NotEqual(t, form([]column{intColumn("a"), textColumn("b")}), form([]column{textColumn("a"), intColumn("b")}))

	// Bytes of latin1, gbk or a charset that is not known mean other text than the same bytes of UTF-8.
	in := func(collation uint16) uint64 {
		c := textColumn("b")
		c.collation = collation
		return form([]column{c})
	}
	const latin1Swedish, latin1Bin, gbk, utf8mb3, utf8mb4Bin, utf8mb40900, ascii, unknown = 8, 47, 28, 33, 46, 255, 11, 9999
	for _, collation := range []uint16{utf8mb3, utf8mb4Bin, utf8mb40900, ascii, binaryCollation} {
		assert.Equal(t, in(utf8mb40900), in(collation), "collation %d", collation)
	}
	assert.Equal(t, in(latin1Swedish), in(latin1Bin))
	for _, collation := range []uint16{latin1Swedish, gbk, unknown} {
		assert.NotEqual(t, in(utf8mb40900), in(collation), "collation %d", collation)
	}
	assert.NotEqual(t, in(latin1Swedish), in(gbk))
}
