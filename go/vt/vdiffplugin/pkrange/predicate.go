// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package pkrange

import "strings"

// Predicate returns the SQL condition, with ? for parameters, that is true for exactly the rows of a range, and the
// parameters in their order. The columns are the key's, quoted as in SQL, and at least as many as the bounds have
// values. It is "" for the whole table.
//
// A bound on several columns is written as nested ORs, (a > ? or (a = ? and (b > ?))), and not as a
// comparison of rows, (a, b) > (?, ?), of which MySQL makes no index range. The OR is preceded by a bound on the first
// column alone, from which alone a range scan can be made, whatever the optimizer makes of the rest. Columns in which both ends have
// the same value are written once, as equal: for a range within one tenant of a key (tenant, id) that is the
// tightest scan there is.
func Predicate(columns []string, r Range) (sql string, params []Value) {
	var p predicate
	same := r.common()
	for i := range same {
		p.and()
		p.compare(columns[i], " = ", r.After[i])
	}
	columns = columns[same:]
	if after := r.After[same:]; len(after) > 0 {
		p.and()
		p.bound(columns, after, " > ", " >= ", false)
	}
	if upTo := r.UpTo[min(same, len(r.UpTo)):]; len(upTo) > 0 {
		p.and()
		p.bound(columns, upTo, " < ", " <= ", true)
	}
	return p.sql.String(), p.params
}

// common is the number of leading values that both ends share and that may be written as equal. The last
// value of After is never one of them: its column has to be greater.
func (r Range) common() int {
	n := 0
	for n < len(r.After)-1 && n < len(r.UpTo) && r.After[n].Equal(r.UpTo[n]) {
		n++
	}
	return n
}

// OrderBy returns the columns as they stand behind ORDER BY, all ascending: the order in which ranges follow each other.
func OrderBy(columns []string) string { return strings.Join(columns, ", ") }

// predicate is a condition that is being written.
type predicate struct {
	sql    strings.Builder
	params []Value
}

// and joins what follows to what is there.
func (p *predicate) and() {
	if p.sql.Len() > 0 {
		p.sql.WriteString(" and ")
	}
}

// compare writes one comparison.
func (p *predicate) compare(column, operator string, v Value) {
	p.sql.WriteString(column)
	p.sql.WriteString(operator)
	p.sql.WriteByte('?')
	p.params = append(p.params, v)
}

// bound writes one end of a range. Strict and loose are its operators without and with equality; inclusive says
// whether rows that are equal to all values of the bound belong to the range.
func (p *predicate) bound(columns []string, b Bound, strict, loose string, inclusive bool) {
	if len(b) > 1 {
		p.compare(columns[0], loose, b[0])
		p.sql.WriteString(" and ")
	}
	for i, v := range b {
		if i == len(b)-1 {
			operator := strict
			if inclusive {
				operator = loose
			}
			p.compare(columns[i], operator, v)
			break
		}
		p.sql.WriteByte('(')
		p.compare(columns[i], strict, v)
		p.sql.WriteString(" or (")
		p.compare(columns[i], " = ", v)
		p.sql.WriteString(" and ")
	}
	for range len(b) - 1 {
		p.sql.WriteString("))")
	}
}
