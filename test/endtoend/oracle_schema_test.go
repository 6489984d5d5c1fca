// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package endtoend

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// randomTable is a table of TestOracle. It depends on its seed and number alone.
type randomTable struct {
	r       *rand.Rand
	name    string // on the target
	source  string // on the source
	columns []*randomColumn
	// sourceKey and targetKey are how rows are told apart on each side.
	sourceKey, targetKey tableKey
	// unlike says that the target's definition differs from the source's. Such a target is made before the workflow is.
	unlike bool
	// where filters the rows of the source, by the column filtered; "" for all. chosen is what MySQL has to be asked instead where
	// VReplication chooses other rows; "" where it does not.
	where    string
	chosen   string
	filtered *randomColumn
	// vindexes decide on the shard of a row; see placedBy.
	vindexes []*tableVindex
	// reference says that each shard has all rows.
	reference bool
	// rollup says that the rule groups rows.
	rollup  bool
	inserts []string // what filled its first copy
	late    []lateRow
	rows    int
	layout  *layout
}

// randomColumn is a column of both sides.
type randomColumn struct {
	kind           *kind
	name, source   string // its names on the target and on the source
	sourceType     string
	targetType     string
	sourceNullable bool
	targetNullable bool
	// computed is the expression of a generated column, and how it is stored. The target may have a plain column instead.
	computed       string
	stored         string
	targetComputed bool
	invisible      bool
	// dropped columns are not part of the workflow: only the source has them.
	dropped bool
	// aggregate is set where the rule adds up the column's values.
	aggregate aggregate
	// values are those that most rows of the source have in the column, if there are any.
	values []string
}

// on is its name on one side.
func (c *randomColumn) on(target bool) string {
	if target {
		return c.name
	}
	return c.source
}

// tableKey is a key of one side.
type tableKey struct {
	how     keyKind
	columns []*randomColumn
}

type keyKind string

const (
	primaryKey  keyKind = "primary key"
	uniqueKey   keyKind = "unique key"
	nullableKey keyKind = "nullable unique key"
	noKey       keyKind = "no key"
)

func (k tableKey) unique() bool { return k.how == primaryKey || k.how == uniqueKey }

var hardNames = []string{"select", "from me to you", "back`tick", "Upper", "d\u00e9j\u00e0", "order", "k%d", "a.b", "x-y", "group", strings.Repeat("n", 61) + "%03d", "key", "__id"}

// newRandomTable makes the table number n of a seed for a layout.
func newRandomTable(seed uint64, n int, l *layout) *randomTable {
	r := rand.New(rand.NewPCG(seed, uint64(n)))
	t := &randomTable{r: r, layout: l, name: fmt.Sprintf("o%d_%d", seed%1e9, n)}
	t.source = t.name
	t.rows = pick(r, []int{0, 1, 2, 10, 40, 100, 100, 200, 300})
	t.setKey(seed)
	for range r.IntN(7) {
		t.columns = append(t.columns, t.newColumn(pick(r, allKinds)))
	}
	if len(t.columns) == 0 {
		t.columns = append(t.columns, t.newColumn(allKinds[0]))
	}
	t.addComputed()
	if l.filters {
		t.setFilter()
		if r.IntN(4) == 0 {
			t.setRollup()
		}
	}
	t.setVindex()
	if t.rollup {
		t.setGroups()
	}
	t.reference = (l.splits || l.merges) && r.IntN(6) == 0 && !t.rollup
	if ordersKeys(seed, l) && r.IntN(10) == 0 || !ordersKeys(seed, l) && r.IntN(10) < 4 {
		t.makeUnlike()
	}
	r.Shuffle(len(t.columns), func(i, j int) { t.columns[i], t.columns[j] = t.columns[j], t.columns[i] })
	t.sortComputed()
	return t
}

