// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package rowdiff

import (
	"bytes"
	"math"
	"strconv"

	"vitess.io/vitess/go/mysql/decimal"
	"vitess.io/vitess/go/sqltypes"

	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/plan"
	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/scan"
)

// sum is an aggregate of one column of a group.
type sum struct {
	count   int64
	decimal decimal.Decimal
	float   float64
	size    float64 // of the absolute values of what was added
	any     bool    // a value that is not NULL was added
	// fraction says that one of them was no whole number, and cut that one was a FLOAT that may have more digits than were read.
	fraction, cut bool
}

func (s *sum) add(col *column, row scan.Row, i int) error {
	if col.Aggregate == plan.AggregateNone {
		return nil
	}
	value, ok := row.Value(i)
	if col.Aggregate == plan.AggregateCount {
		s.count++
		return nil
	}
	if !ok {
		return nil
	}
	s.any = true
	if sqltypes.IsFloat(col.Source.Type) || sqltypes.IsFloat(col.Target.Type) {
		x, err := strconv.ParseFloat(string(value), 64)
		if err != nil {
			return err
		}
		s.size += math.Abs(x)
		s.fraction = s.fraction || x != math.Trunc(x)
		if sqltypes.IsFloat(col.Source.Type) {
			s.float += x
			s.cut = s.cut || col.Source.Type == sqltypes.Float32 && significant(value) >= floatDigits
			return nil
		}
	}
	d, err := decimal.NewFromMySQL(value)
	if err != nil {
		return err
	}
	if s.decimal.IsInitialized() {
		d = s.decimal.Add(d)
	}
	s.decimal = d
	return nil
}

// merge adds what another sum has.
func (s *sum) merge(o *sum) {
	s.count += o.count
	s.float += o.float
	s.size += o.size
	s.any = s.any || o.any
	s.fraction = s.fraction || o.fraction
	s.cut = s.cut || o.cut
	switch {
	case !s.decimal.IsInitialized():
		s.decimal = o.decimal
	case o.decimal.IsInitialized():
		s.decimal = s.decimal.Add(o.decimal)
	}
}

// printed is how far off a FLOAT may be as it is printed, of the number.
const printed = 1e-5

// significant counts the digits of a number from the first to the last that is not zero.
func significant(number []byte) int {
	mantissa, _, _ := bytes.Cut(bytes.ToLower(number), []byte("e"))
	digits := bytes.Trim(mantissa, "+-.0")
	return len(digits) - bytes.Count(digits, []byte("."))
}

// value returns the aggregate as MySQL would print it; ok is false for NULL.
func (s *sum) value(col *column) (value []byte, ok bool) {
	switch {
	case col.Aggregate == plan.AggregateCount:
		return strconv.AppendInt(nil, s.count, 10), true
	case !s.any:
		return nil, false
	case sqltypes.IsFloat(col.Source.Type):
		return strconv.AppendFloat(nil, s.float, 'g', -1, 64), true
	}
	return []byte(s.decimal.String()), true
}

// sameSum compares a sum with that of the target. Floats may differ by slack.
func sameSum(col *column, s, t []byte, slack float64) bool {
	if sqltypes.IsFloat(col.Source.Type) || sqltypes.IsFloat(col.Target.Type) {
		x, xerr := strconv.ParseFloat(string(s), 64)
		y, yerr := strconv.ParseFloat(string(t), 64)
		return xerr == nil && yerr == nil && (x == y || math.Abs(x-y) <= slack)
	}
	x, xerr := decimal.NewFromMySQL(s)
	y, yerr := decimal.NewFromMySQL(t)
	return xerr == nil && yerr == nil && x.Equal(y)
}

// slack is how much the sum of floats may differ from that of the target, since the order in which floats are added is not known: each
// addition rounds to the precision of the type, of a number that is no larger than the sum of the absolute values (Higham, Accuracy
// and Stability of Numerical Algorithms, 2nd ed., section 4.2). drift is for the additions that no row shows: an update takes off
// and adds on, and what some hundreds of them round is mostly within it. Of whole numbers that the type has, none is as small as a rounding. A
// FLOAT is read as it is printed, with six digits, which is more than what it drifts. VReplication copies a FLOAT as it is printed and
// takes it off as the binary log has it: where one may have more digits, the sum of neither form is the one to expect.
func (s *sum) slack(col *column, rows int64) float64 {
	const drift = 64
	switch {
	case math.IsInf(s.size, 0):
		return 0
	case col.Target.Type == sqltypes.Float32 && !s.fraction && s.size < 1<<24:
		return printed * s.size
	case col.Target.Type == sqltypes.Float32:
		return (0x1p-23*float64(rows+1) + printed) * s.size
	case s.cut:
		return printed * s.size
	}
	slack := 0x1p-52 * float64(rows+drift) * s.size
	if !s.fraction && s.size < 1<<53 {
		return min(slack, 0.5)
	}
	return slack
}
