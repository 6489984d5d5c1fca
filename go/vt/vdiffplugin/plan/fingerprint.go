// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package plan

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"vitess.io/vitess/go/sqltypes"
	"vitess.io/vitess/go/vt/sqlparser"
)

// fingerprintVersion is raised whenever identity changes: fingerprints of two versions say nothing about each other.
const fingerprintVersion = "1"

// identity is what makes a plan the one it is. How rows are read, which is Digest, does not matter.
type identity struct {
	Filter                                           string // has the groups, which the queries do not have
	Source, Target                                   string // the queries
	Key, SourceKey, TargetKey                        []int
	Unique, Ordered, KeyMoves, Aggregated, Reference bool
	SourceConditions, TargetConditions               []Condition
	Columns                                          []columnIdentity
	Read                                             []ColumnSchema // columns of the source by which the rule chooses rows
}

type columnIdentity struct {
	Name           string
	Source, Target ColumnType
	Order          Order
	Aggregate      Aggregate
	TimeZones      bool
}

// fingerprint returns a short text that is another one for any other plan: of other columns, of other types, charsets or
// collations of theirs, of another filter or key. What was compared under another plan says nothing under this one: other
// columns were looked at, or other rows lie before the same key. read are the columns of the source by which rows are chosen.
func (t *Table) fingerprint(filter string, read []ColumnSchema) (string, error) {
	id := identity{
		Filter: filter, Source: t.SourceQuery, Target: t.TargetQuery, Key: t.Key, SourceKey: t.SourceKey, TargetKey: t.TargetKey,
		Unique: t.KeyUnique, Ordered: t.Ordered, KeyMoves: t.KeyMoves, Aggregated: t.Aggregated, Reference: t.Reference,
		SourceConditions: t.SourceConditions, TargetConditions: t.TargetConditions, Read: slices.Clone(read),
	}
	for i := range t.Columns {
		c := &t.Columns[i]
		column := columnIdentity{Name: c.Name, Source: c.Source, Target: c.Target, Order: c.Order, Aggregate: c.Aggregate, TimeZones: c.TimeZones}
		column.Source.standardize()
		column.Target.standardize()
		id.Columns = append(id.Columns, column)
	}
	for i := range id.Read {
		id.Read[i].standardize()
	}
	text, err := json.Marshal(&id)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(text)
	return fingerprintVersion + ":" + hex.EncodeToString(sum[:16]), nil
}

// HasFingerprint says whether a fingerprint is that of the plan. known is false for one of another version of this package, which
// may be that of the same plan or not.
func (t *Table) HasFingerprint(fingerprint string) (same, known bool) {
	return fingerprint == t.Fingerprint, strings.HasPrefix(fingerprint, fingerprintVersion+":")
}

// readColumns returns the columns of the source that the rule's where clause names.
func (b *builder) readColumns() (read []ColumnSchema) {
	if b.rule.sel.Where == nil {
		return nil
	}
	_ = sqlparser.Walk(func(node sqlparser.SQLNode) (bool, error) {
		if name, ok := node.(*sqlparser.ColName); ok {
			if i := b.in.Source.Column(name.Name.String()); i >= 0 {
				read = append(read, b.in.Source.Columns[i])
			}
		}
		return true, nil
	}, b.rule.sel.Where)
	return read
}

// standardize brings what versions of MySQL say differently into one form.
func (t *ColumnType) standardize() {
	t.ColumnType, t.Charset = t.declared(), sameName(t.Charset)
	t.Stored = StoredText{Charset: sameName(t.Stored.Charset), Collation: sameName(t.Stored.Collation)}
}

var displayWidth = regexp.MustCompile(`\([0-9]+\)`)

// declared is the type as the table has it, without the display width of integers, which not all versions of MySQL show.
func (t *ColumnType) declared() string {
	if sqltypes.IsIntegral(t.Type) {
		return displayWidth.ReplaceAllString(t.ColumnType, "")
	}
	return t.ColumnType
}
