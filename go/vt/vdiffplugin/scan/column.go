// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package scan

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"

	"vitess.io/vitess/go/mysql/binlog"
	"vitess.io/vitess/go/mysql/collations"
	"vitess.io/vitess/go/sqltypes"

	querypb "vitess.io/vitess/go/vt/proto/query"
)

// class is how a value lies in a row of the binary protocol. Values of one class can be compared by their bytes.
type class uint8

const (
	classString class = iota // length-encoded: text, bytes, DECIMAL, BIT, JSON, ENUM, ...
	classTiny
	classShort // YEAR too
	classLong  // INT, and MEDIUMINT
	classLongLong
	classFloat
	classDouble
	classDate // DATE, DATETIME, TIMESTAMP: a length byte, then as many of the fields as are not zero
	classTime // the same for TIME
	classNull // an expression that is NULL by its type: it takes no bytes
)

// width is the number of bytes of a value, 0 where the value tells.
var width = [classNull + 1]int{classTiny: 1, classShort: 2, classLong: 4, classLongLong: 8, classFloat: 4, classDouble: 8}

// Flags of a column definition.
const (
	flagUnsigned = 1 << 5
	flagZerofill = 1 << 6
	flagBinary   = 1 << 7
	flagEnum     = 1 << 8
	flagSet      = 1 << 11
)

// binaryCollation is the collation of what is not text.
const binaryCollation = 63

// column is a column definition.
type column struct {
	name      string
	class     class
	kind      byte   // MYSQL_TYPE_...
	collation uint16 // its own: results are not converted
	flags     uint16
	length    uint32
	decimals  uint8
	sqlType   querypb.Type
}

func (c *column) unsigned() bool { return c.flags&flagUnsigned != 0 }
func (c *column) integer() bool  { return c.class >= classTiny && c.class <= classLongLong }

// text says whether values are text in a charset.
func (c *column) text() bool {
	return c.class == classString && c.collation != binaryCollation && sqltypes.IsText(c.sqlType)
}

// parseColumn reads a column definition packet.
func parseColumn(b []byte) (column, error) {
	bad := fmt.Errorf("%w: a column definition", errProtocol)
	var c column
	var text [6][]byte // catalog, schema, table, original table, name, original name
	for i := range text {
		var ok bool
		if text[i], b, ok = lenEncBytes(b); !ok {
			return c, bad
		}
	}
	if len(b) < 11 {
		return c, bad
	}
	c.name = string(text[4])
	c.collation = binary.LittleEndian.Uint16(b[1:])
	c.length = binary.LittleEndian.Uint32(b[3:])
	c.kind = b[7]
	c.flags = binary.LittleEndian.Uint16(b[8:])
	c.decimals = b[10]
	var ok bool
	if c.class, ok = classOf(c.kind); !ok {
		return c, fmt.Errorf("column %d of type %d is of a kind that is not known", len(c.name), c.kind)
	}
	// The flag is set for text in a binary collation too; whether values are text the charset says.
	flags := int64(c.flags)
	if c.class == classString && c.collation != binaryCollation {
		flags &^= flagBinary
	}
	var err error
	if c.sqlType, err = sqltypes.MySQLToType(c.kind, flags); err != nil {
		return c, fmt.Errorf("%w: %w", errProtocol, err)
	}
	return c, nil
}

func classOf(kind byte) (class, bool) {
	switch kind {
	case binlog.TypeTiny:
		return classTiny, true
	case binlog.TypeShort, binlog.TypeYear:
		return classShort, true
	case binlog.TypeLong, binlog.TypeInt24:
		return classLong, true
	case binlog.TypeLongLong:
		return classLongLong, true
	case binlog.TypeFloat:
		return classFloat, true
	case binlog.TypeDouble:
		return classDouble, true
	case binlog.TypeDate, binlog.TypeNewDate, binlog.TypeDateTime, binlog.TypeTimestamp:
		return classDate, true
	case binlog.TypeTime:
		return classTime, true
	case binlog.TypeNull:
		return classNull, true
	case binlog.TypeDecimal, binlog.TypeNewDecimal, binlog.TypeVarchar, binlog.TypeVarString, binlog.TypeString, binlog.TypeBit,
		binlog.TypeEnum, binlog.TypeSet, binlog.TypeJSON, binlog.TypeTinyBlob, binlog.TypeMediumBlob, binlog.TypeLongBlob,
		binlog.TypeBlob, binlog.TypeGeometry, binlog.TypeVector:
		return classString, true
	}
	return 0, false
}

// field describes a column as Vitess does.
func (c *column) field() *querypb.Field {
	return &querypb.Field{
		Name: c.name, Type: c.sqlType, Charset: uint32(c.collation), ColumnLength: c.length, Decimals: uint32(c.decimals), Flags: uint32(c.flags),
	}
}

// form is the fingerprint of the wire types and the charsets of the columns: see Digest.Form. Columns of UTF-8 and those that are no
// text have the form that older versions give them; of all others these say another one, and the rows are compared.
func form(columns []column) uint64 {
	h := fnv.New64a()
	for i := range columns {
		c := &columns[i]
		b := byte(c.class) << 1
		if c.integer() && c.unsigned() {
			b |= 1
		}
		_, _ = h.Write([]byte{b})
		if charset := c.charset(); charset != "" {
			_, _ = h.Write([]byte(charset + "\xff"))
		}
	}
	return h.Sum64()
}

// charset is what the bytes of text are to be read by where that is not UTF-8, "" otherwise. Two columns of one form hold the
// same text in the same bytes.
func (c *column) charset() string {
	if c.class != classString || c.collation == binaryCollation {
		return ""
	}
	id := collations.ID(c.collation)
	switch name := collations.MySQL8().LookupCharsetName(id); name {
	case "utf8mb4", "utf8mb3", "utf8", "ascii", "binary":
		return ""
	case "": // Vitess does not know all collations
		return fmt.Sprint(id)
	default:
		return name
	}
}
