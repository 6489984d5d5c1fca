// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package rowdiff

import (
	"bytes"
	"encoding/binary"
	"slices"
	"strconv"

	"vitess.io/vitess/go/mysql/collations"
	"vitess.io/vitess/go/mysql/collations/charset"
	"vitess.io/vitess/go/mysql/decimal"
	"vitess.io/vitess/go/sqltypes"
	"vitess.io/vitess/go/vt/vterrors"
	"vitess.io/vitess/go/vt/vtgate/evalengine"

	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/plan"
	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/scan"

	querypb "vitess.io/vitess/go/vt/proto/query"
	vtrpcpb "vitess.io/vitess/go/vt/proto/vtrpc"
)

// form is how a value is brought to the bytes by which it is recognised on both sides.
type form int

const (
	formBytes    form = iota // as it is
	formInteger              // without leading zeros (zerofill)
	formDecimal              // without leading zeros and trailing fractional zeros
	formFloat                // in the fewest digits, and zero without a sign
	formTemporal             // without trailing fractional zeros and midnight
	formBit                  // without leading zero bytes
	formText                 // in utf8mb4
)

// column is what a comparison needs to know of one column.
type column struct {
	plan.Column
	form           form
	sourceCharset  charset.Charset // formText only: see plan.CharsetOf
	targetCharset  charset.Charset
	text           *plan.TextOrder // OrderCollation, and folding of text keys; may be nil
	numericCompare bool            // unequal forms may still be the same number (float and decimal)
	exactTarget    bool            // the target has in exact numbers what the source has as DOUBLE: equal forms may be unlike numbers
	asPrinted      bool            // the target has a FLOAT in more digits, and rows are paired as wholes
	wasText        bool            // the source has as text what the target has as a number or a time
	unlikeSets     bool            // SETs whose members may be in another order
	unlikeText     bool            // the bytes that arrive are of two charsets: equal ones may be unlike text
	folds          bool            // the target has text here
	// weights are what is known of the weights of text whose forms are in the charset weighed; nil where it is folded here.
	weights map[string]string
	weighed string
}

// comparer compares rows of one table. It is not safe for concurrent use.
type comparer struct {
	table   *plan.Table
	columns []column
	isKey   []bool
	// unlikeText is true when that of a column is.
	unlikeText bool
	env        *collations.Environment
	srcBuf     []byte
	tgtBuf     []byte
}

func newComparer(t *plan.Table) (*comparer, error) {
	c := &comparer{table: t, columns: make([]column, len(t.Columns)), isKey: make([]bool, len(t.Columns)), env: collations.MySQL8()}
	for _, k := range t.Key {
		if k < 0 || k >= len(t.Columns) {
			return nil, vterrors.Errorf(vtrpcpb.Code_INTERNAL, "table %s: key column %d of %d", t.Name, k, len(t.Columns))
		}
		c.isKey[k] = true
	}
	for i, pc := range t.Columns {
		col := column{Column: pc, form: formOf(pc)}
		if col.form == formText && !pc.SameBytes() {
			col.unlikeText, c.unlikeText = true, true
			col.sourceCharset, col.targetCharset = plan.CharsetOf(pc.Source), plan.CharsetOf(pc.Target)
		}
		if pc.Target.Charset != "" {
			col.text = plan.NewTextOrder(pc.Target.Collation, c.env)
		}
		if pc.Order == plan.OrderCollation && col.text == nil {
			return nil, vterrors.Errorf(vtrpcpb.Code_INTERNAL, "table %s: column %s is ordered by a collation that is not known", t.Name, pc.Name)
		}
		src, tgt := pc.Source.Type, pc.Target.Type
		col.wasText = isText(pc.Source) && col.form != formText && col.form != formBytes
		col.unlikeSets = src == sqltypes.Set && tgt == sqltypes.Set && pc.Source.ColumnType != pc.Target.ColumnType
		col.asPrinted = wasFloat(&pc) && col.form == formFloat && !t.KeyUnique
		col.exactTarget = src == sqltypes.Float64 && (sqltypes.IsIntegral(tgt) || tgt == sqltypes.Decimal)
		col.numericCompare = isNumber(src) && isNumber(tgt) && (src != tgt || sqltypes.IsFloat(src))
		col.setFolding()
		c.columns[i] = col
	}
	return c, nil
}

func isNumber(t querypb.Type) bool {
	return sqltypes.IsIntegral(t) || sqltypes.IsFloat(t) || t == sqltypes.Decimal
}

