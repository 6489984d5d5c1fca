// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"vitess.io/vitess/go/textutil"
)

// keys is how the rows of a table are paired and in what order they come.
type keys struct {
	key        []int
	unique     bool
	ordered    bool
	mergeable  bool
	notOrdered string
	// sourceKey and targetKey are what the streams are ordered by. An entry is -1 where the stream
	// is ordered by something that is no column of the comparison.
	sourceKey []int
	targetKey []int
	// The directives make VStreamRows order by something else than it would by itself.
	sourceDirective string
	targetDirective string
}

// keys decides on the columns that rows are paired by, and on the order of the streams.
func (b *builder) keys() (*keys, error) {
	source, target := b.in.Source, b.in.Target
	natural := &keys{
		sourceKey: b.sourceColumns(source.Key),
		targetKey: b.targetColumns(target.Key),
	}
	if b.grouped() {
		// Rows that collide on a unique key of the target are what VReplication adds up.
		natural.key = natural.targetKey
		if !target.KeyUnique || slices.ContainsFunc(natural.key, func(i int) bool { return i < 0 || b.cols[i].Aggregate != AggregateNone }) {
			return nil, unsupported("table %s: the workflow's rule groups rows, and its group columns are not the primary key of the target: give the target a primary key of the columns in group by",
				target.Name)
		}
		natural.unique = true
	} else {
		natural.key, natural.unique = b.pairBy(natural.targetKey)
	}

	related := b.setOrder(natural, source.KeyUnique, target.KeyUnique, source.prefixed() || target.prefixed())
	if columns := b.rule.orderedBy(); len(columns) > 0 {
		unique := slices.ContainsFunc(source.Unique, func(u UniqueIndex) bool { return equalNames(u.Columns, columns) })
		natural.sourceKey = b.sourceColumns(columns)
		b.setOrder(natural, unique, target.KeyUnique, target.prefixed())
	}
	if natural.mergeable || b.grouped() {
		return natural, nil
	}
	orders := b.orders()
	if shared := b.sharedIndex(); shared != nil {
		// The stock engine, which orders by primary keys only, must not take a checkpoint of this table
		// for its own. It refuses the table unless the natural keys are related.
		if related {
			shared.ordered, shared.notOrdered = false, natural.notOrdered
		}
		return shared, nil
	}
	for i, c := range b.cols {
		c.Order = orders[i]
	}
	return natural, nil
}

// orders returns the Order of each column as it is set now.
func (b *builder) orders() []Order {
	orders := make([]Order, len(b.cols))
	for i, c := range b.cols {
		orders[i] = c.Order
	}
	return orders
}

// sourceColumns turns column names of the source into indexes, -1 where no column has their values.
func (b *builder) sourceColumns(names []string) []int {
	indexes := make([]int, len(names))
	for i, name := range names {
		indexes[i] = b.projection(name)
	}
	return indexes
}

// targetColumns turns column names of the target into indexes, -1 where they are not compared.
func (b *builder) targetColumns(names []string) []int {
	indexes := make([]int, len(names))
	for i, name := range names {
		indexes[i] = slices.IndexFunc(b.cols, func(c *column) bool { return strings.EqualFold(c.Name, name) })
	}
	return indexes
}

// pairBy returns columns that are proven to be unique together on both sides: every superset of a
// unique key is unique too. Without such a proof it returns all columns and false.
func (b *builder) pairBy(targetKey []int) ([]int, bool) {
	sourcePins, targetPins := b.pins()
	sources := b.uniqueSets(b.in.Source, b.sourceColumns, sourcePins)
	targets := b.uniqueSets(b.in.Target, b.targetColumns, targetPins)

	// The target's own key first: its columns are in the order of the target's stream.
	for _, t := range targets {
		for _, s := range sources {
			if subset(s.free, t.all) {
				return t.all, true
			}
		}
	}
	for _, s := range sources {
		for _, t := range targets {
			if subset(t.free, s.all) {
				return s.all, true
			}
		}
	}
	if len(sources) > 0 && len(targets) > 0 {
		key := slices.Clone(targets[0].all)
		for _, i := range sources[0].all {
			if !slices.Contains(key, i) {
				key = append(key, i)
			}
		}
		return key, true
	}

	// Every column, in the order of the target's stream where that has one.
	var all []int
	for _, i := range targetKey {
		if i >= 0 {
			all = append(all, i)
		}
	}
	for i := range b.cols {
		if !slices.Contains(all, i) {
			all = append(all, i)
		}
	}
	return all, false
}

// uniqueSet is a unique key as indexes of columns; free are those that the rule does not pin.
type uniqueSet struct {
	all  []int
	free []int
}

// uniqueSets returns the unique keys of one side that are compared completely, the side's ordering key
// before others.
func (b *builder) uniqueSets(table *TableSchema, columns func([]string) []int, pins map[int]bool) []uniqueSet {
	var sets []uniqueSet
	add := func(names []string) {
		set := uniqueSet{}
		for n, i := range columns(names) {
			if i < 0 {
				// A pinned column need not be seen: all rows have the same value there.
				if table == b.in.Source && pinned(table, b.filter)[strings.ToLower(names[n])] {
					continue
				}
				return
			}
			set.all = append(set.all, i)
			if !pins[i] {
				set.free = append(set.free, i)
			}
		}
		if len(set.all) > 0 {
			sets = append(sets, set)
		}
	}
	if table.KeyUnique {
		add(table.Key)
	}
	for _, index := range table.Unique {
		if !equalNames(index.Columns, table.Key) {
			add(index.Columns)
		}
	}
	return sets
}

