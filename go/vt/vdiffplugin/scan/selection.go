// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package scan

import (
	"strconv"
	"strings"

	"vitess.io/vitess/go/sqlescape"
	"vitess.io/vitess/go/vt/vterrors"

	vtrpcpb "vitess.io/vitess/go/vt/proto/vtrpc"

	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/pkrange"
)

// keyNames are the quoted names of the key's columns.
func (c *compiled) keyNames() []string {
	names := make([]string, len(c.Key))
	for i, k := range c.Key {
		names[i] = sqlescape.EscapeID(k.Name)
	}
	return names
}

// selectSQL is the statement that reads the rows for which condition is true, "" for all, in the order of the key if
// ordered says so. limit is "" for none.
func (c *compiled) selectSQL(condition string, ordered bool, limit string) string {
	var b strings.Builder
	b.WriteString("select ")
	b.WriteString(strings.Join(c.columns, ", "))
	b.WriteString(" from ")
	sqlescape.WriteEscapeID(&b, c.Name)
	if c.Index != "" {
		b.WriteString(" force index (")
		sqlescape.WriteEscapeID(&b, c.Index)
		b.WriteString(")")
	}
	var conditions []string
	if c.where != "" {
		conditions = append(conditions, "("+c.where+")")
	}
	if condition != "" {
		conditions = append(conditions, "("+condition+")")
	}
	if len(conditions) > 0 {
		b.WriteString(" where ")
		b.WriteString(strings.Join(conditions, " and "))
	}
	if ordered && len(c.Key) > 0 {
		b.WriteString(" order by ")
		b.WriteString(pkrange.OrderBy(c.keyNames()))
	}
	if limit != "" {
		b.WriteString(" limit ")
		b.WriteString(limit)
	}
	return b.String()
}

// keyColumns tells the types of the key's columns, in which the values of a range are compared. It asks MySQL by preparing a
// statement; nothing is read.
func (c *compiled) keyColumns(s *session) ([]column, error) {
	st, err := s.prepare(c.selectSQL("", false, ""))
	if err != nil {
		return nil, err
	}
	if len(st.columns) != len(c.columns) {
		return nil, errTableChanged(c.Name)
	}
	return c.keyOf(st.columns)
}

func (c *compiled) keyOf(columns []column) ([]column, error) {
	key := make([]column, len(c.Key))
	for i, k := range c.Key {
		key[i] = columns[k.Column]
		if !key[i].rangeable() {
			return nil, key[i].notRangeable()
		}
	}
	return key, nil
}

// errTableChanged says that a table is not what it was a moment ago. It passes.
func errTableChanged(table string) error {
	return vterrors.Errorf(vtrpcpb.Code_UNAVAILABLE, "table %s: it was altered while it was read", table)
}

// condition returns the condition of a range with its parameters in place, as replace says.
func (c *compiled) condition(s *session, r pkrange.Range, key []column, replace func(v *pkrange.Value, c *collation) (string, error)) (string, []pkrange.Value, error) {
	names := c.keyNames()
	sql, params := pkrange.Predicate(names, r)
	if sql == "" {
		return "", nil, nil
	}
	collations := make(map[string]*collation, len(key))
	for i := range key {
		if key[i].text() {
			found, err := s.pool.collationOf(s, key[i].collation)
			if err != nil {
				return "", nil, vterrors.Wrapf(err, "table %s: key column %s", c.Name, c.Key[i].Name)
			}
			collations[names[i]] = found
		}
	}
	sql, err := substitute(sql, func(column string, i int) (string, error) { return replace(&params[i], collations[column]) })
	return sql, params, err
}

// statement prepares the read of a range. key are the columns of its key, nil for a table without.
func (c *compiled) statement(s *session, req *DigestRequest, explain string) (st *statement, params []pkrange.Value, key []column, err error) {
	if len(c.Key) > 0 && (!req.Range.Whole() || req.walks()) {
		if key, err = c.keyColumns(s); err != nil {
			return nil, nil, nil, err
		}
	}
	condition, params, err := c.condition(s, req.Range, key, func(v *pkrange.Value, c *collation) (string, error) { return placeholder(v, c), nil })
	if err != nil {
		return nil, nil, nil, err
	}
	limit := ""
	if req.Limit > 0 {
		limit = "?"
		params = append(params, pkrange.Value{Kind: pkrange.Int, Int: req.Limit})
	}
	st, err = s.prepare(explain + c.selectSQL(condition, req.walks(), limit))
	return st, params, key, err
}

// sqlIDs is a list of numbers as it stands in an SQL IN.
func sqlIDs(ids []int32) string {
	texts := make([]string, len(ids))
	for i, id := range ids {
		texts[i] = strconv.Itoa(int(id))
	}
	return strings.Join(texts, ",")
}
