// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package scan

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strconv"

	"vitess.io/vitess/go/mysql/binlog"
	"vitess.io/vitess/go/sqltypes"
	"vitess.io/vitess/go/vt/vterrors"

	vtrpcpb "vitess.io/vitess/go/vt/proto/vtrpc"

	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/pkrange"
)

// number returns the integer of a raw value: sign-extended, or as it is for an unsigned column.
func (c *column) number(raw []byte) uint64 {
	switch c.class {
	case classTiny:
		if c.unsigned() {
			return uint64(raw[0])
		}
		return uint64(int64(int8(raw[0])))
	case classShort:
		v := binary.LittleEndian.Uint16(raw)
		if c.unsigned() {
			return uint64(v)
		}
		return uint64(int64(int16(v)))
	case classLong:
		v := binary.LittleEndian.Uint32(raw)
		if c.unsigned() {
			return uint64(v)
		}
		return uint64(int64(int32(v)))
	}
	return binary.LittleEndian.Uint64(raw)
}

// notFixed is what a column definition has for the decimals of a DOUBLE that has no number of them.
const notFixed = 31

// appendText appends a raw value as the text protocol sends it.
func (c *column) appendText(dst, raw []byte) ([]byte, error) {
	switch {
	case c.class == classString:
		return append(dst, raw...), nil
	case c.integer():
		start := len(dst)
		if c.unsigned() {
			dst = strconv.AppendUint(dst, c.number(raw), 10)
		} else {
			dst = strconv.AppendInt(dst, int64(c.number(raw)), 10)
		}
		if pad := int(c.length) - (len(dst) - start); c.flags&flagZerofill != 0 && pad > 0 && c.length <= 255 {
			dst = slices.Insert(dst, start, slices.Repeat([]byte{'0'}, pad)...)
		}
		return dst, nil
	case c.class == classDate:
		return appendDate(dst, raw, c.kind == binlog.TypeDate || c.kind == binlog.TypeNewDate, int(c.decimals))
	case c.class == classTime:
		return appendTime(dst, raw, int(c.decimals))
	case c.class == classDouble && c.decimals < notFixed:
		return strconv.AppendFloat(dst, math.Float64frombits(binary.LittleEndian.Uint64(raw)), 'f', int(c.decimals), 64), nil
	case c.class == classDouble:
		return appendDouble(dst, math.Float64frombits(binary.LittleEndian.Uint64(raw))), nil
	}
	return nil, vterrors.Errorf(vtrpcpb.Code_UNIMPLEMENTED, "column %s: values of type %v have no text of their own", c.name, c.sqlType)
}

// appendDouble appends the shortest text that means the number, with an exponent where MySQL has one.
func appendDouble(dst []byte, v float64) []byte {
	if a := math.Abs(v); a == 0 || a >= 1e-15 && (a < 1e15 || a < 1e16 && a != math.Trunc(a)) {
		return strconv.AppendFloat(dst, v, 'f', -1, 64)
	}
	start := len(dst)
	dst = strconv.AppendFloat(dst, v, 'e', -1, 64)
	e := start + bytes.LastIndexByte(dst[start:], 'e')
	exponent, _ := strconv.Atoi(string(dst[e+1:])) // it is one
	return strconv.AppendInt(dst[:e+1], int64(exponent), 10)
}

// appendPadded appends a number, not negative, with at least so many digits.
func appendPadded(dst []byte, v, digits int) []byte {
	for limit := 10; digits > 1; digits-- {
		if v < limit {
			dst = append(dst, '0')
		}
		limit *= 10
	}
	return strconv.AppendInt(dst, int64(v), 10)
}

// appendFraction appends the fractional seconds of a value that has a number of decimals.
func appendFraction(dst []byte, micros, decimals int) []byte {
	if decimals < 1 || decimals > 6 {
		return dst
	}
	dst = append(dst, '.')
	start := len(dst)
	dst = appendPadded(dst, micros, 6)
	return dst[:start+decimals]
}

