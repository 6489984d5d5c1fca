// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package report

import (
	"encoding/hex"
	"unicode/utf8"

	"vitess.io/vitess/go/sqltypes"
	"vitess.io/vitess/go/vt/sqlparser"
	"vitess.io/vitess/go/vt/vttablet/tabletmanager/vdiff"

	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/plan"
)

const (
	// cutMark ends a value that was cut.
	cutMark = "...[TRUNCATED]"
	// A value is not cut to save fewer bytes than the mark and this many more.
	cutWorth = 20
	// null is how NULL is shown.
	null = "NULL"
)

// side is what differs between samples of the source and of the target.
type side struct {
	table  func(*plan.Table) string
	filter func(*plan.Table) string
	expr   func(*plan.Column) string
	typeOf func(*plan.Column) plan.ColumnType
}

var (
	sourceSide = side{
		table:  func(t *plan.Table) string { return t.SourceName },
		filter: func(t *plan.Table) string { return t.SourceFilter },
		expr:   func(c *plan.Column) string { return c.SourceExpr },
		typeOf: func(c *plan.Column) plan.ColumnType { return c.Source },
	}
	targetSide = side{
		table:  func(t *plan.Table) string { return t.Name },
		filter: func(t *plan.Table) string { return t.TargetFilter },
		expr:   func(c *plan.Column) string { return c.TargetExpr },
		typeOf: func(c *plan.Column) plan.ColumnType { return c.Target },
	}
)

// sample makes the sample of one row, under the names that the columns have on the target whatever
// side it is of, so that two samples can be held side by side. skips has how many bytes are left out in front of each value; nil means
// none. No value is longer than about maxValue bytes; cut says that one had to be cut for that, beyond what the user asked for.
func (b *Builder) sample(s side, row []sqltypes.Value, skips []int, maxValue int) (sample *vdiff.RowDiff, cut bool) {
	sample = &vdiff.RowDiff{Row: make(map[string]string), LosslessValues: true}
	for i := range b.table.Columns {
		column := &b.table.Columns[i]
		if b.options.OnlyPKs && !b.isKey[i] {
			sample.LosslessValues = false
			continue
		}
		limit, asked := b.limitOf(i, maxValue)
		skip := 0
		if skips != nil {
			skip = skips[i]
		}
		text, exact, shortened := show(row[i], s.typeOf(column), skip, limit)
		sample.Row[sqlparser.String(sqlparser.NewIdentifierCI(column.Name))] = text
		sample.LosslessValues = sample.LosslessValues && exact && !shortened
		cut = cut || shortened && !asked
	}
	if b.options.DebugQuery {
		sample.Query = b.query(s, row, maxValue)
	}
	return sample, cut
}

// show returns a value as text of about limit bytes at most; of one that is longer, skip bytes are left out in front, with which no character
// ends in the middle. exact is true when another value of the column cannot have the same text; cut, when the value was shortened.
func show(v sqltypes.Value, t plan.ColumnType, skip, limit int) (text string, exact, cut bool) {
	if v.IsNull() {
		return null, false, false
	}
	raw, isText := bytesOf(v, t)
	// A text that is none in its own charset looks like the text "0x...".
	exact = isText || t.Charset == "" && !v.IsText()
	front, end := "", ""
	if cut = isCut(raw, limit); cut {
		if raw = raw[skip:]; skip > 0 {
			front = cutFront
		}
		if len(raw) > limit {
			raw, end = raw[:limit], cutMark
		}
		for isText && len(raw) > 0 && !utf8.Valid(raw) {
			raw = raw[:len(raw)-1]
		}
	}
	if !isText {
		return front + "0x" + hex.EncodeToString(raw) + end, exact, cut
	}
	return front + string(raw) + end, exact, cut
}

// bytesOf returns what is shown of a value: its text in UTF-8 if it is one, else its bytes.
func bytesOf(v sqltypes.Value, t plan.ColumnType) (raw []byte, isText bool) {
	if raw, isText = utf8Of(v, t); !isText {
		raw = v.Raw()
	}
	return raw, isText
}

// utf8Of returns the text of a value in UTF-8. ok is false for binary values, and for text that is not
// valid in the charset it claims to have. The column says what is text: a value of a _bin collation
// comes as a binary one.
func utf8Of(v sqltypes.Value, t plan.ColumnType) (text []byte, ok bool) {
	raw := v.Raw()
	switch {
	case t.Charset == "" && (v.IsBinary() || v.Type() == sqltypes.Bit):
		return nil, false
	case t.Charset == "" || t.Charset == "binary" || plan.IsUTF8(t.Charset):
		return raw, utf8.Valid(raw)
	}
	text, ok = plan.ToUTF8(raw, t, plan.CharsetOf(t))
	return text, ok && utf8.Valid(text)
}
