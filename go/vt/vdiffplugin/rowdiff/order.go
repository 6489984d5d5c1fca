// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package rowdiff

import (
	"bytes"
	"cmp"
	"strconv"

	"vitess.io/vitess/go/mysql/decimal"
	"vitess.io/vitess/go/vt/vterrors"

	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/plan"
	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/scan"

	vtrpcpb "vitess.io/vitess/go/vt/proto/vtrpc"
)

// key is the key of a row that waits at the head of a stream. A key of one integer column, the usual
// case, is compared as a number that is parsed once per row.
type key struct {
	row    scan.Row
	number int64
}

// integerKey says whether the table's key is a single integer column. An unsigned number is held
// with its sign bit flipped, which keeps the order.
func (c *comparer) integerKey() (unsigned, ok bool) {
	if len(c.table.Key) != 1 {
		return false, false
	}
	switch c.columns[c.table.Key[0]].Order {
	case plan.OrderSigned:
		return false, true
	case plan.OrderUnsigned:
		return true, true
	}
	return false, false
}

func parseInteger(value []byte, unsigned bool) (int64, bool) {
	if unsigned {
		n, ok := parseUint(value)
		return int64(n ^ 1<<63), ok
	}
	neg := len(value) > 0 && value[0] == '-'
	if neg {
		value = value[1:]
	}
	n, ok := parseUint(value)
	switch {
	case !ok:
		return 0, false
	case neg:
		return -int64(n), n <= 1<<63
	default:
		return int64(n), n < 1<<63
	}
}

func parseUint(value []byte) (uint64, bool) {
	if len(value) == 0 || len(value) > 19 {
		n, err := strconv.ParseUint(string(value), 10, 64)
		return n, err == nil
	}
	var n uint64
	for _, d := range value {
		if d -= '0'; d > 9 {
			return 0, false
		}
		n = n*10 + uint64(d)
	}
	return n, true
}

// compareKeys orders two rows by the table's key: negative, zero or positive.
func (c *comparer) compareKeys(a, b scan.Row) (int, error) {
	for _, k := range c.table.Key {
		n, err := c.compareColumn(k, a, b)
		if n != 0 || err != nil {
			return n, err
		}
	}
	return 0, nil
}

func (c *comparer) compareColumn(i int, a, b scan.Row) (int, error) {
	av, aok := a.Value(i)
	bv, bok := b.Value(i)
	if !aok || !bok { // NULL sorts first
		return cmp.Compare(boolInt(aok), boolInt(bok)), nil
	}
	col := &c.columns[i]
	switch col.Order {
	case plan.OrderSigned, plan.OrderUnsigned:
		unsigned := col.Order == plan.OrderUnsigned
		an, aok := parseInteger(av, unsigned)
		bn, bok := parseInteger(bv, unsigned)
		if !aok || !bok {
			return 0, vterrors.Errorf(vtrpcpb.Code_INTERNAL, "table %s: column %s: not an integer", c.table.Name, col.Name)
		}
		return cmp.Compare(an, bn), nil
	case plan.OrderBytes:
		return bytes.Compare(av, bv), nil
	case plan.OrderDecimal:
		ad, err := decimal.NewFromMySQL(av)
		if err != nil {
			return 0, err
		}
		bd, err := decimal.NewFromMySQL(bv)
		if err != nil {
			return 0, err
		}
		return ad.Cmp(bd), nil
	case plan.OrderCollation:
		return col.text.Compare(av, bv), nil
	}
	return 0, vterrors.Errorf(vtrpcpb.Code_INTERNAL, "table %s: column %s has no order", c.table.Name, col.Name)
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}