// newColumn adds no column yet.
func (t *randomTable) newColumn(k *kind) *randomColumn {
	r := t.r
	c := &randomColumn{kind: k, name: fmt.Sprintf("c%d", len(t.columns))}
	if r.IntN(8) == 0 {
		name := pick(r, hardNames)
		if strings.Contains(name, "%") {
			name = fmt.Sprintf(name, len(t.columns))
		}
		if !slices.ContainsFunc(t.columns, func(o *randomColumn) bool { return strings.EqualFold(o.name, name) }) {
			c.name = name
		}
	}
	c.source = c.name
	c.sourceType, _ = k.types(r)
	c.targetType = c.sourceType
	c.sourceNullable = r.IntN(2) == 0
	c.targetNullable = c.sourceNullable
	c.invisible = r.IntN(20) == 0 && c.sourceNullable
	return c
}

// setKey adds the columns of the key.
func (t *randomTable) setKey(seed uint64) {
	r := t.r
	n := pick(r, []int{1, 1, 1, 1, 2, 2, 3, 4})
	if r.IntN(40) == 0 {
		n = 16
	}
	how := pick(r, []keyKind{primaryKey, primaryKey, primaryKey, primaryKey, primaryKey, primaryKey, primaryKey, uniqueKey, uniqueKey, noKey, noKey, nullableKey})
	ordered := ordersKeys(seed, t.layout) && r.IntN(8) > 0
	if ordered {
		how = primaryKey
	}
	for len(t.columns) < n {
		k := pick(r, allKinds)
		if r.IntN(6) == 0 {
			k = strangeText
		}
		if ordered && !k.ordered() {
			continue
		}
		if len(t.columns) > 0 && r.IntN(3) == 0 || n == 16 {
			k = allKinds[0]
		}
		if !k.inKey {
			continue
		}
		c := t.newColumn(k)
		c.sourceNullable, c.targetNullable, c.invisible = false, false, false
		t.columns = append(t.columns, c)
	}
	columns := slices.Clone(t.columns)
	r.Shuffle(n, func(i, j int) { columns[i], columns[j] = columns[j], columns[i] })
	switch how {
	case noKey:
		columns = nil
	case nullableKey:
		for _, c := range columns {
			c.sourceNullable, c.targetNullable = true, true
		}
	}
	t.sourceKey = tableKey{how, columns}
	t.targetKey = t.sourceKey
}

// addComputed adds a generated column now and then.
func (t *randomTable) addComputed() {
	r := t.r
	if r.IntN(5) > 0 {
		return
	}
	of := pick(r, t.columns)
	if of.kind.form == formBytes && of.kind.prefix == 0 && of.kind.name != "binary" {
		return
	}
	c := t.newColumn(allKinds[0])
	c.sourceType, c.targetType = "bigint unsigned", "bigint unsigned"
	c.sourceNullable, c.targetNullable, c.invisible = true, true, false
	c.computed, c.stored, c.targetComputed = "crc32("+quote(of.source)+")", pick(r, []string{"stored", "virtual"}), true
	t.columns = append(t.columns, c)
}

// sortComputed puts generated columns last.
func (t *randomTable) sortComputed() {
	slices.SortStableFunc(t.columns, func(a, b *randomColumn) int { return len(a.computed) - len(b.computed) })
}

