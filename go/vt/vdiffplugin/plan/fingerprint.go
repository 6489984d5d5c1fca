// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package plan

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"regexp"
	"slices"

	"vitess.io/vitess/go/sqltypes"
)

// fingerprint returns a short text that is another one for any other plan: of other columns, of other types, charsets or
// collations of theirs, of another filter or key. What was compared under another plan says nothing under this one: other
// columns were looked at, or other rows lie before the same key. How rows are read, which is Digest, does not matter.
func (t *Table) fingerprint(filter string) (string, error) {
	of := *t
	of.Digest, of.NotDigestible, of.NotOrdered, of.Fingerprint = nil, "", "", ""
	of.Columns = slices.Clone(t.Columns)
	for i := range of.Columns {
		c := &of.Columns[i]
		c.Source.ColumnType, c.Target.ColumnType = c.Source.declared(), c.Target.declared()
	}
	text, err := json.Marshal(struct {
		Filter string // has the groups, which the queries do not have
		Table  *Table
	}{filter, &of})
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:16]), nil
}

var displayWidth = regexp.MustCompile(`\([0-9]+\)`)

// declared is the type as the table has it, without the display width of integers, which not all versions of MySQL show.
func (t *ColumnType) declared() string {
	if sqltypes.IsIntegral(t.Type) {
		return displayWidth.ReplaceAllString(t.ColumnType, "")
	}
	return t.ColumnType
}