func formOf(c plan.Column) form {
	src, tgt := c.Source.Type, c.Target.Type
	both := func(is func(querypb.Type) bool) bool { return is(src) && is(tgt) }
	exact := func(t querypb.Type) bool { return sqltypes.IsIntegral(t) || t == sqltypes.Decimal }
	integral := func(t querypb.Type) bool { return sqltypes.IsIntegral(t) || t == sqltypes.Bit }
	fromText := isText(c.Source)
	switch {
	case fromText && exact(tgt):
		return formDecimal
	case fromText && sqltypes.IsFloat(tgt):
		return formFloat
	case fromText && isTemporal(tgt):
		return formTemporal
	case both(sqltypes.IsIntegral):
		return formInteger
	case both(exact):
		return formDecimal
	case both(isNumber): // one of them a float, or both
		return formFloat
	case both(isTemporal):
		return formTemporal
	case src == sqltypes.Bit && tgt == sqltypes.Bit:
		return formBit
	case both(integral):
		return formInteger
	case c.Source.Charset != "" && c.Target.Charset != "":
		return formText
	default:
		return formBytes
	}
}

// isText says whether a column is text of any kind but a list of names.
func isText(t plan.ColumnType) bool {
	return t.Charset != "" && t.Charset != "binary" && t.Type != sqltypes.Enum && t.Type != sqltypes.Set && t.Type != sqltypes.TypeJSON
}

func isTemporal(t querypb.Type) bool {
	switch t {
	case sqltypes.Date, sqltypes.Datetime, sqltypes.Timestamp, sqltypes.Time:
		return true
	}
	return false
}

// appendForm appends the canonical form of a value that is not NULL.
func (col *column) appendForm(dst, value []byte, fromSource bool) []byte {
	if col.wasText && fromSource {
		value = bytes.TrimPrefix(bytes.TrimSpace(value), []byte("+"))
	}
	switch col.form {
	case formInteger:
		if col.Source.Type == sqltypes.Bit && fromSource || col.Target.Type == sqltypes.Bit && !fromSource {
			return strconv.AppendUint(dst, bitsOf(value), 10)
		}
		return appendInteger(dst, value)
	case formDecimal:
		return appendDecimal(dst, value)
	case formFloat:
		if col.asPrinted && !fromSource {
			if printed, ok := printedFloat(value); ok {
				return appendNumber(dst, printed)
			}
		}
		return appendFloat(dst, value)
	case formTemporal:
		return appendTemporal(dst, value)
	case formBit:
		return append(dst, bytes.TrimLeft(value, "\x00")...)
	case formText:
		at := len(dst)
		if col.unlikeText {
			dst = col.appendText(dst, value, fromSource)
		} else {
			dst = append(dst, value...)
		}
		if col.unlikeSets {
			dst = append(dst[:at], inOrder(dst[at:])...)
		}
		return dst
	}
	return append(dst, value...)
}

// inOrder returns the members of a SET in the order of their names: MySQL prints them as each side has declared them.
func inOrder(set []byte) []byte {
	members := bytes.Split(set, []byte(","))
	slices.SortFunc(members, bytes.Compare)
	return bytes.Join(members, []byte(","))
}

// bitsOf is the number that a BIT has.
func bitsOf(value []byte) (n uint64) {
	for _, b := range value {
		n = n<<8 | uint64(b)
	}
	return n
}

// appendText appends text in UTF-8. Bytes of which nobody knows the text get a form that the other side has not: MySQL converts all text
// but that of columns by which rows are filtered, and there VReplication copies the bytes of charsets that Vitess does not know as they
// are, which makes other text of them.
func (col *column) appendText(dst, value []byte, fromSource bool) []byte {
	t, cs, side := col.Target, col.targetCharset, byte('t')
	if fromSource {
		t, cs, side = col.Source, col.sourceCharset, 's'
	}
	text, known := plan.ToUTF8(value, t, cs)
	if !known {
		dst = append(dst, 0xff, side) // UTF-8 does not begin so
	}
	return append(dst, text...)
}

func appendInteger(dst, value []byte) []byte {
	if len(value) > 0 && value[0] == '-' {
		dst, value = append(dst, '-'), value[1:]
	}
	for len(value) > 1 && value[0] == '0' && value[1] != '.' {
		value = value[1:]
	}
	return append(dst, value...)
}

func appendDecimal(dst, value []byte) []byte {
	start := len(dst)
	dst = appendInteger(dst, value)
	if bytes.IndexByte(dst[start:], '.') >= 0 {
		for dst[len(dst)-1] == '0' {
			dst = dst[:len(dst)-1]
		}
		if dst[len(dst)-1] == '.' {
			dst = dst[:len(dst)-1]
		}
	}
	if string(dst[start:]) == "-0" {
		dst = append(dst[:start], '0')
	}
	return dst
}

// appendFloat appends a FLOAT or DOUBLE.
func appendFloat(dst, value []byte) []byte {
	n, err := strconv.ParseFloat(string(value), 64)
	if err != nil {
		return append(dst, value...)
	}
	return appendNumber(dst, n)
}

// appendNumber appends a number. VReplication copies -0 as 0, which is the same number; as a key it is the same key.
func appendNumber(dst []byte, n float64) []byte {
	if n == 0 {
		return append(dst, '0')
	}
	return strconv.AppendFloat(dst, n, 'g', -1, 64)
}

