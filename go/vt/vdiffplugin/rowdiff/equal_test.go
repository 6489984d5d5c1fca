// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package rowdiff

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"vitess.io/vitess/go/sqltypes"

	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/plan"

	querypb "vitess.io/vitess/go/vt/proto/query"
)

// Tests values that print differently and are the same, and some that only look alike.
func TestEqualValues(t *testing.T) {
	ct := func(typ querypb.Type) plan.ColumnType { return plan.ColumnType{Type: typ} }
	f := func(source, target plan.ColumnType, s, tgt string, equal bool) {
		t.Helper()
		table := idTable(plan.Column{Name: "v", Source: source, Target: target})
		v, _, err := compare(t, table, true, [][][]string{{{"1", s}}}, [][]string{{"1", tgt}}, Options{})
		require.NoError(t, err)
		assert.Equal(t, equal, v.matches == 1, "%q and %q", s, tgt)
	}
	f(ct(sqltypes.Decimal), ct(sqltypes.Decimal), "1.50", "1.5", true)
	f(ct(sqltypes.Decimal), ct(sqltypes.Decimal), "-0.00", "0.0", true)
	f(ct(sqltypes.Decimal), ct(sqltypes.Decimal), "1.50", "1.05", false)
	f(ct(sqltypes.Int32), ct(sqltypes.Decimal), "100", "100.00", true)
	f(ct(sqltypes.Int64), ct(sqltypes.Uint64), "007", "7", true)
	f(ct(sqltypes.Int64), ct(sqltypes.Int64), "-7", "7", false)
	f(ct(sqltypes.Datetime), ct(sqltypes.Datetime), "2020-01-02 03:04:05.100", "2020-01-02 03:04:05.1", true)
	f(ct(sqltypes.Datetime), ct(sqltypes.Datetime), "2020-01-02 03:04:05.100", "2020-01-02 03:04:05", false)
	f(ct(sqltypes.Date), ct(sqltypes.Datetime), "2020-01-02", "2020-01-02 00:00:00.000", true)
	f(ct(sqltypes.Float64), ct(sqltypes.Float64), "1e3", "1000", true)
	f(ct(sqltypes.Float64), ct(sqltypes.Float64), "0", "-0", true)
	// What a DOUBLE is in exact numbers: its digits, or the whole number that it is.
	f(ct(sqltypes.Float64), ct(sqltypes.Int64), "9.007199254740992e15", "9007199254740992", true)
	f(ct(sqltypes.Float64), ct(sqltypes.Int64), "9.007199254740992e15", "9007199254740993", false)
	f(ct(sqltypes.Float64), ct(sqltypes.Uint64), "9.223372036854776e18", "9223372036854775808", true)
	f(ct(sqltypes.Float64), ct(sqltypes.Uint64), "9.223372036854776e18", "9223372036854775807", false)
	f(ct(sqltypes.Float64), ct(sqltypes.Decimal), "9.223372036854776e18", "9223372036854776000.00", true)
	f(ct(sqltypes.Float64), ct(sqltypes.Decimal), "0.1", "0.10000000000000000000", true)
	f(ct(sqltypes.Float64), ct(sqltypes.Decimal), "0.1", "0.10000000000000000001", false)
	f(ct(sqltypes.Float64), ct(sqltypes.Decimal), "-0", "0.00", true)
	f(ct(sqltypes.Float64), ct(sqltypes.Decimal), "1e-20", "0.000000000000000000010", true)
	f(ct(sqltypes.Float64), ct(sqltypes.Decimal), "0.10000000000000000555", "0.100000000000000006", true) // a DOUBLE(30,20)
	f(ct(sqltypes.Decimal), ct(sqltypes.Float64), "0.10000000000000000001", "0.1", true)
	f(ct(sqltypes.Int64), ct(sqltypes.Float64), "9007199254740993", "9.007199254740992e15", true)
	// A FLOAT is copied as it is printed, and replicated with all digits that it has.
	for _, wide := range []querypb.Type{sqltypes.Float64, sqltypes.Decimal} {
		f(ct(sqltypes.Float32), ct(wide), "1.23457", "1.23457", true)
		f(ct(sqltypes.Float32), ct(wide), "1.23457", "1.2345678", true)
		f(ct(sqltypes.Float32), ct(wide), "1.23457", "1.234567806", false) // not how a FLOAT is written
		f(ct(sqltypes.Float32), ct(wide), "1.23457", "1.2345612", false)
		f(ct(sqltypes.Float32), ct(wide), "16777200", "16777217", false) // no FLOAT
		f(ct(sqltypes.Float32), ct(wide), "16777200", "16777216", true)
		f(ct(sqltypes.Float32), ct(wide), "1234567.88", "1234567.9", true) // a FLOAT(20,2)
		f(ct(sqltypes.Float32), ct(wide), "1234567.88", "1234568", false)
		f(ct(sqltypes.Float32), ct(wide), "0.5", "-0.5", false)
	}
	f(ct(sqltypes.Float32), ct(sqltypes.Float64), "3.40282e38", "3.4028235e38", true)
	f(ct(sqltypes.Float32), ct(sqltypes.Float64), "3.40282e38", "3.5e38", false)
	f(ct(sqltypes.Float32), ct(sqltypes.Float32), "1.23457", "1.23456", false)
	f(ct(sqltypes.Float64), ct(sqltypes.Float32), "1.2345678", "1.23457", false)
	f(ct(sqltypes.VarChar), ct(sqltypes.VarChar), "a", "a ", false)
	// Text that became a number or a time, and no text that is made of one.
	text := textColumn("v", "utf8mb4_bin", "utf8mb4_bin", 0).Source
	f(text, ct(sqltypes.Decimal), "10", "10.00", true)
	f(text, ct(sqltypes.Decimal), " +1.5 ", "1.50", true)
	f(text, ct(sqltypes.Decimal), "1.5", "1.51", false)
	f(text, ct(sqltypes.Int32), "007", "7", true)
	f(text, ct(sqltypes.Int32), "-0", "0", true)
	f(text, ct(sqltypes.Int32), "abc", "0", false)
	f(text, ct(sqltypes.Int32), "", "0", false)
	f(text, ct(sqltypes.Float64), "1.0", "1", true)
	f(text, ct(sqltypes.Float64), "1e3", "1000", true)
	f(text, ct(sqltypes.Datetime), "2020-01-01 10:00:00", "2020-01-01 10:00:00.000000", true)
	f(text, ct(sqltypes.Datetime), "2020-01-01", "2020-01-01 00:00:00", true)
	f(text, ct(sqltypes.Datetime), "2020-01-01 10:00:00", "2020-01-01 10:00:01", false)
	f(ct(sqltypes.Int32), text, "7", "007", false)
	// BIT and integers.
	f(ct(sqltypes.Bit), ct(sqltypes.Int8), "\x01", "1", true)
	f(ct(sqltypes.Bit), ct(sqltypes.Uint64), "\xff\xff\xff\xff\xff\xff\xff\xff", "18446744073709551615", true)
	f(ct(sqltypes.Bit), ct(sqltypes.Int8), "\x01", "0", false)
	f(ct(sqltypes.Uint16), ct(sqltypes.Bit), "258", "\x01\x02", true)
	f(ct(sqltypes.Bit), ct(sqltypes.Bit), "\x00\x01", "\x01", true)
	// SETs whose members are declared in another order.
	set := func(columnType string) plan.ColumnType {
		t := text
		t.Type, t.ColumnType = sqltypes.Set, columnType
		return t
	}
	f(set("set('x','y','z')"), set("set('z','y','x')"), "x,y", "y,x", true)
	f(set("set('x','y','z')"), set("set('z','y','x')"), "x,y", "z,x", false)
	f(set("set('x','y','z')"), set("set('z','y','x')"), "", "", true)
	f(ct(sqltypes.VarChar), ct(sqltypes.VarChar), null, "", false)
	f(ct(sqltypes.VarChar), ct(sqltypes.VarChar), null, null, true)
	latin1, utf8 := textColumn("v", "latin1_swedish_ci", "latin1_swedish_ci", 0).Source, textColumn("v", "utf8mb4_bin", "utf8mb4_bin", 0).Source
	f(latin1, utf8, "caf\xe9", "café", true)
	f(latin1, utf8, "caf\xe9", "cafe", false)
}
