// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package plan

import (
	"strings"
	"time"

	"vitess.io/vitess/go/mysql/collations"
	"vitess.io/vitess/go/mysql/collations/colldata"
	"vitess.io/vitess/go/sqltypes"
	"vitess.io/vitess/go/vt/sqlparser"
	"vitess.io/vitess/go/vt/vterrors"
	"vitess.io/vitess/go/vt/vtgate/evalengine"
)

// Condition is a condition of a rule that decides on rows as they arrive, as a vstreamer does on rows of the binlog.
//
// MySQL cannot be asked instead: for a vstreamer 'x ' <> 'x' is true under every collation, for MySQL only under one that
// does not pad. VStreamRows gives its where clause to MySQL too, and so returns only the rows for which both say yes.
type Condition struct {
	// Column is the index in Table.Columns, or behind them that of one of Table.SourceJudged; SQL is the condition in the names of
	// the rule.
	Column int
	SQL    string
	// LikeSource is set where the target's values are judged by the type and the collation of the source's column, as the rows
	// were when they were replicated.
	LikeSource bool

	test test
	env  *collations.Environment
}

// test is a condition of a form that a vstreamer takes, apart from its column.
type test struct {
	op     sqlparser.ComparisonExprOperator
	values []sqltypes.Value
	// between and notBetween have two values, null and notNull none. op is for the others.
	form form
}

type form int

const (
	comparison form = iota
	between
	notBetween
	isNull
	isNotNull
)

// Pass says whether a row with this value is one that a vstreamer sends: value is of the type and the collation that the field of
// a row stream says.
func (c *Condition) Pass(value sqltypes.Value, collation collations.ID) (bool, error) {
	switch c.test.form {
	case isNull, isNotNull:
		return value.IsNull() == (c.test.form == isNull), nil
	}
	if value.IsNull() {
		return false, nil
	}
	var result [2]int
	for i, v := range c.test.values {
		n, err := evalengine.NullsafeCompare(value, v, c.env, collation, nil)
		if err != nil {
			return false, vterrors.Wrapf(err, "VReplication cannot put its condition %s to a row", c.SQL)
		}
		if c.test.op == sqlparser.InOp && n == 0 {
			return true, nil
		}
		if i < len(result) {
			result[i] = n
		}
	}
	first, second := result[0], result[1]
	switch c.test.form {
	case between:
		return first >= 0 && second <= 0, nil
	case notBetween:
		return first < 0 || second > 0, nil
	}
	switch c.test.op {
	case sqlparser.EqualOp:
		return first == 0, nil
	case sqlparser.NotEqualOp:
		return first != 0, nil
	case sqlparser.LessThanOp:
		return first < 0, nil
	case sqlparser.LessEqualOp:
		return first <= 0, nil
	case sqlparser.GreaterThanOp:
		return first > 0, nil
	case sqlparser.GreaterEqualOp:
		return first >= 0, nil
	}
	return false, nil
}

// parseTest returns the column and the test of a condition. ok is false for what a vstreamer does not take, and for literals that
// are rare.
func parseTest(expr sqlparser.Expr) (name string, t test, ok bool) {
	column := func(expr sqlparser.Expr) {
		if c, isColumn := expr.(*sqlparser.ColName); isColumn && c.Qualifier.IsEmpty() {
			name = c.Name.String()
		}
	}
	var literals []sqlparser.Expr
	switch e := expr.(type) {
	case *sqlparser.ComparisonExpr:
		column(e.Left)
		t.op, literals = e.Operator, []sqlparser.Expr{e.Right}
		switch e.Operator {
		case sqlparser.EqualOp, sqlparser.NotEqualOp, sqlparser.LessThanOp, sqlparser.LessEqualOp, sqlparser.GreaterThanOp, sqlparser.GreaterEqualOp:
		case sqlparser.InOp:
			tuple, isTuple := e.Right.(sqlparser.ValTuple)
			if !isTuple {
				return "", t, false
			}
			literals = tuple
		default:
			return "", t, false
		}
	case *sqlparser.BetweenExpr:
		column(e.Left)
		t.form, literals = notBetween, []sqlparser.Expr{e.From, e.To}
		if e.IsBetween {
			t.form = between
		}
	case *sqlparser.IsExpr:
		column(e.Left)
		switch e.Right {
		case sqlparser.IsNullOp:
			t.form = isNull
		case sqlparser.IsNotNullOp:
			t.form = isNotNull
		default:
			return "", t, false
		}
	}
	for _, expr := range literals {
		value, known := literalValue(expr)
		if !known {
			return "", t, false
		}
		t.values = append(t.values, value)
	}
	return name, t, name != ""
}

