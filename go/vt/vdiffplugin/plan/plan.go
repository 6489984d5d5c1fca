// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package plan

import (
	"vitess.io/vitess/go/mysql/collations"

	querypb "vitess.io/vitess/go/vt/proto/query"
)

// Table says how one table of a workflow is compared. It is built once per run of a vdiff and never
// changed afterwards, so that it may be shared by goroutines.
type Table struct {
	// Name is the table on the target, SourceName the one on the source: they differ when a rule renames.
	Name       string
	SourceName string

	// SourceQuery and TargetQuery are the queries for VStreamRows. Their select lists have the same
	// columns in the same order: Columns. That of the source may have SourceJudged more behind them.
	SourceQuery string
	TargetQuery string
	Columns     []Column

	// Key has the indexes in Columns by which rows are paired. When KeyUnique is false no set of
	// columns is known to be unique on both sides (then Key is every column), and rows are paired as
	// a multiset: a row can be missing or extra but never mismatched.
	Key       []int
	KeyUnique bool

	// Ordered is true when VStreamRows sends the rows of every source shard and of the target in the
	// order of Key, and Column.Order of each key column can tell that order. Then streams can be
	// merged, and a key is a checkpoint. NotOrdered says why otherwise.
	Ordered    bool
	NotOrdered string

	// Mergeable is true when the rows of every stream arrive in the order of Key. It always is when
	// Ordered is. When it is true and Ordered is not, streams can be merged all the same, but no key
	// is a checkpoint: where one side's stream is ordered by fewer columns than Key has (source key
	// id, target key id and day), "the rows after this key" cannot be said to it.
	Mergeable bool

	// KeyMoves is true when VReplication finds the target's rows by other columns than Key: an UPDATE gives a row another key, and does
	// nothing where the row was lost. Of what is found at one position nothing holds for a part of the keys later on, so that no
	// key is a place to go on from.
	KeyMoves bool

	// SourceKey and TargetKey have the indexes in Columns of what each side's stream is ordered by,
	// in that order: what a lastpk of that side holds. Set when Ordered is.
	SourceKey []int
	TargetKey []int

	// SourceFilter and TargetFilter are the conditions of the rule that are not about key ranges, as
	// SQL without "where" and each in the columns of its side; "" for none. The queries have them too.
	SourceFilter string
	TargetFilter string

	// SourceConditions and TargetConditions are those that are in neither the queries nor the filters: all of them must be true for
	// a row of that side's query.
	SourceConditions []Condition
	TargetConditions []Condition

	// SourceJudged is how many columns a row of SourceQuery has behind those of Columns: what SourceConditions are about and the rule
	// does not select. They are no part of the comparison.
	SourceJudged int

	// Aggregated is true when the rule groups rows: several source rows make one target row, and
	// Column.Aggregate says how each column that is not in Key is made. A column that is neither in
	// Key nor an aggregate holds the value of the row that was applied last: that of any row of the
	// group may be right, and NULL once a row was deleted. VReplication never deletes a group whose
	// last row is gone: it stays on the target with counts and sums of zero.
	Aggregated bool

	// Digest says how the rows are compared by digests; it is nil where they cannot be, and NotDigestible says why.
	Digest        *Digest
	NotDigestible string

	// Reference is true when every source shard holds a copy of the whole table, so that equal rows
	// of several source shards count once.
	Reference bool

	// Fingerprint is another one for any other plan. A checkpoint holds only for the plan that it was made under.
	Fingerprint string
}

// Column is one column of the comparison.
type Column struct {
	// Name is the column on the target. SourceExpr is what the source selects for it, TargetExpr what
	// the target selects, as SQL without an alias.
	Name       string
	SourceExpr string
	TargetExpr string
	// SourceName is the column of the source whose values these are, one for one; "" when there is none.
	SourceName string
	Source     ColumnType
	Target     ColumnType
	// Order is how two values of a key column compare. OrderNone: not known to be MySQL's order.
	Order     Order
	Aggregate Aggregate
	// TimeZones is set where the target's value is brought back to the source's time zone by
	// convert_tz in TargetQuery.
	TimeZones bool
	// Generated says that MySQL computes the column on the target, AutoIncrement that it makes a number of a 0 that is inserted there.
	Generated, AutoIncrement bool
}

// ColumnType is what one side's schema says of a column. For an expression on the source Type is
// the target's. Where a query converts a column to utf8mb4, Charset and Collation say so: they tell
// what the bytes are that arrive. The charsets of both sides may differ all the same where a column
// that rows are filtered by must not be converted: then the text is to be compared, not the bytes.
//
// Type says VARCHAR, CHAR, TEXT, ENUM or SET of text whatever its collation is. The fields of a row
// stream do not: text of a _bin collation arrives as VARBINARY, BINARY or BLOB.
type ColumnType struct {
	Type       querypb.Type
	ColumnType string // as information_schema shows it, e.g. "enum('a','b')"
	Charset    string // "" for types that have none
	Collation  collations.ID
	Nullable   bool
	// Stored has the names of the charset and the collation of the column in its table, whatever a query makes of it: Vitess
	// does not know all collations.
	Stored StoredText
}

// StoredText is how MySQL stores the text of a column.
type StoredText struct {
	Charset   string
	Collation string
}

// Order is a way to compare two values of a key column.
type Order int

const (
	OrderNone      Order = iota
	OrderSigned          // decimal digits of an int64
	OrderUnsigned        // decimal digits of a uint64
	OrderBytes           // bytewise: binary strings, dates and times as MySQL prints them
	OrderDecimal         // any decimal number
	OrderCollation       // text under Target.Collation, equal on both sides: see TextOrder
)

// Aggregate is how source rows of one group make a target value.
type Aggregate int

const (
	AggregateNone Aggregate = iota
	AggregateCount
	AggregateSum
)
