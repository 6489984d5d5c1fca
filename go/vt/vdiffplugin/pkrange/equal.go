// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package pkrange

import "bytes"

// Equal tells whether two values are the same, byte for byte. Values that are not may still be equal to
// MySQL, under a collation; values that are the same are equal under all.
func (v Value) Equal(other Value) bool {
	if v.Kind != other.Kind {
		return false
	}
	switch v.Kind {
	case Int:
		return v.Int == other.Int
	case Uint:
		return v.Uint == other.Uint
	default:
		return bytes.Equal(v.Bytes, other.Bytes)
	}
}

// Equal tells whether two bounds have the same values. Bounds that are not the same may still be the same place.
func (b Bound) Equal(other Bound) bool {
	if len(b) != len(other) {
		return false
	}
	for i := range b {
		if !b[i].Equal(other[i]) {
			return false
		}
	}
	return true
}

// Equal tells whether two ranges have the same bounds.
func (r Range) Equal(other Range) bool { return r.After.Equal(other.After) && r.UpTo.Equal(other.UpTo) }

// Whole tells whether a range is the whole table.
func (r Range) Whole() bool { return len(r.After) == 0 && len(r.UpTo) == 0 }