// makeUnlike changes the definition of the target where VReplication can copy all the same.
func (t *randomTable) makeUnlike() {
	r := t.r
	t.unlike = true
	for _, c := range t.columns {
		if r.IntN(3) > 0 || c.computed != "" || c.aggregate != "" {
			continue
		}
		inKey := slices.Contains(t.targetKey.columns, c)
		// The source gets a type of which the target has a wider one.
		source, others := c.kind.types(r)
		if len(others) > 0 && !t.inVindex(c) && c != t.filtered {
			c.sourceType, c.targetType = source, pick(r, others)
		}
		if t.inVindex(c) { // what it is on the source decides on the shard of a row
			switch {
			case c.kind.name == "text":
				c.targetType = collated("varchar(60)", "utf8mb4", pick(r, charsets["utf8mb4"]))
			case c.kind.name == "integer" && strings.Contains(c.sourceType, "unsigned"):
				c.targetType = "bigint unsigned"
			case c.kind.name == "integer":
				c.targetType = "bigint"
			}
		}
		if inKey && c.garbled() {
			c.targetType = c.sourceType
		}
		if !inKey && r.IntN(3) == 0 {
			c.targetNullable = true
		}
	}
	for _, c := range t.columns {
		if c.computed != "" && r.IntN(2) == 0 {
			c.targetComputed = false
		}
	}
	key := t.sourceKey
	switch {
	case r.IntN(3) > 0 || len(key.columns) > 8 || t.rollup:
	case key.unique() && r.IntN(3) == 0: // another order
		key.columns = slices.Clone(key.columns)
		r.Shuffle(len(key.columns), func(i, j int) { key.columns[i], key.columns[j] = key.columns[j], key.columns[i] })
		t.targetKey = key
	case key.unique() && r.IntN(3) > 0: // more columns, before or after
		for _, c := range t.columns {
			if !slices.Contains(key.columns, c) && !c.dropped && c.computed == "" && c.kind.inKey && !c.sourceNullable && !c.targetNullable && !c.garbled() {
				key.columns = append(slices.Clone(key.columns), c)
				if r.IntN(2) == 0 {
					key.columns = append([]*randomColumn{c}, t.sourceKey.columns...)
				}
				break
			}
		}
		t.targetKey = key
	case key.unique(): // none
		t.targetKey = tableKey{how: noKey}
	}
}

// pairedBy are the columns that pair a row of the source with one of the target: what is unique on both sides. Without any,
// rows are compared as a multiset.
func (t *randomTable) pairedBy() []*randomColumn {
	if !t.rollup && !t.sourceKey.unique() || !t.targetKey.unique() {
		return nil
	}
	return t.targetKey.columns // it has all columns of the source's key, or of the groups
}

// needsTwin says whether rows that the source takes might not fit the target's key.
func (t *randomTable) needsTwin() bool {
	return !t.rollup && (t.unlike || t.layout.merges && !t.reference)
}

// compared are the columns that both sides have.
func (t *randomTable) compared() []*randomColumn {
	return slices.DeleteFunc(slices.Clone(t.columns), func(c *randomColumn) bool { return c.dropped })
}

// create is the statement that makes the table of one side, under a name that is quoted.
func (t *randomTable) create(name string, target bool) string {
	var parts []string
	for _, c := range t.columns {
		if target && c.dropped {
			continue
		}
		column, columnType, nullable, computed := c.source, c.sourceType, c.sourceNullable, c.computed
		if target {
			column, columnType, nullable = c.name, c.targetType, c.targetNullable
			if !c.targetComputed {
				computed = ""
			} else if computed != "" {
				computed = t.inNames(computed)
			}
		}
		part := quote(column) + " " + columnType
		switch {
		case computed != "":
			part += " generated always as (" + computed + ") " + c.stored
		case !nullable:
			part += " not null"
		default:
			part += " null default null"
		}
		if c.invisible {
			part += " invisible"
		}
		parts = append(parts, part)
	}
	key := t.sourceKey
	if target {
		key = t.targetKey
	}
	if key.how != noKey {
		var columns []string
		for _, c := range key.columns {
			column := c.source
			if target {
				column = c.name
			}
			column = quote(column)
			if c.kind.prefix > 0 {
				column += fmt.Sprintf("(%d)", c.kind.prefix)
			}
			columns = append(columns, column)
		}
		clause := "unique key"
		if key.how == primaryKey {
			clause = "primary key"
		}
		parts = append(parts, clause+" ("+strings.Join(columns, ", ")+")")
	}
	return "create table " + name + " (" + strings.Join(parts, ", ") + ")"
}

// inNames is an expression of a generated column in the names of the target.
func (t *randomTable) inNames(expr string) string {
	for _, c := range t.columns {
		if expr == "crc32("+quote(c.source)+")" {
			return "crc32(" + quote(c.name) + ")"
		}
	}
	return expr
}
