// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"

	"vitess.io/vitess/go/mysql/collations"
	"vitess.io/vitess/go/mysql/collations/colldata"
	"vitess.io/vitess/go/sqltypes"

	querypb "vitess.io/vitess/go/vt/proto/query"
)

// order returns how MySQL orders both sides' values of a column, or OrderNone and why that is not
// known to be the same.
func (c *column) order() (Order, string) {
	source, target := c.Source, c.Target
	switch {
	case c.TimeZones, c.source == "" && !c.constant:
		return OrderNone, fmt.Sprintf("key column %s is computed", c.Name)
	case c.sourceConverted, c.targetConverted:
		return OrderNone, fmt.Sprintf("key column %s has different charsets", c.Name)
	case source.Nullable, target.Nullable:
		return OrderNone, fmt.Sprintf("key column %s can be null", c.Name)
	}

	none := func() (Order, string) {
		return OrderNone, fmt.Sprintf("key column %s is %s on the source and %s on the target", c.Name, source.ColumnType, target.ColumnType)
	}
	numbers := isNumber(source.Type) && isNumber(target.Type)
	switch {
	case numbers && sqltypes.IsSigned(source.Type) && sqltypes.IsSigned(target.Type):
		return OrderSigned, ""
	case numbers && sqltypes.IsUnsigned(source.Type) && sqltypes.IsUnsigned(target.Type):
		return OrderUnsigned, ""
	case numbers:
		return OrderDecimal, ""
	case isCharacter(source.Type) && isCharacter(target.Type):
		if source.Collation != target.Collation || source.Charset != target.Charset {
			return OrderNone, fmt.Sprintf("key column %s has different collations", c.Name)
		}
		if source.Collation == collations.Unknown || colldata.Lookup(source.Collation) == nil {
			return OrderNone, fmt.Sprintf("key column %s has a collation that Vitess does not know", c.Name)
		}
		return OrderCollation, ""
	case source.Type != target.Type:
		return none()
	}

	switch source.Type {
	case sqltypes.VarBinary, sqltypes.Date, sqltypes.Year:
		return OrderBytes, ""
	case sqltypes.Binary, sqltypes.Datetime, sqltypes.Timestamp:
		// The length pads the value, the precision cuts it.
		if source.ColumnType == target.ColumnType {
			return OrderBytes, ""
		}
		return none()
	case sqltypes.Blob, sqltypes.Text:
		return OrderNone, fmt.Sprintf("key column %s is %s, which MySQL sorts by its beginning", c.Name, source.ColumnType)
	}
	return OrderNone, fmt.Sprintf("key column %s is %s, whose order is not compared here", c.Name, source.ColumnType)
}

// isNumber says whether values are exact decimal numbers.
func isNumber(t querypb.Type) bool {
	return sqltypes.IsIntegral(t) && t != sqltypes.Year || sqltypes.IsDecimal(t)
}

func isCharacter(t querypb.Type) bool {
	return t == sqltypes.Char || t == sqltypes.VarChar
}
