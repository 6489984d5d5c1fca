// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package scan

import (
	"fmt"
	"slices"
	"sync"
	"unicode/utf8"

	"vitess.io/vitess/go/vt/sqlparser"
	"vitess.io/vitess/go/vt/vterrors"
	"vitess.io/vitess/go/vt/vtgate/vindexes"

	topodatapb "vitess.io/vitess/go/vt/proto/topodata"
	vtrpcpb "vitess.io/vitess/go/vt/proto/vtrpc"

	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/digest"
	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/pkrange"
)

// Limits of what may be asked for. MySQL's own are 64 characters, 4096 columns and 16 key parts.
const (
	maxName       = 64
	maxColumns    = 4096
	maxKey        = 16
	maxExpression = 64 << 10
	maxBound      = 64 << 10
	maxTables     = 10_000
	maxRanges     = 100_000
	maxStreams    = 100_000
)

func invalid(format string, args ...any) error {
	return vterrors.Errorf(vtrpcpb.Code_INVALID_ARGUMENT, format, args...)
}

// Check says whether a table is one that may be read: whether its SQL is nothing but expressions in the columns of the
// one table, without side effects, and whether all indexes are in bounds. That the table and its columns exist is left
// to MySQL. Its errors have code INVALID_ARGUMENT or, where an expression is just not one of those known to be harmless,
// UNIMPLEMENTED.
func (t *Table) Check() error {
	_, err := t.compile()
	return err
}

// compiled is a Table whose SQL was checked. The SQL is what the parser has understood, not what was sent.
type compiled struct {
	*Table
	columns []string
	where   string
	// vindex and ranges are what Filter is made of.
	vindex vindexes.Vindex
	ranges *topodatapb.KeyRange
}

// filter returns the filter for rows of these columns, nil when the table has none.
func (c *compiled) filter(columns []column) (*keyRangeFilter, error) {
	if c.Filter == nil {
		return nil, nil
	}
	return newKeyRangeFilter(c.Filter, c.vindex, c.ranges, columns)
}

var newParser = sync.OnceValues(func() (*sqlparser.Parser, error) {
	return sqlparser.New(sqlparser.Options{TruncateErrLen: 64})
})

func (t *Table) compile() (*compiled, error) {
	if t == nil {
		return nil, invalid("there is no table")
	}
	c := &compiled{Table: t}
	if err := checkName("table", t.Name); err != nil {
		return nil, err
	}
	if n := len(t.Columns); n == 0 || n > maxColumns {
		return nil, invalid("table %s: %d columns", t.Name, n)
	}
	for i, expr := range t.Columns {
		sql, err := checkExpression(expr)
		if err != nil {
			return nil, vterrors.Wrapf(err, "table %s: column %d", t.Name, i+1)
		}
		c.columns = append(c.columns, sql)
	}
	if t.Where != "" {
		var err error
		if c.where, err = checkExpression(t.Where); err != nil {
			return nil, vterrors.Wrapf(err, "table %s: condition", t.Name)
		}
	}
	if err := t.checkKey(); err != nil {
		return nil, err
	}
	if f := t.Filter; f != nil {
		if err := checkIndexes(f.Columns, len(t.Columns)); err != nil {
			return nil, vterrors.Wrapf(err, "table %s: filter", t.Name)
		}
		var err error
		if c.vindex, c.ranges, err = newVindex(f); err != nil {
			return nil, vterrors.Wrapf(err, "table %s", t.Name)
		}
	}
	return c, nil
}

func (t *Table) checkKey() error {
	if len(t.Key) > maxKey {
		return invalid("table %s: %d key columns", t.Name, len(t.Key))
	}
	if (len(t.Key) > 0) != (t.Index != "") {
		return invalid("table %s: a key needs an index, and an index a key", t.Name)
	}
	if t.Index != "" {
		if err := checkName("index", t.Index); err != nil {
			return vterrors.Wrapf(err, "table %s", t.Name)
		}
	}
	for _, k := range t.Key {
		if err := checkName("key column", k.Name); err != nil {
			return vterrors.Wrapf(err, "table %s", t.Name)
		}
		if err := checkIndexes([]int{k.Column}, len(t.Columns)); err != nil {
			return vterrors.Wrapf(err, "table %s: key column %s", t.Name, k.Name)
		}
	}
	return nil
}

func checkName(what, name string) error {
	if name == "" || utf8.RuneCountInString(name) > maxName || !utf8.ValidString(name) || slices.Contains([]byte(name), 0) {
		return invalid("the name of a %s is malformed", what)
	}
	return nil
}

func checkIndexes(indexes []int, n int) error {
	if len(indexes) > maxColumns {
		return invalid("%d columns", len(indexes))
	}
	for _, i := range indexes {
		if i < 0 || i >= n {
			return invalid("column %d of %d", i, n)
		}
	}
	return nil
}

