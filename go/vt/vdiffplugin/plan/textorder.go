// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package plan

import (
	"bytes"
	"strings"

	"vitess.io/vitess/go/mysql/collations"
	"vitess.io/vitess/go/mysql/collations/colldata"
)

// TextOrder compares text as MySQL sorts it under one collation: what OrderCollation stands for.
//
// Most collations older than the 0900 ones pad: MySQL compares two texts as if the shorter one went on
// with spaces for ever, so that 'a' equals 'a ' and comes after 'a' with a tab. Vitess compares such
// texts without padding. Here their weights are compared, and where one text ends the rest of the
// other one is compared with the weight of spaces.
//
// A TextOrder has buffers of its own: it is not safe for concurrent use.
type TextOrder struct {
	collation colldata.Collation
	// space is the weight of one space, nil for a collation that does not pad.
	space []byte
	a, b  []byte
}

// NewTextOrder returns the order of a collation, nil for one that Vitess does not know.
func NewTextOrder(id collations.ID, env *collations.Environment) *TextOrder {
	collation := colldata.Lookup(id)
	if id == collations.Unknown || collation == nil {
		return nil
	}
	o := &TextOrder{collation: collation}
	if id != collations.CollationBinaryID && !strings.Contains(env.LookupName(id), "_0900_") {
		o.space = collation.WeightString(nil, spaceIn(collation.Charset().Name()), 0)
	}
	return o
}

// Compare returns a negative number, zero or a positive number as a comes before b, is equal to it or
// comes after it.
func (o *TextOrder) Compare(a, b []byte) int {
	if bytes.Equal(a, b) {
		return 0
	}
	if o.space == nil {
		return o.collation.Collate(a, b, false)
	}
	o.a = o.collation.WeightString(o.a[:0], a, 0)
	o.b = o.collation.WeightString(o.b[:0], b, 0)
	common := min(len(o.a), len(o.b))
	if n := bytes.Compare(o.a[:common], o.b[:common]); n != 0 {
		return n
	}
	if len(o.a) > common {
		return o.withSpaces(o.a[common:])
	}
	return -o.withSpaces(o.b[common:])
}

// AppendKey appends bytes that are equal for equal texts, and for no others.
func (o *TextOrder) AppendKey(dst, text []byte) []byte {
	start := len(dst)
	dst = o.collation.WeightString(dst, text, 0)
	for n := len(o.space); n > 0 && len(dst)-start >= n && bytes.Equal(dst[len(dst)-n:], o.space); {
		dst = dst[:len(dst)-n]
	}
	return dst
}

// withSpaces compares weights with those of spaces.
func (o *TextOrder) withSpaces(weights []byte) int {
	for i, w := range weights {
		switch space := o.space[i%len(o.space)]; {
		case w < space:
			return -1
		case w > space:
			return 1
		}
	}
	return 0
}

// spaceIn returns a space in a charset.
func spaceIn(charset string) []byte {
	switch charset {
	case "ucs2", "utf16":
		return []byte{0, ' '}
	case "utf16le":
		return []byte{' ', 0}
	case "utf32":
		return []byte{0, 0, 0, ' '}
	}
	return []byte{' '}
}
