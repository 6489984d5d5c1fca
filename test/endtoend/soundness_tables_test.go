// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package endtoend

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
)

// faultEvery parts the rows: those whose identity is a multiple of it belong to the faults, and no writer
// touches them. All others belong to the writers.
const faultEvery = 7

// subject is a table that TestSoundness writes to, damages and compares. Its rows are told by an integer
// column, the identity, that is its vindex column too. The column rev counts the updates of a fault row.
type subject struct {
	name    string
	ddl     string // columns and keys
	fill    string // select list over the number n
	rows    int64  // at first; writers keep identities below it
	ident   string
	keyless bool
	// textKey is the column of the key that is text under a case-insensitive collation, if there is one.
	textKey string
	// columns are the ones that can be given a random value, and how one is made.
	columns []column
	// writes are the transactions of a writer.
	writes []func(s *subject, r *rand.Rand) []string
	// added is how many columns x1, x2, ... were added while the test runs, indexed how many indexes.
	added, indexed atomic.Int64
}

// column is a column and a maker of SQL expressions for its values.
type column struct {
	name string
	gen  func(r *rand.Rand) string
}

// serial makes rows of the table without a key unlike where they are not to be equal: VReplication updates and deletes all equal rows at
// once there.
var serial atomic.Int64

// twinsOf are the rows of the table without a key, by their identity modulo faultEvery, of which there are several equal ones.
// Whoever changes them changes all of an identity.
const twinsOf = 3

// newSubjects are fresh tables of unlike keys.
func newSubjects() []*subject {
	return []*subject{
		{
			name: "s_big", ident: "id", rows: 15_000, columns: bigColumns,
			ddl:    "(id bigint primary key, rev int not null default 0, v varchar(100), n int)",
			fill:   "n, 0, concat('value ', n), n % 100",
			writes: []func(*subject, *rand.Rand) []string{upsert, upsert, updateOne, updateOne, updateRange, deleteRange, changeIdentity, bigTransaction},
		},
		{
			name: "s_pair", ident: "num", rows: 4000, columns: bigColumns, textKey: "name",
			ddl:    "(name varchar(20) collate utf8mb4_0900_ai_ci, num int, rev int not null default 0, v varchar(100), n int, primary key (name, num), key (num))",
			fill:   "elt(1 + n % 8, " + quoted(words) + "), n, 0, concat('value ', n), n % 100",
			writes: []func(*subject, *rand.Rand) []string{upsertNamed, upsertNamed, updateOne, updateRange, deleteRange, changeIdentity, changeName, changeCase},
		},
		{
			name: "s_kinds", ident: "id", rows: 2000, columns: kindColumns,
			ddl:    "(id bigint primary key, rev int not null default 0, " + kinds + ")",
			fill:   kindFill,
			writes: []func(*subject, *rand.Rand) []string{upsert, upsert, updateOne, updateOne, updateOne, updateAll, updateRange, deleteRange, changeIdentity, bigTransaction},
		},
		{
			name: "s_none", ident: "a", rows: 1500, columns: noneColumns, keyless: true,
			ddl:    "(a bigint not null, b varchar(60) not null, c datetime(3) not null, rev int not null default 0, key (a))",
			fill:   "n, concat('first ', n), '2026-01-02 03:04:05.678', 0",
			writes: []func(*subject, *rand.Rand) []string{insertUnkeyed, insertUnkeyed, updateUnkeyed, updateUnkeyed, deleteUnkeyed, moveUnkeyed, insertTwins, insertTwins, doubleTwins, doubleTwins, updateTwins, deleteTwins, moveTwins},
		},
	}
}

// words are names of unlike case and accents.
var words = []string{"alpha", "Beta", "GAMMA", "d\u00e9lta", "\u00c9psilon", "zeta", "\u00c6r\u00f8", "stra\u00dfe"}

func quoted(values []string) string { return "'" + strings.Join(values, "', '") + "'" }

func pick[T any](r *rand.Rand, values []T) T { return values[r.IntN(len(values))] }

