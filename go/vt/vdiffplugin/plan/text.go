// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"
	"strings"

	"vitess.io/vitess/go/mysql/collations"
	"vitess.io/vitess/go/mysql/collations/charset"
	"vitess.io/vitess/go/mysql/collations/colldata"
)

// CharsetOf returns the charset by which a column's text becomes UTF-8. It is nil where the text is UTF-8 already, where it is a
// binary string, and where Vitess does not know the charset; it need not know the column's collation.
func CharsetOf(t ColumnType) charset.Charset {
	if t.Charset == "" || t.Charset == "binary" || IsUTF8(t.Charset) {
		return nil
	}
	for _, id := range []collations.ID{t.Collation, collations.MySQL8().DefaultCollationForCharset(strings.ToLower(t.Charset))} {
		if id == collations.Unknown {
			continue
		}
		if collation := colldata.Lookup(id); collation != nil {
			return collation.Charset()
		}
	}
	return nil
}

// ToUTF8 returns the text of a value in UTF-8; cs is CharsetOf(t). known is false, and the text is the value itself, where nobody but
// MySQL knows what text it is: bytes that are not valid in their charset, and what is not ASCII in a charset that Vitess does not
// know. (ASCII is itself in all of these: big5, gbk, gb18030 and tis620.)
func ToUTF8(value []byte, t ColumnType, cs charset.Charset) (text []byte, known bool) {
	if IsUTF8(t.Charset) {
		return value, true
	}
	if cs != nil {
		if converted, err := charset.Convert(nil, charset.Charset_utf8mb4{}, value, cs); err == nil {
			return converted, true
		}
		return value, false
	}
	return value, !slices.ContainsFunc(value, func(b byte) bool { return b >= 0x80 })
}

// SameBytes says whether the two sides have the same bytes for the same text, or no text.
func (c *Column) SameBytes() bool {
	return c.Source.Charset == "" || c.Target.Charset == "" || sameBytes(c.Source.Charset, c.Target.Charset)
}
