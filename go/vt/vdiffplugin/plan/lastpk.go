// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package plan

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"google.golang.org/protobuf/encoding/prototext"

	"vitess.io/vitess/go/sqltypes"

	querypb "vitess.io/vitess/go/vt/proto/query"
	tabletmanagerdatapb "vitess.io/vitess/go/vt/proto/tabletmanagerdata"
)

// MaxLastPK is the length of the column that holds a lastpk.
const MaxLastPK = 2000

var (
	// ErrNoCheckpoint says that a key of the table cannot be stored as the place where to go on. The
	// table starts again from its first row when it is resumed.
	ErrNoCheckpoint = errors.New("no checkpoint")
	// ErrLastPKTooLong is the ErrNoCheckpoint of a key that is too long for the column.
	ErrLastPKTooLong = fmt.Errorf("%w: the key is too long for the lastpk column", ErrNoCheckpoint)
)

// EncodeLastPK returns what is stored as lastpk when all rows up to and including row, of either side,
// have been compared. Rows that are equal to it in Key must all be among them.
func EncodeLastPK(t *Table, row []sqltypes.Value) ([]byte, error) {
	if !t.Ordered {
		return nil, fmt.Errorf("%w: table %s: %s", ErrNoCheckpoint, t.Name, t.NotOrdered)
	}
	if len(row) != len(t.Columns) {
		return nil, fmt.Errorf("lastpk of table %s: a row of %d columns, not %d", t.Name, len(row), len(t.Columns))
	}
	for _, key := range [][]int{targetSide.key(t), sourceSide.key(t)} {
		for _, i := range key {
			if column := &t.Columns[i]; !column.isLiteral(row[i]) {
				return nil, fmt.Errorf("table %s: %w: column %s has a date that MySQL may refuse as a literal", t.Name, ErrNoCheckpoint, column.Name)
			}
		}
	}
	lastPK := &tabletmanagerdatapb.VDiffTableLastPK{Target: encodeSide(t, targetSide, row)}
	if t.sidesDiffer() {
		lastPK.Source = encodeSide(t, sourceSide, row)
	}
	text, err := prototext.Marshal(lastPK)
	if err != nil {
		return nil, fmt.Errorf("lastpk of table %s: %w", t.Name, err)
	}
	if len(text) > MaxLastPK {
		return nil, fmt.Errorf("table %s: %w: %d bytes", t.Name, ErrLastPKTooLong, len(text))
	}
	return text, nil
}

// isLiteral says whether MySQL takes a value for a literal whatever its sql_mode is: a column may hold dates that are none, as 2020-00-00
// or, with ALLOW_INVALID_DATES, 2020-02-31, and "Incorrect DATETIME value" is the answer when it is compared with one.
func (c *Column) isLiteral(value sqltypes.Value) bool {
	if value.IsNull() {
		return true
	}
	for _, t := range []querypb.Type{c.Source.Type, c.Target.Type} {
		switch t {
		case sqltypes.Date, sqltypes.Datetime, sqltypes.Timestamp:
			text := value.ToString()
			if at, err := time.Parse(time.DateOnly, text[:min(len(text), len(time.DateOnly))]); err != nil || at.Year() == 0 {
				return false
			}
		}
	}
	return true
}

// DecodeLastPK reads a stored lastpk, written here or by the stock engine, into the Lastpk of each
// side's VStreamRows request. Anything that does not fit the table as it is now is an error: the table
// is then to be started from its first row. Errors do not repeat the stored bytes.
func DecodeLastPK(t *Table, stored []byte) (source, target *querypb.QueryResult, err error) {
	if !t.Ordered {
		return nil, nil, fmt.Errorf("%w: table %s: %s", ErrNoCheckpoint, t.Name, t.NotOrdered)
	}
	lastPK := &tabletmanagerdatapb.VDiffTableLastPK{}
	if err := prototext.Unmarshal(stored, lastPK); err != nil {
		return nil, nil, fmt.Errorf("lastpk of table %s is not a VDiffTableLastPK", t.Name)
	}
	target, source = lastPK.Target, lastPK.Source
	if source == nil && !t.sidesDiffer() {
		source = target
	}
	if err := checkSide(t, targetSide, target); err != nil {
		return nil, nil, fmt.Errorf("lastpk of table %s for the target: %w", t.Name, err)
	}
	if err := checkSide(t, sourceSide, source); err != nil {
		return nil, nil, fmt.Errorf("lastpk of table %s for the source: %w", t.Name, err)
	}
	return source, target, nil
}