func word(r *rand.Rand) string { return "'" + pick(r, words) + "'" }

func integer(r *rand.Rand) string { return fmt.Sprint(r.IntN(1000)) }

func text(r *rand.Rand) string {
	return fmt.Sprintf("'%s %d'", strings.Repeat(pick(r, words)+" ", r.IntN(8)), r.IntN(100_000))
}

var bigColumns = []column{{"v", text}, {"n", integer}}

var noneColumns = []column{
	{"b", func(*rand.Rand) string { return fmt.Sprintf("'b %d'", serial.Add(1)) }},
	{"c", func(r *rand.Rand) string {
		return fmt.Sprintf("'2026-02-03 04:05:%02d.%03d'", r.IntN(60), r.IntN(1000))
	}},
}

// kinds has a column of each kind.
const kinds = `ti tinyint, si smallint unsigned, mi mediumint, bu bigint unsigned, de decimal(20,6), fl float, db double, bt bit(12),
	da date, dt datetime(6), ts timestamp(3) null, tm time(2), yr year, ch char(10), vc varchar(40) charset latin1,
	bi binary(8), vb varbinary(20), tx text, bl blob, en enum('open','closed','b','a'), se set('x','y','z'), js json, pt point,
	twice bigint unsigned generated always as (si * 2) stored, hidden int invisible default 3`

// kindFill leaves out the generated column and the hidden one: see subject.create.
const kindFill = `n, 0, n % 256 - 128, n, 1000 - n, 18446744073709551615 - n, n / 7, n / 7e0, n / 3e0, n % 4096,
	'2020-01-01' + interval n day, '2020-01-01' + interval n * 1234567 microsecond, '2020-01-01' + interval n second, sec_to_time(n * 7), 1950 + n % 100, concat('ch', n), concat('caf', convert(0xE9 using latin1), n),
	unhex(substr(sha2(n, 256), 1, 16)), unhex(substr(sha2(n, 256), 1, n % 20 * 2)), repeat('text ', n % 20), unhex(sha2(n, 512)), 1 + n % 4, n % 8, json_object('b', n, 'a', json_array('x', null, true)), point(n, -n)`

// kindNames are the columns of kindFill.
const kindNames = "id, rev, ti, si, mi, bu, de, fl, db, bt, da, dt, ts, tm, yr, ch, vc, bi, vb, tx, bl, en, se, js, pt"