func checkRange(t *Table, r pkrange.Range) error {
	for _, b := range []pkrange.Bound{r.After, r.UpTo} {
		if len(b) > len(t.Key) {
			return invalid("table %s: a bound of %d values for a key of %d columns", t.Name, len(b), len(t.Key))
		}
		for i := range b {
			if len(b[i].Bytes) > maxBound {
				return invalid("table %s: a bound of %d bytes", t.Name, len(b[i].Bytes))
			}
			if b[i].Kind < pkrange.Int || b[i].Kind > pkrange.Bytes {
				return invalid("table %s: a bound of unknown kind %d", t.Name, b[i].Kind)
			}
		}
	}
	return nil
}

// Check says whether a request is one that can be answered.
func (r *DigestRequest) Check() error {
	if err := r.Table.Check(); err != nil {
		return err
	}
	return r.check()
}

// check is Check for a request whose table was checked.
func (r *DigestRequest) check() error {
	name := r.Table.Name
	switch {
	case r.Limit < 0 || r.MaxBytes < 0 || r.MaxTime < 0 || r.MaxRows < 0:
		return invalid("table %s: a negative limit", name)
	case r.walks() && len(r.Table.Key) == 0:
		return invalid("table %s: a limit needs a key", name)
	case r.Buckets != 0 && !digest.ValidBuckets(r.Buckets):
		return invalid("table %s: %d buckets", name, r.Buckets)
	}
	if err := checkIndexes(r.BucketKey, len(r.Table.Columns)); err != nil {
		return vterrors.Wrapf(err, "table %s: bucket key", name)
	}
	return checkRange(r.Table, r.Range)
}

// compiler compiles the tables of one call, each once: hundreds of ranges may be of the same.
type compiler map[*Table]*compiled

func (m compiler) compile(t *Table) (*compiled, error) {
	if c := m[t]; c != nil {
		return c, nil
	}
	c, err := t.compile()
	if err == nil {
		m[t] = c
	}
	return c, err
}

// walks says whether the read may end before the range does.
func (r *DigestRequest) walks() bool {
	return r.Limit > 0 || r.MaxBytes > 0 || r.MaxTime > 0 || r.MaxRows > 0
}

// checkExpression parses an expression, checks that it is harmless, and returns it as the parser prints it.
func checkExpression(sql string) (string, error) {
	if len(sql) > maxExpression {
		return "", invalid("an expression of %d bytes", len(sql))
	}
	parser, err := newParser()
	if err != nil {
		return "", err
	}
	// ParseExpr takes the first expression of a text that goes on behind it. Here the text has to be all of a statement.
	statement, err := parser.Parse("select " + sql + " from dual")
	if err != nil {
		return "", invalid("an expression cannot be parsed")
	}
	selection, ok := statement.(*sqlparser.Select)
	if !ok || selection.GetColumnCount() != 1 {
		return "", invalid("an expression is more than one")
	}
	aliased, ok := selection.SelectExprs.Exprs[0].(*sqlparser.AliasedExpr)
	if !ok {
		return "", invalid("an expression is not one")
	}
	printed := sqlparser.String(aliased.Expr)
	if sqlparser.String(statement) != "select "+printed+" from dual" {
		return "", invalid("an expression is more than one")
	}
	return printed, sqlparser.Walk(harmless, aliased.Expr)
}

// functions are those whose value depends on their arguments alone, or on the session's settings, and that do nothing else.
var functions = []string{
	"convert_tz", "concat", "concat_ws", "coalesce", "if", "ifnull", "isnull", "nullif", "lower", "lcase", "upper", "ucase",
	"length", "char_length", "character_length", "hex", "unhex", "abs", "ceil", "ceiling", "floor", "round", "mod", "greatest", "least",
	"date", "year", "month", "day", "dayofmonth", "hour", "minute", "second", "microsecond",
}

// harmless is called for each node of an expression.
func harmless(node sqlparser.SQLNode) (bool, error) {
	refused := func(what string) (bool, error) {
		return false, vterrors.Errorf(vtrpcpb.Code_UNIMPLEMENTED, "an expression has %s, which is not known to be harmless", what)
	}
	switch n := node.(type) {
	case *sqlparser.ColName:
		if !n.Qualifier.IsEmpty() {
			return false, invalid("an expression has a qualified column name")
		}
		return false, nil
	case *sqlparser.FuncExpr:
		if !n.Qualifier.IsEmpty() || !slices.Contains(functions, n.Name.Lowered()) {
			return refused("function " + bounded(n.Name.String()))
		}
	case *sqlparser.Literal, *sqlparser.NullVal, sqlparser.BoolVal, *sqlparser.BinaryExpr, *sqlparser.ComparisonExpr, *sqlparser.AndExpr,
		*sqlparser.OrExpr, *sqlparser.XorExpr, *sqlparser.NotExpr, *sqlparser.IsExpr, *sqlparser.BetweenExpr, *sqlparser.UnaryExpr,
		*sqlparser.CastExpr, *sqlparser.ConvertExpr, *sqlparser.ConvertUsingExpr, *sqlparser.CollateExpr, *sqlparser.IntroducerExpr,
		sqlparser.ValTuple, *sqlparser.SubstrExpr:
	case sqlparser.IdentifierCI, sqlparser.IdentifierCS, *sqlparser.ConvertType, nil:
	default:
		return refused(fmt.Sprintf("a %T", node))
	}
	return true, nil
}