func appendTemporal(dst, value []byte) []byte {
	if dot := bytes.IndexByte(value, '.'); dot >= 0 {
		value = bytes.TrimRight(value, "0")
		if len(value) == dot+1 {
			value = value[:dot]
		}
	}
	// A DATETIME at midnight and a DATE are the same point in time.
	return append(dst, bytes.TrimSuffix(value, []byte(" 00:00:00"))...)
}

// appendKey appends the canonical form of the row's key. Equal keys, and no others, have equal forms.
func (c *comparer) appendKey(dst []byte, row scan.Row, fromSource bool) []byte {
	for _, k := range c.table.Key {
		dst = c.appendColumn(dst, row, k, fromSource)
	}
	return dst
}

func (c *comparer) appendColumn(dst []byte, row scan.Row, i int, fromSource bool) []byte {
	value, ok := row.Value(i)
	if !ok {
		return binary.BigEndian.AppendUint32(dst, ^uint32(0))
	}
	at := len(dst)
	dst = binary.BigEndian.AppendUint32(dst, 0)
	dst = c.columns[i].appendForm(dst, value, fromSource)
	binary.BigEndian.PutUint32(dst[at:], uint32(len(dst)-at-4))
	return dst
}

// equal says whether two rows have equal values in all columns. Bytes that differ in a key column
// are equal only in the canonical form, never by collation.
func (c *comparer) equal(source, target scan.Row) bool {
	if !c.unlikeText && source.Equal(target) {
		return true
	}
	for i := range c.columns {
		if !c.equalColumn(i, source, target) {
			return false
		}
	}
	return true
}

func (c *comparer) equalColumn(i int, source, target scan.Row) bool {
	s, sok := source.Value(i)
	t, tok := target.Value(i)
	if sok != tok {
		return false
	}
	col := &c.columns[i]
	if !sok || !col.unlikeText && bytes.Equal(s, t) {
		return true
	}
	if col.form != formBytes {
		c.srcBuf = col.appendForm(c.srcBuf[:0], s, true)
		c.tgtBuf = col.appendForm(c.tgtBuf[:0], t, false)
		if bytes.Equal(c.srcBuf, c.tgtBuf) {
			return !col.exactTarget || sameExact(s, t)
		}
	}
	return col.numericCompare && c.sameNumber(col, s, t)
}

func (c *comparer) sameNumber(col *column, s, t []byte) bool {
	cmp, err := evalengine.NullsafeCompare(sqltypes.MakeTrusted(col.Source.Type, s), sqltypes.MakeTrusted(col.Target.Type, t),
		c.env, collations.CollationBinaryID, nil)
	return err == nil && cmp == 0 || wasFloat(&col.Column) && sameFloat(s, t)
}

// sameExact says whether t, an exact number, is what MySQL makes of a DOUBLE that it prints as s: its digits, as many as t has, or the whole
// number that it is. Numbers with more digits than a DOUBLE has may be equal as one without being the same.
func sameExact(s, t []byte) bool {
	target, err := decimal.NewFromMySQL(t)
	if err != nil {
		return false
	}
	_, fraction, _ := bytes.Cut(t, []byte("."))
	if digits, err := decimal.NewFromString(string(s)); err == nil && digits.Round(int32(len(fraction))).Equal(target) {
		return true
	}
	n, err := strconv.ParseFloat(string(s), 64)
	if err != nil {
		return false
	}
	whole, err := decimal.NewFromMySQL(strconv.AppendFloat(nil, n, 'f', 0, 64))
	return err == nil && whole.Equal(target)
}

// wasFloat says whether a column is FLOAT on the source, and of a type with more digits on the target.
func wasFloat(c *plan.Column) bool {
	return c.Source.Type == sqltypes.Float32 && c.Target.Type != sqltypes.Float32
}

// floatDigits is with how many digits MySQL prints a FLOAT (FLT_DIG of C), be it with fewer than it has.
const floatDigits = 6

// sameFloat says whether t, of a type that has more digits, is what VReplication makes of a FLOAT of the source that is printed as s. It
// copies what is printed; of the binary log it takes the shortest text that means the FLOAT.
func sameFloat(s, t []byte) bool {
	source, err := strconv.ParseFloat(string(s), 64)
	if err != nil {
		return false
	}
	printed, ok := printedFloat(t)
	target, _ := strconv.ParseFloat(string(t), 64)
	return ok && (printed == source || float32(target) == float32(source))
}

// printedFloat is a number as MySQL would print it if it were a FLOAT. ok is false when it is not the shortest that means one.
func printedFloat(value []byte) (printed float64, ok bool) {
	n, err := strconv.ParseFloat(string(value), 64)
	if err != nil {
		return 0, false
	}
	float := float64(float32(n))
	if shortest, err := strconv.ParseFloat(strconv.FormatFloat(float, 'e', -1, 32), 64); err != nil || shortest != n {
		return 0, false
	}
	printed, err = strconv.ParseFloat(strconv.FormatFloat(float, 'e', floatDigits-1, 64), 64)
	return printed, err == nil
}
