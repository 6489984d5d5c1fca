// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package rowdiff

import (
	"context"
	"encoding/binary"
	"iter"
	"strings"

	"vitess.io/vitess/go/sqltypes"

	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/plan"
	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/scan"
)

// A folded key is the key as the target's collations see it: rows whose keys are equal in the target's unique index have
// equal folded keys, and no others. Where Vitess has the collation and the bytes are those that are stored, it is computed
// here; the weights of other text are asked for, in batches, when they are needed.

// Weigher asks the target's MySQL how it sees text.
type Weigher interface {
	// Weights returns one string per text: equal for texts that are equal in a unique index of a column stored as as, and
	// for no others. charset is that of the bytes of the texts.
	Weights(ctx context.Context, charset string, as plan.StoredText, texts []string) ([]string, error)
}

// setFolding decides on how the text of a key column is folded.
func (col *column) setFolding() {
	source, target := col.Source, col.Target
	col.folds = target.Charset != "" && sqltypes.IsQuoted(target.Type) && !(isList(source.ColumnType) && isList(target.ColumnType))
	if !col.folds || target.Stored.Collation == "" {
		return
	}
	charset := target.Charset
	switch {
	case col.form != formText || strings.EqualFold(source.Charset, charset): // bytes go as they are into the target's text
	case plan.IsUTF8(source.Charset) && plan.IsUTF8(charset):
		charset = "utf8mb4"
	case (plan.IsUTF8(source.Charset) || col.sourceCharset != nil) && (plan.IsUTF8(charset) || col.targetCharset != nil):
		charset = "utf8mb4" // what appendForm makes of both
	default: // nobody can bring the two together: unlike bytes are unlike keys
		col.text = nil
		return
	}
	if col.text != nil && sameBytes(charset, target.Charset) && sameBytes(charset, target.Stored.Charset) {
		return
	}
	col.weighed, col.weights = charset, make(map[string]string)
}

// isList says whether values are members of an ENUM or SET: those that are different are so for the index, too.
func isList(columnType string) bool {
	columnType = strings.ToLower(columnType)
	return strings.HasPrefix(columnType, "enum(") || strings.HasPrefix(columnType, "set(")
}

func sameBytes(a, b string) bool { return strings.EqualFold(a, b) || plan.IsUTF8(a) && plan.IsUTF8(b) }

// weighs says whether folded keys need weights that have to be learned.
func (c *comparer) weighs() bool {
	for _, k := range c.table.Key {
		if c.columns[k].weights != nil {
			return true
		}
	}
	return false
}

// No index holds longer keys than of 3,072 bytes. Longer text, of which it has the beginning, is not asked for: it is folded to its bytes.
const maxWeighed = 3072

// maxLearned is how many texts are asked for, some thousand times as many as there are differences in a comparison that is of use. When
// more rows are left over, keys that differ in case alone are extra rows like the others. Groups are not bound by it.
const maxLearned = 200_000

// learn asks for the weights that the folded keys of these rows need; the bool of a row says that it is the source's. Without a
// Weigher text is folded to its bytes. grow, which may be nil, is told what memory is taken.
func (c *comparer) learn(ctx context.Context, weigher Weigher, rows iter.Seq2[scan.Row, bool], grow func(int) error) error {
	if weigher == nil {
		return nil
	}
	for _, k := range c.table.Key {
		col := &c.columns[k]
		if col.weights == nil {
			continue
		}
		var texts []string
		for row, fromSource := range rows {
			value, ok := row.Value(k)
			if !ok {
				continue
			}
			c.srcBuf = col.appendForm(c.srcBuf[:0], value, fromSource)
			if _, known := col.weights[string(c.srcBuf)]; known || len(c.srcBuf) > maxWeighed {
				continue
			}
			if grow != nil {
				if err := grow(2*len(c.srcBuf) + perRow); err != nil {
					return err
				}
			} else if len(texts) == maxLearned {
				for _, text := range texts {
					delete(col.weights, text)
				}
				return nil
			}
			text := string(c.srcBuf)
			col.weights[text] = ""
			texts = append(texts, text)
		}
		weights, err := weigher.Weights(ctx, col.weighed, col.Target.Stored, texts)
		if err != nil {
			return err
		}
		for i, text := range texts {
			col.weights[text] = weights[i]
		}
	}
	return nil
}

// appendFolded appends the folded key. Text whose weight was not learned is folded to its bytes.
func (c *comparer) appendFolded(dst []byte, row scan.Row, fromSource bool) []byte {
	for _, k := range c.table.Key {
		dst = c.appendFoldedColumn(dst, row, k, fromSource)
	}
	return dst
}

func (c *comparer) appendFoldedColumn(dst []byte, row scan.Row, k int, fromSource bool) []byte {
	col := &c.columns[k]
	value, ok := row.Value(k)
	if !ok || !col.folds {
		return c.appendColumn(dst, row, k, fromSource)
	}
	at := len(dst)
	dst = binary.BigEndian.AppendUint32(dst, 0)
	dst = c.appendFoldedText(dst, col, value, fromSource)
	binary.BigEndian.PutUint32(dst[at:], uint32(len(dst)-at-4))
	return dst
}

func (c *comparer) appendFoldedText(dst []byte, col *column, value []byte, fromSource bool) []byte {
	switch {
	case col.weights != nil:
		c.srcBuf = col.appendForm(c.srcBuf[:0], value, fromSource)
		if weight, known := col.weights[string(c.srcBuf)]; known {
			return append(dst, weight...)
		}
		return append(dst, c.srcBuf...)
	case col.text == nil:
		return col.appendForm(dst, value, fromSource)
	case col.sourceCharset != nil || col.targetCharset != nil:
		c.srcBuf = col.appendForm(c.srcBuf[:0], value, fromSource)
		value = c.srcBuf
	}
	return col.text.AppendKey(dst, value)
}