var kindColumns = []column{
	{"ti", func(r *rand.Rand) string { return fmt.Sprint(r.IntN(256) - 128) }},
	{"si", func(r *rand.Rand) string { return fmt.Sprint(r.IntN(65536)) }},
	{"mi", func(r *rand.Rand) string { return fmt.Sprint(r.IntN(1<<24) - 1<<23) }},
	{"bu", func(r *rand.Rand) string { return fmt.Sprint(r.Uint64()) }},
	{"de", func(r *rand.Rand) string { return fmt.Sprintf("%d.%06d", r.Int64N(1e13)-5e12, r.IntN(1e6)) }},
	{"fl", func(r *rand.Rand) string { return fmt.Sprintf("%d / 7e0", r.IntN(10_000)-5000) }},
	{"db", func(r *rand.Rand) string { return fmt.Sprintf("%d / 3e0", r.Int64N(1e12)) }},
	{"bt", func(r *rand.Rand) string { return fmt.Sprint(r.IntN(4096)) }},
	{"da", func(r *rand.Rand) string {
		return fmt.Sprintf("'%04d-%02d-%02d'", 1000+r.IntN(9000), 1+r.IntN(12), 1+r.IntN(28))
	}},
	{"dt", func(r *rand.Rand) string {
		return fmt.Sprintf("'%04d-%02d-%02d 23:59:%02d.%06d'", 1000+r.IntN(8999), 1+r.IntN(12), 1+r.IntN(28), r.IntN(60), r.IntN(1e6))
	}},
	{"ts", func(r *rand.Rand) string {
		return fmt.Sprintf("'%04d-%02d-%02d 00:00:%02d.%03d'", 1971+r.IntN(60), 1+r.IntN(12), 1+r.IntN(28), r.IntN(60), r.IntN(1000))
	}},
	{"tm", func(r *rand.Rand) string {
		return fmt.Sprintf("'%d:%02d:%02d.%02d'", r.IntN(1600)-800, r.IntN(60), r.IntN(60), r.IntN(100))
	}},
	{"yr", func(r *rand.Rand) string { return fmt.Sprint(1901 + r.IntN(255)) }},
	{"ch", func(r *rand.Rand) string {
		return fmt.Sprintf("'%s%d  '", string([]rune(pick(r, words))[:2]), r.IntN(1000))
	}},
	{"vc", func(r *rand.Rand) string { return fmt.Sprintf("'na\u00efve caf\u00e9 %d  '", r.IntN(1000)) }},
	{"bi", func(r *rand.Rand) string { return fmt.Sprintf("x'%08x00'", r.Uint32()) }},
	{"vb", func(r *rand.Rand) string { return fmt.Sprintf("x'%016x0000'", r.Uint64()) }},
	{"tx", text},
	{"bl", func(r *rand.Rand) string {
		return fmt.Sprintf("unhex(repeat('%016x', %d))", r.Uint64(), 1+r.IntN(100))
	}},
	{"en", func(r *rand.Rand) string { return fmt.Sprint(1 + r.IntN(4)) }},
	{"se", func(r *rand.Rand) string { return fmt.Sprint(r.IntN(8)) }},
	{"js", func(r *rand.Rand) string {
		return fmt.Sprintf(`'{"n": %d, "list": [null, true, "%s", {"deep": "%d"}]}'`, r.Int64N(1e12)-5e11, pick(r, words), r.IntN(1000))
	}},
	{"pt", func(r *rand.Rand) string { return fmt.Sprintf("point(%d, %d / 8)", r.IntN(1000)-500, r.IntN(1000)) }},
	{"hidden", integer},
}

// create are the statements that make the table and its rows, from the table numbers.
func (s *subject) create() []string {
	names := ""
	if s.name == "s_kinds" {
		names = "(" + kindNames + ") "
	}
	return []string{
		"create table " + s.name + " " + s.ddl,
		fmt.Sprintf("insert into %s %sselect %s from numbers where n <= %d", s.name, names, s.fill, s.rows),
	}
}

// free is an identity that belongs to the writers.
func (s *subject) free(r *rand.Rand) int64 {
	for {
		if n := 1 + r.Int64N(s.rows); n%faultEvery != 0 {
			return n
		}
	}
}

// single is an identity of the table without a key no row of which is equal to another, twin one with equal rows.
func (s *subject) single(r *rand.Rand) int64 {
	for {
		if n := s.free(r); n%faultEvery != twinsOf {
			return n
		}
	}
}

func (s *subject) twin(r *rand.Rand) int64 {
	return twinsOf + faultEvery*r.Int64N(s.rows/faultEvery)
}

// span is a condition for some rows of the writers.
func (s *subject) span(r *rand.Rand, length int64) string {
	first := s.free(r)
	return fmt.Sprintf("%s between %d and %d and %[1]s %% %[4]d <> 0", s.ident, first, first+length, faultEvery)
}

// assignments give random values to some of the columns, at least one; the columns that were added are among them.
func (s *subject) assignments(r *rand.Rand, all bool) string {
	columns := s.columns
	for i := range s.added.Load() {
		columns = append(columns[:len(columns):len(columns)], column{fmt.Sprintf("x%d", i+1), integer})
	}
	must := r.IntN(len(columns))
	var set []string
	for i, c := range columns {
		if !all && i != must && r.IntN(3) > 0 {
			continue
		}
		value := c.gen(r)
		if !s.keyless && r.IntN(10) == 0 {
			value = "null"
		}
		set = append(set, c.name+" = "+value)
	}
	return strings.Join(set, ", ")
}
