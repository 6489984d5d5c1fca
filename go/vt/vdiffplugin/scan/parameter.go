// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package scan

import (
	"encoding/binary"
	"encoding/hex"
	"strconv"
	"strings"

	"vitess.io/vitess/go/mysql/binlog"
	"vitess.io/vitess/go/vt/vterrors"

	vtrpcpb "vitess.io/vitess/go/vt/proto/vtrpc"

	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/pkrange"
)

// appendExecute appends the command that executes a prepared statement with values for its parameters.
func appendExecute(dst []byte, statement uint32, params []pkrange.Value) ([]byte, error) {
	dst = append(dst, comStmtExecute)
	dst = binary.LittleEndian.AppendUint32(dst, statement)
	dst = append(dst, 0) // no cursor
	dst = binary.LittleEndian.AppendUint32(dst, 1)
	if len(params) == 0 {
		return dst, nil
	}
	dst = append(dst, make([]byte, (len(params)+7)/8)...) // none is NULL
	dst = append(dst, 1)                                  // the types follow
	for i := range params {
		kind, flag := parameterType(&params[i])
		dst = append(dst, kind, flag)
	}
	var err error
	for i := range params {
		if dst, err = appendParameter(dst, &params[i]); err != nil {
			return nil, err
		}
	}
	return dst, nil
}

// parameterType is the type of a parameter, such that MySQL compares it with a column in the column's own order. Bytes
// are a binary string: see placeholder.
func parameterType(v *pkrange.Value) (kind, flag byte) {
	switch v.Kind {
	case pkrange.Int:
		return binlog.TypeLongLong, 0
	case pkrange.Uint:
		return binlog.TypeLongLong, 0x80
	case pkrange.Decimal:
		return binlog.TypeNewDecimal, 0
	case pkrange.Temporal:
		if len(v.Bytes) == len("2006-01-02") {
			return binlog.TypeDate, 0
		}
		return binlog.TypeDateTime, 0
	}
	return binlog.TypeBlob, 0
}

func appendParameter(dst []byte, v *pkrange.Value) ([]byte, error) {
	switch v.Kind {
	case pkrange.Int:
		return binary.LittleEndian.AppendUint64(dst, uint64(v.Int)), nil
	case pkrange.Uint:
		return binary.LittleEndian.AppendUint64(dst, v.Uint), nil
	case pkrange.Decimal:
		if !isDecimal(v.Bytes) {
			return nil, invalidValue("decimal")
		}
	case pkrange.Temporal:
		return appendTemporal(dst, v.Bytes)
	case pkrange.Bytes:
	default:
		return nil, invalidValue("value")
	}
	return append(appendLenEnc(dst, uint64(len(v.Bytes))), v.Bytes...), nil
}

// invalidValue does not say what the value is: it may have come over the network.
func invalidValue(what string) error {
	return vterrors.Errorf(vtrpcpb.Code_INVALID_ARGUMENT, "range: a %s is malformed", what)
}

// isDecimal says whether a text is a DECIMAL as MySQL prints it.
func isDecimal(text []byte) bool {
	if len(text) > 0 && text[0] == '-' {
		text = text[1:]
	}
	digits, point := 0, false
	for _, b := range text {
		switch {
		case b >= '0' && b <= '9':
			digits++
		case b == '.' && !point:
			point = true
		default:
			return false
		}
	}
	return digits > 0 && len(text) <= 80
}

// parseTemporal reads a DATE, DATETIME or TIMESTAMP as MySQL prints it.
func parseTemporal(text []byte) (fields [6]int, micros int, ok bool) {
	const layout = "0000-00-00 00:00:00"
	field, number := 0, 0
	for i := range layout {
		if i == len(text) && i == len("0000-00-00") {
			break
		}
		switch {
		case i >= len(text):
			return fields, 0, false
		case layout[i] == '0' && text[i] >= '0' && text[i] <= '9':
			number = number*10 + int(text[i]-'0')
		case layout[i] != '0' && text[i] == layout[i]:
			fields[field] = number
			field, number = field+1, 0
		default:
			return fields, 0, false
		}
	}
	fields[field] = number
	if len(text) <= len(layout) {
		return fields, 0, true
	}
	fraction := text[len(layout):]
	if fraction[0] != '.' || len(fraction) > 7 {
		return fields, 0, false
	}
	for i := range 6 {
		micros *= 10
		if i+1 < len(fraction) {
			if fraction[i+1] < '0' || fraction[i+1] > '9' {
				return fields, 0, false
			}
			micros += int(fraction[i+1] - '0')
		}
	}
	return fields, micros, true
}

func appendTemporal(dst, text []byte) ([]byte, error) {
	f, micros, ok := parseTemporal(text)
	if !ok {
		return nil, invalidValue("date")
	}
	if len(text) == len("2006-01-02") {
		dst = append(dst, 4)
	} else {
		dst = append(dst, 11)
	}
	dst = binary.LittleEndian.AppendUint16(dst, uint16(f[0]))
	dst = append(dst, byte(f[1]), byte(f[2]))
	if len(text) > len("2006-01-02") {
		dst = append(dst, byte(f[3]), byte(f[4]), byte(f[5]))
		dst = binary.LittleEndian.AppendUint32(dst, uint32(micros))
	}
	return dst, nil
}

// placeholder is the SQL around a parameter that is compared with a column. A parameter that is text would be in the
// charset of the connection, which need not be the column's and may not be able to hold its bytes. So it is handed over
// as bytes, which are then said to be in the column's charset and collation: MySQL takes them for a constant of the column's
// type, and can use the index.
func placeholder(v *pkrange.Value, c *collation) string {
	if v.Kind != pkrange.Bytes || c == nil {
		return "?"
	}
	return "convert(cast(? as binary) using " + c.charset + ") collate " + c.name
}

// literal is a value in the text of a statement, compared with a column as a parameter is.
func literal(v *pkrange.Value, c *collation) (string, error) {
	switch v.Kind {
	case pkrange.Int:
		return strconv.FormatInt(v.Int, 10), nil
	case pkrange.Uint:
		return strconv.FormatUint(v.Uint, 10), nil
	case pkrange.Decimal:
		if !isDecimal(v.Bytes) {
			return "", invalidValue("decimal")
		}
		return string(v.Bytes), nil
	case pkrange.Temporal:
		if _, _, ok := parseTemporal(v.Bytes); !ok {
			return "", invalidValue("date")
		}
		return "'" + string(v.Bytes) + "'", nil
	case pkrange.Bytes:
		text := "x'" + hex.EncodeToString(v.Bytes) + "'"
		if c == nil {
			return text, nil
		}
		return "convert(" + text + " using " + c.charset + ") collate " + c.name, nil
	}
	return "", invalidValue("value")
}

// substitute replaces each ? of a condition. It is told the quoted name of the column that the value is compared
// with, which in a range's condition is the last one before it.
func substitute(sql string, replace func(column string, i int) (string, error)) (string, error) {
	var out strings.Builder
	column, n := "", 0
	for i := 0; i < len(sql); i++ {
		switch sql[i] {
		case '`':
			end := i + 1
			for end < len(sql) && (sql[end] != '`' || end+1 < len(sql) && sql[end+1] == '`') {
				if sql[end] == '`' {
					end++
				}
				end++
			}
			column = sql[i:min(end+1, len(sql))]
			out.WriteString(column)
			i = end
		case '?':
			text, err := replace(column, n)
			if err != nil {
				return "", err
			}
			out.WriteString(text)
			n++
		default:
			out.WriteByte(sql[i])
		}
	}
	return out.String(), nil
}