// pins returns the columns that the rule's conditions pin to one value on each side.
func (b *builder) pins() (source, target map[int]bool) {
	source, target = make(map[int]bool), make(map[int]bool)
	for name := range pinned(b.in.Source, b.filter) {
		if i := b.projection(name); i >= 0 {
			source[i] = true
		}
	}
	for name := range pinned(b.in.Target, b.targetFilter) {
		if i := b.targetColumns([]string{name})[0]; i >= 0 {
			target[i] = true
		}
	}
	return source, target
}

// setOrder sets what k.sourceKey and k.targetKey say of the order of the rows. related is true when
// both streams are sorted by columns that agree as far as they go, whether or not their order can be
// computed here.
func (b *builder) setOrder(k *keys, sourceUnique, targetUnique, prefixed bool) (related bool) {
	k.ordered, k.mergeable, k.notOrdered = false, false, ""
	sourcePins, targetPins := b.pins()
	constants := make(map[int]bool)
	for i, c := range b.cols {
		c.Order = OrderNone
		if c.constant || sourcePins[i] {
			constants[i] = true
		}
	}
	source := relate(without(k.sourceKey, sourcePins), sourceUnique, without(k.key, constants))
	target := relate(without(k.targetKey, targetPins), targetUnique, without(k.key, targetPins))
	if source == unrelated || target == unrelated {
		k.notOrdered = fmt.Sprintf("the source is ordered by (%s) and the target by (%s)",
			strings.Join(b.in.Source.Key, ", "), strings.Join(b.in.Target.Key, ", "))
		return false
	}
	for _, i := range k.key {
		order, why := b.cols[i].order()
		if b.cols[i].Order = order; order == OrderNone && k.notOrdered == "" {
			k.notOrdered = why
		}
	}
	switch {
	case k.notOrdered != "":
		return true
	case prefixed:
		k.notOrdered = "the key is an index of the beginnings of values"
		return true
	}
	k.mergeable = true

	exact := source == same && target == same
	for _, i := range k.key {
		exact = exact && !b.cols[i].constant && sourcePins[i] == targetPins[i]
	}
	if exact && !slices.Contains(k.sourceKey, -1) && !slices.Contains(k.targetKey, -1) {
		k.ordered = true
		return true
	}
	k.notOrdered = fmt.Sprintf("the source is ordered by (%s) and the target by (%s)",
		strings.Join(b.in.Source.Key, ", "), strings.Join(b.in.Target.Key, ", "))
	return true
}

// relation is what the order of a stream says of the order by a key.
type relation int

const (
	unrelated relation = iota
	// sorted: rows come in the order of the key, yet the stream is not ordered by exactly its columns.
	sorted
	// same: the stream is ordered by the key's columns.
	same
)

// relate compares what a stream is ordered by with a key. A stream that has no two equal rows in its
// own columns stays in order when columns are added to them.
func relate(stream []int, unique bool, key []int) relation {
	common := min(len(stream), len(key))
	switch {
	case !slices.Equal(stream[:common], key[:common]):
		return unrelated
	case len(stream) == len(key):
		return same
	case len(stream) > len(key), unique:
		return sorted
	}
	return unrelated
}

// sharedIndex looks for a unique index of both sides that has the same columns, whose order can be
// computed, and makes both streams come ordered by it. Online DDL with a new primary key has one. An
// index that the rule itself tells the source to use comes first.
func (b *builder) sharedIndex() *keys {
	told := b.rule.orderedBy()
	sources := slices.Clone(b.in.Source.Unique)
	slices.SortStableFunc(sources, func(x, y UniqueIndex) int {
		switch x, y := equalNames(x.Columns, told), equalNames(y.Columns, told); {
		case x && !y:
			return -1
		case y && !x:
			return 1
		}
		return 0
	})
	for _, s := range sources {
		for _, t := range b.in.Target.Unique {
			if t.Prefix || s.Prefix || t.Invisible || s.Invisible || len(t.Columns) != len(s.Columns) {
				continue
			}
			k := &keys{sourceKey: b.sourceColumns(s.Columns), targetKey: b.targetColumns(t.Columns), unique: true}
			if slices.Contains(k.targetKey, -1) || !slices.Equal(k.sourceKey, k.targetKey) {
				continue
			}
			k.key = k.targetKey
			b.setOrder(k, true, true, false)
			if k.ordered {
				k.sourceDirective, k.targetDirective = directive(s), directive(t)
				return k
			}
		}
	}
	return nil
}

// directive tells VStreamRows to use an index.
func directive(index UniqueIndex) string {
	return fmt.Sprintf(`/*vt+ %s="%s" %s="%s" */`,
		directiveColumns, textutil.EscapeJoin(index.Columns, ","), directiveIndex, url.QueryEscape(index.Name))
}

func subset(a, b []int) bool {
	return !slices.ContainsFunc(a, func(i int) bool { return !slices.Contains(b, i) })
}

func without(list []int, drop map[int]bool) []int {
	return slices.DeleteFunc(slices.Clone(list), func(i int) bool { return drop[i] })
}