// literalValue returns a literal as a vstreamer sees it.
func literalValue(expr sqlparser.Expr) (sqltypes.Value, bool) {
	sign := ""
	if minus, ok := expr.(*sqlparser.UnaryExpr); ok && minus.Operator == sqlparser.UMinusOp {
		sign, expr = "-", minus.Expr
	}
	literal, ok := expr.(*sqlparser.Literal)
	if !ok {
		return sqltypes.NULL, false
	}
	switch literal.Type {
	case sqlparser.StrVal:
		return sqltypes.NewVarChar(literal.Val), sign == ""
	case sqlparser.DecimalVal:
		return sqltypes.NewDecimal(sign + literal.Val), true
	case sqlparser.IntVal:
		v, err := sqltypes.NewIntegral(sign + literal.Val)
		return v, err == nil
	}
	return sqltypes.NULL, false
}

// exact says whether MySQL and a vstreamer agree on the test for every value of a type.
func (t test) exact(column ColumnType, env *collations.Environment) bool {
	every := func(ok func(v sqltypes.Value) bool) bool {
		for _, v := range t.values {
			if !ok(v) {
				return false
			}
		}
		return true
	}
	text := func(v sqltypes.Value) bool { return v.Type() == sqltypes.VarChar }
	// At other literals, 2020-1-1 or a date with a fraction, both have rules of their own.
	written := func(layouts ...string) func(v sqltypes.Value) bool {
		return func(v sqltypes.Value) bool {
			for _, layout := range layouts {
				if at, err := time.Parse(layout, v.ToString()); err == nil && text(v) && len(v.Raw()) == len(layout) && at.Year() > 0 {
					return true
				}
			}
			return false
		}
	}
	switch {
	case t.form == isNull, t.form == isNotNull:
		return true
	case isNumber(column.Type):
		return every(func(v sqltypes.Value) bool { return !text(v) })
	case isString(column.Type):
		return !pads(column, env) && every(text)
	case column.Type == sqltypes.VarBinary, column.Type == sqltypes.Blob:
		return every(text)
	case column.Type == sqltypes.Date:
		return every(written(time.DateOnly))
	case column.Type == sqltypes.Datetime, column.Type == sqltypes.Timestamp:
		return every(written(time.DateOnly, time.DateTime))
	}
	return false
}

// narrow says whether MySQL says yes wherever a vstreamer does, so that it takes nothing away from what the vstreamer would choose:
// what is equal without padding is equal with it, too.
func (t test) narrow(column ColumnType) bool {
	if t.form != comparison || t.op != sqlparser.EqualOp && t.op != sqlparser.InOp || !isString(column.Type) || !known(column.Collation) {
		return false
	}
	for _, v := range t.values {
		if v.Type() != sqltypes.VarChar {
			return false
		}
	}
	return true
}

func isString(t sqltypes.Type) bool { return isCharacter(t) || t == sqltypes.Text }

// pads says whether MySQL pads text with spaces before it compares it, or may do so.
func pads(column ColumnType, env *collations.Environment) bool {
	return !known(column.Collation) || !strings.Contains(env.LookupName(column.Collation), "_0900_")
}

func known(id collations.ID) bool { return id != collations.Unknown && colldata.Lookup(id) != nil }