func appendDate(dst, raw []byte, dateOnly bool, decimals int) ([]byte, error) {
	var year, month, day, hour, minute, second, micros int
	switch len(raw) {
	case 11:
		micros = int(binary.LittleEndian.Uint32(raw[7:]))
		fallthrough
	case 7:
		hour, minute, second = int(raw[4]), int(raw[5]), int(raw[6])
		fallthrough
	case 4:
		year, month, day = int(binary.LittleEndian.Uint16(raw)), int(raw[2]), int(raw[3])
	case 0:
	default:
		return nil, fmt.Errorf("%w: a date of %d bytes", errProtocol, len(raw))
	}
	if micros > 999999 {
		return nil, fmt.Errorf("%w: a date with %d microseconds", errProtocol, micros)
	}
	dst = appendPadded(dst, year, 4)
	dst = appendPadded(append(dst, '-'), month, 2)
	dst = appendPadded(append(dst, '-'), day, 2)
	if dateOnly {
		return dst, nil
	}
	dst = appendPadded(append(dst, ' '), hour, 2)
	dst = appendPadded(append(dst, ':'), minute, 2)
	dst = appendPadded(append(dst, ':'), second, 2)
	return appendFraction(dst, micros, decimals), nil
}

func appendTime(dst, raw []byte, decimals int) ([]byte, error) {
	var hours, minute, second, micros int
	switch len(raw) {
	case 12:
		micros = int(binary.LittleEndian.Uint32(raw[8:]))
		fallthrough
	case 8:
		if raw[0] != 0 {
			dst = append(dst, '-')
		}
		hours = int(binary.LittleEndian.Uint32(raw[1:]))*24 + int(raw[5])
		minute, second = int(raw[6]), int(raw[7])
	case 0:
	default:
		return nil, fmt.Errorf("%w: a time of %d bytes", errProtocol, len(raw))
	}
	if micros > 999999 {
		return nil, fmt.Errorf("%w: a time with %d microseconds", errProtocol, micros)
	}
	dst = appendPadded(dst, hours, 2)
	dst = appendPadded(append(dst, ':'), minute, 2)
	dst = appendPadded(append(dst, ':'), second, 2)
	return appendFraction(dst, micros, decimals), nil
}

// keyValue returns a raw value of a key column as a bound. It owns its memory.
func (c *column) keyValue(raw []byte) (pkrange.Value, error) {
	if raw == nil {
		return pkrange.Value{}, vterrors.Errorf(vtrpcpb.Code_UNIMPLEMENTED, "key column %s: a key with NULLs makes no ranges", c.name)
	}
	switch {
	case c.integer() && c.unsigned():
		return pkrange.Value{Kind: pkrange.Uint, Uint: c.number(raw)}, nil
	case c.integer():
		return pkrange.Value{Kind: pkrange.Int, Int: int64(c.number(raw))}, nil
	case c.class == classDate:
		text, err := c.appendText(nil, raw)
		return pkrange.Value{Kind: pkrange.Temporal, Bytes: text}, err
	case sqltypes.IsDecimal(c.sqlType):
		return pkrange.Value{Kind: pkrange.Decimal, Bytes: slices.Clone(raw)}, nil
	case c.rangeable():
		return pkrange.Value{Kind: pkrange.Bytes, Bytes: append(empty, raw...)}, nil
	}
	return pkrange.Value{}, c.notRangeable()
}

// rangeable says whether ranges can be in the column: whether MySQL compares it with a parameter in the order of an index.
func (c *column) rangeable() bool {
	switch c.class {
	case classTiny, classShort, classLong, classLongLong, classDate:
		return true
	case classString:
		if c.flags&(flagEnum|flagSet) != 0 {
			return false
		}
		switch c.sqlType {
		case sqltypes.Decimal, sqltypes.VarChar, sqltypes.Char, sqltypes.VarBinary, sqltypes.Binary, sqltypes.Text, sqltypes.Blob:
			return true
		}
	}
	return false
}

func (c *column) notRangeable() error {
	return vterrors.Errorf(vtrpcpb.Code_UNIMPLEMENTED, "key column %s: there are no ranges in columns of type %v", c.name, c.sqlType)
}