// side is one side of a table: its ordering key and the types of its columns.
type side struct {
	key    func(*Table) []int
	typeOf func(*Column) querypb.Type
}

var (
	sourceSide = side{
		key:    func(t *Table) []int { return orKey(t, t.SourceKey) },
		typeOf: func(c *Column) querypb.Type { return c.Source.Type },
	}
	targetSide = side{
		key:    func(t *Table) []int { return orKey(t, t.TargetKey) },
		typeOf: func(c *Column) querypb.Type { return c.Target.Type },
	}
)

func orKey(t *Table, key []int) []int {
	if key == nil {
		return t.Key
	}
	return key
}

// sidesDiffer says whether the source needs a lastpk of its own: its key has other columns, or other
// types, which decide how a value is quoted.
func (t *Table) sidesDiffer() bool {
	source, target := sourceSide.key(t), targetSide.key(t)
	if len(source) != len(target) {
		return true
	}
	for i := range source {
		if source[i] != target[i] || t.Columns[source[i]].Source.Type != t.Columns[target[i]].Target.Type {
			return true
		}
	}
	return false
}

func encodeSide(t *Table, s side, row []sqltypes.Value) *querypb.QueryResult {
	qr := &querypb.QueryResult{}
	var values []sqltypes.Value
	for _, i := range s.key(t) {
		qr.Fields = append(qr.Fields, &querypb.Field{Name: t.Columns[i].Name, Type: s.typeOf(&t.Columns[i])})
		values = append(values, row[i])
	}
	qr.Rows = []*querypb.Row{sqltypes.RowToProto3(values)}
	return qr
}

// checkSide says why a stored key is not one of this side of the table. A value that is not of its
// type would be pasted into the stream's query as it is.
func checkSide(t *Table, s side, qr *querypb.QueryResult) error {
	key := s.key(t)
	switch {
	case qr == nil:
		return errors.New("missing")
	case len(qr.Rows) != 1 || qr.Rows[0] == nil || len(qr.Fields) != len(key) || len(qr.Rows[0].Lengths) != len(key):
		return fmt.Errorf("not one row of %d columns", len(key))
	}
	rest := qr.Rows[0].Values
	for n, i := range key {
		column := &t.Columns[i]
		field, length := qr.Fields[n], qr.Rows[0].Lengths[n]
		if field == nil || !strings.EqualFold(field.Name, column.Name) || !sameType(field.Type, s.typeOf(column)) {
			return fmt.Errorf("field %d is not column %s as it is now", n+1, column.Name)
		}
		if length < 0 || length > int64(len(rest)) {
			return fmt.Errorf("column %s has no value", column.Name)
		}
		if _, err := sqltypes.NewValue(field.Type, rest[:length]); err != nil {
			return fmt.Errorf("the value of column %s is not of its type", column.Name)
		}
		rest = rest[length:]
	}
	if len(rest) > 0 {
		return errors.New("bytes left over")
	}
	return nil
}

// sameType compares the type of a stored field with a column's. The stock engine takes text of a _bin
// collation for a binary string, which is quoted differently and means the same.
func sameType(stored, column querypb.Type) bool {
	switch column {
	case querypb.Type_VARCHAR:
		return stored == column || stored == querypb.Type_VARBINARY
	case querypb.Type_CHAR:
		return stored == column || stored == querypb.Type_BINARY
	}
	return stored == column
}
