// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package endtoend

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"vitess.io/vitess/go/sqltypes"

	"github.com/vttablet-ext/vttablet-ext/test/endtoend/cluster"
)

// What is true of a table is found by brute force: all rows of both sides are read, each value in a form of its kind, and
// paired by a map. Nothing here knows how an engine goes about it.

// nullForm is the form of NULL; no other value has it.
const nullForm = "\x00"

// truthRow is a row of one side.
type truthRow struct {
	forms []string         // of the columns compared
	texts []sqltypes.Value // what the forms are made of, as SQL reads it
	raw   []string         // the stored bytes of text in hex, "" for other kinds
	key   string           // equal for rows that are a pair
	ksid  []byte           // of a row of the source that is split
	// members are the rows that were added up.
	members []*truthRow
}

func (r *truthRow) equal(other *truthRow) bool { return slices.Equal(r.forms, other.forms) }

// truth is how the rows of one table on one shard of the target compare.
type truth struct {
	matching                 int64
	mismatched               [][2]*truthRow
	extraSource, extraTarget []*truthRow
}

func (v *truth) counts() [4]int64 {
	return [4]int64{v.matching, int64(len(v.mismatched)), int64(len(v.extraSource)), int64(len(v.extraTarget))}
}

func (v *truth) different() bool {
	return len(v.mismatched)+len(v.extraSource)+len(v.extraTarget) > 0
}

// read reads the rows of one side.
func (t *randomTable) read(ctx context.Context, s sessions, tablet *cluster.Tablet, target bool, padding map[string]bool) ([]*truthRow, error) {
	columns, paired := t.compared(), t.pairedBy()
	place, err := t.placedBy()
	if err != nil {
		return nil, err
	}
	var list []string
	for _, c := range columns {
		name := quote(c.source)
		if target {
			name = quote(c.name)
		}
		list = append(list, c.kind.form.sql(name))
		if c.kind.form == formText {
			list = append(list, "hex("+name+")")
		} else {
			list = append(list, "''")
		}
	}
	for _, c := range paired {
		list = append(list, c.fold(target, padding))
	}
	table := t.name
	if !target {
		table = t.source
		if place != nil {
			list = append(list, place.sql()...)
		}
	}
	query := "select " + strings.Join(list, ", ") + " from " + quote(table)
	if condition := t.condition(target); condition != "" {
		query += " where " + condition
	}
	result, err := s.exec(ctx, tablet, query)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", query, err)
	}
	rows := make([]*truthRow, len(result.Rows))
	for i, values := range result.Rows {
		row := &truthRow{}
		for n, c := range columns {
			row.forms = append(row.forms, c.asRead(c.kind.form.of(values[2*n]), target))
			row.texts = append(row.texts, values[2*n])
			row.raw = append(row.raw, values[2*n+1].ToString())
		}
		for n, c := range paired {
			folded := values[2*len(columns)+n].ToString()
			if collatedType.FindString(c.targetType) == "" {
				folded = row.forms[slices.Index(columns, c)]
			}
			row.key += fmt.Sprintf("%d:%s", len(folded), folded)
		}
		if paired == nil {
			row.key = strings.Join(row.forms, "\x01")
		}
		if !target && place != nil {
			if row.ksid, err = place.keyspaceID(values[len(values)-len(place.columns):]); err != nil {
				return nil, fmt.Errorf("table %s: %w", t.name, err)
			}
		}
		rows[i] = row
	}
	return rows, nil
}

// of is the form of what sql reads.
func (f form) of(value sqltypes.Value) string {
	if value.IsNull() {
		return nullForm
	}
	text := value.ToString()
	switch f {
	case formExact:
		negative := strings.HasPrefix(text, "-")
		text = strings.TrimLeft(strings.TrimPrefix(text, "-"), "0")
		if strings.Contains(text, ".") {
			text = strings.TrimRight(strings.TrimRight(text, "0"), ".")
		}
		if text == "" {
			return "0"
		}
		if negative {
			text = "-" + text
		}
	case formFloat:
		n, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return text
		}
		if n == 0 {
			return "0" // without its sign
		}
		return strconv.FormatFloat(n, 'g', -1, 64)
	case formTime:
		if len(text) == len("2006-01-02") && strings.Count(text, "-") == 2 {
			text += " 00:00:00"
		}
		if !strings.Contains(text, ".") {
			text += "."
		}
		whole, fraction, _ := strings.Cut(text, ".")
		return whole + "." + (fraction + "000000")[:6]
	}
	return text
}

// compare finds what is true of a table on one shard. within says whether a row of the source belongs there.
func (t *randomTable) compare(source, target []*truthRow, within func(*truthRow) bool) (*truth, error) {
	v := &truth{}
	source = slices.DeleteFunc(slices.Clone(source), func(row *truthRow) bool { return !within(row) })
	if t.rollup {
		source = t.add(source)
	}
	bySource := map[string][]*truthRow{}
	for _, row := range source {
		bySource[row.key] = append(bySource[row.key], row)
		if t.pairedBy() != nil && len(bySource[row.key]) > 1 {
			return nil, fmt.Errorf("table %s: two rows of the source have the key %q", t.name, row.key)
		}
	}
	seen := map[string]bool{}
	for _, row := range target {
		if t.pairedBy() != nil && seen[row.key] {
			return nil, fmt.Errorf("table %s: two rows of the target have the key %q", t.name, row.key)
		}
		seen[row.key] = true
		partners := bySource[row.key]
		switch {
		case len(partners) == 0 && t.leftover(row):
			v.matching++
			continue
		case len(partners) == 0:
			v.extraTarget = append(v.extraTarget, row)
			continue
		case t.same(partners[0], row):
			v.matching++
		default:
			v.mismatched = append(v.mismatched, [2]*truthRow{partners[0], row})
		}
		bySource[row.key] = partners[1:]
	}
	for _, row := range source { // in the order of the source, so that two runs print the same
		if partners := bySource[row.key]; slices.Contains(partners, row) {
			v.extraSource = append(v.extraSource, row)
		}
	}
	return v, nil
}

// find reads both sides and compares them, for each shard of the target.
func (b *batch) find(ctx context.Context, t *randomTable) (map[string]*truth, error) {
	sources := make([][]*truthRow, len(b.sources))
	for i, tablet := range b.sources {
		var err error
		if sources[i], err = t.read(ctx, b.sessions, tablet, false, b.o.padding); err != nil {
			return nil, err
		}
	}
	found := map[string]*truth{}
	for _, tablet := range b.targets {
		target, err := t.read(ctx, b.sessions, tablet, true, b.o.padding)
		if err != nil {
			return nil, err
		}
		if t.copies() {
			found[tablet.Shard], err = t.compareCopies(sources, target)
		} else {
			var source []*truthRow
			for i := range sources {
				if feeds(b.sources[i], tablet) {
					source = append(source, sources[i]...)
				}
			}
			found[tablet.Shard], err = t.compare(source, target, inShard(tablet.Shard))
		}
		if err != nil {
			return nil, err
		}
	}
	return found, nil
}
