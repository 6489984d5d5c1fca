// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package pkrange

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"strconv"
)

// maxColumns is how many columns an index of MySQL may have.
const maxColumns = 16

// The errors of decoding. They never show the data: it may be anybody's, and they go into logs and reports.
var (
	errValue = errors.New("pkrange: a stored key value cannot be read")
	errBound = errors.New("pkrange: a stored bound is not an array of at most 16 key values")
	errRange = errors.New("pkrange: a stored range is not an array of two bounds")
)

// kindLetters are the first letters of encoded values, by kind.
const kindLetters = "iudtb"

// AppendText appends a value as text: a letter for its kind, then the integer in decimal, or the bytes in base64.
// Equal values, and only these, have equal texts.
func (v Value) AppendText(dst []byte) ([]byte, error) {
	if v.Kind < Int || v.Kind > Bytes {
		return dst, errors.New("pkrange: a key value of an unknown kind")
	}
	dst = append(dst, kindLetters[v.Kind])
	switch v.Kind {
	case Int:
		return strconv.AppendInt(dst, v.Int, 10), nil
	case Uint:
		return strconv.AppendUint(dst, v.Uint, 10), nil
	default:
		return base64.RawStdEncoding.AppendEncode(dst, v.Bytes), nil
	}
}

// MarshalText implements encoding.TextMarshaler, and so makes a value a JSON string.
func (v Value) MarshalText() ([]byte, error) { return v.AppendText(nil) }

// UnmarshalText reads what MarshalText wrote, and nothing that it would have written differently.
func (v *Value) UnmarshalText(text []byte) error {
	got, ok := parseValue(text)
	if !ok {
		return errValue
	}
	if again, err := got.AppendText(make([]byte, 0, len(text))); err != nil || string(again) != string(text) {
		return errValue
	}
	*v = got
	return nil
}

// parseValue reads a value leniently.
func parseValue(text []byte) (v Value, ok bool) {
	if len(text) == 0 {
		return v, false
	}
	var err error
	rest := text[1:]
	switch text[0] {
	case 'i':
		v.Kind = Int
		v.Int, err = strconv.ParseInt(string(rest), 10, 64)
		return v, err == nil
	case 'u':
		v.Kind = Uint
		v.Uint, err = strconv.ParseUint(string(rest), 10, 64)
		return v, err == nil
	case 'd':
		v.Kind = Decimal
	case 't':
		v.Kind = Temporal
	case 'b':
		v.Kind = Bytes
	default:
		return v, false
	}
	v.Bytes, err = base64.RawStdEncoding.AppendDecode([]byte{}, rest)
	return v, err == nil
}

// MarshalJSON makes a bound an array of values, [] for none.
func (b Bound) MarshalJSON() ([]byte, error) {
	dst := []byte{'['}
	for i, v := range b {
		if i > 0 {
			dst = append(dst, ',')
		}
		var err error
		// Neither letters nor digits nor base64 need to be escaped.
		if dst, err = v.AppendText(append(dst, '"')); err != nil {
			return nil, err
		}
		dst = append(dst, '"')
	}
	return append(dst, ']'), nil
}

// UnmarshalJSON reads what MarshalJSON wrote. No values make a nil Bound.
func (b *Bound) UnmarshalJSON(data []byte) error {
	var texts []*string
	if err := json.Unmarshal(data, &texts); err != nil || texts == nil || len(texts) > maxColumns {
		return errBound
	}
	var got Bound
	for _, text := range texts {
		var v Value
		if text == nil {
			return errBound
		}
		if err := v.UnmarshalText([]byte(*text)); err != nil {
			return err
		}
		got = append(got, v)
	}
	*b = got
	return nil
}

// MarshalJSON makes a range an array of its two bounds, [After, UpTo].
func (r Range) MarshalJSON() ([]byte, error) {
	after, err := r.After.MarshalJSON()
	if err != nil {
		return nil, err
	}
	upTo, err := r.UpTo.MarshalJSON()
	if err != nil {
		return nil, err
	}
	dst := make([]byte, 0, len(after)+len(upTo)+3)
	dst = append(append(dst, '['), after...)
	dst = append(append(dst, ','), upTo...)
	return append(dst, ']'), nil
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (r *Range) UnmarshalJSON(data []byte) error {
	var bounds []json.RawMessage
	if err := json.Unmarshal(data, &bounds); err != nil || len(bounds) != 2 {
		return errRange
	}
	var got Range
	if err := got.After.UnmarshalJSON(bounds[0]); err != nil {
		return err
	}
	if err := got.UpTo.UnmarshalJSON(bounds[1]); err != nil {
		return err
	}
	*r = got
	return nil
}
