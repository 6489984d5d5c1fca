// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package endtoend

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"vitess.io/vitess/go/mysql/collations"
	"vitess.io/vitess/go/mysql/collations/colldata"

	"github.com/vttablet-ext/vttablet-ext/test/endtoend/cluster"
)

// keyType is a type that MySQL allows in a key. value makes seven values that are all different out of n, from 1 to 7.
type keyType struct {
	column string
	value  string
	prefix string // of the column in the key
}

var keyTypes = []keyType{
	{"tinyint", "elt(n, -128, -1, 0, 1, 9, 10, 127)", ""},
	{"tinyint unsigned", "elt(n, 0, 1, 9, 10, 127, 128, 255)", ""},
	{"smallint", "elt(n, -32768, -1, 0, 1, 9, 10, 32767)", ""},
	{"smallint unsigned zerofill", "elt(n, 0, 1, 9, 10, 127, 128, 65535)", ""},
	{"mediumint", "elt(n, -8388608, -1, 0, 1, 9, 10, 8388607)", ""},
	{"mediumint unsigned", "elt(n, 0, 1, 9, 10, 127, 128, 16777215)", ""},
	{"int", "elt(n, -2147483648, -1, 0, 1, 9, 10, 2147483647)", ""},
	{"int unsigned", "elt(n, 0, 1, 9, 10, 127, 128, 4294967295)", ""},
	{"bigint", "elt(n, -9223372036854775808, -1, 0, 9, 10, 9007199254740993, 9223372036854775807)", ""},
	{"bigint unsigned", "elt(n, 0, 1, 9, 10, 9007199254740993, 9223372036854775808, 18446744073709551615)", ""},
	{"decimal(10,2)", "elt(n, '-99999999.99', '-0.01', '0', '0.01', '9', '10', '99999999.99')", ""},
	{"decimal(65,30)", "elt(n, '-1e34', '-1e-30', '0', '1e-30', '9', '10', '1e34')", ""},
	{"float", "elt(n, -3.4e38, -1.5, 0, 1e-30, 0.1, 16777217, 3.4e38)", ""},
	{"double", "elt(n, -1.7e308, -1.5, 0, 1e-300, 0.1, 9007199254740993, 1.7e308)", ""},
	{"bit(3)", "n", ""},
	{"bit(64)", "elt(n, 0, 1, 127, 128, 255, 256, 18446744073709551615)", ""},
	{"date", "elt(n, '0000-00-00', '1000-01-01', '1969-12-31', '1970-01-01', '2020-02-00', '2024-02-29', '9999-12-31')", ""},
	{"datetime", "elt(n, '0000-00-00', '1000-01-01', '1969-12-31 23:59:59', '1970-01-01', '2020-01-01 12:00:00', '2021-03-28 02:30:00', '9999-12-31 23:59:59')", ""},
	{"datetime(6)", "elt(n, '0000-00-00', '1000-01-01', '1970-01-01', '1970-01-01 00:00:00.000001', '1970-01-01 00:00:00.1', '2020-01-01', '9999-12-31 23:59:59.999999')", ""},
	{"timestamp", "elt(n, '0000-00-00', '1970-01-01 00:00:01', '1970-01-02', '2021-03-28 02:30:00', '2021-10-31 02:30:00', '2024-02-29', '2038-01-19 03:14:07')", ""},
	{"timestamp(6)", "elt(n, '1970-01-01 00:00:01', '1970-01-01 00:00:01.000001', '1970-01-02', '2021-03-28', '2021-10-31', '2024-02-29', '2038-01-19 03:14:07.9')", ""},
	{"time", "elt(n, '-838:59:59', '-00:00:01', '0', '00:00:01', '09:00:00', '10:00:00', '838:59:59')", ""},
	{"time(6)", "elt(n, '-838:59:59', '-00:00:00.5', '0', '00:00:00.000001', '09:00:00', '100:00:00', '838:59:59')", ""},
	{"year", "elt(n, '0000', '1901', '1970', '2000', '2024', '2100', '2155')", ""},
	{"char(10)", "elt(n, '', 'a', 'B', 'é', '😀', '10', '9')", ""},
	{"varchar(700)", "elt(n, '', 'a', 'B', 'é', '😀', repeat('x', 700), repeat('y', 700))", ""},
	{"varchar(20) collate utf8mb4_bin", "elt(n, '', 'a', 'A', 'é', 'e', ' a ', '9')", ""},
	{"varchar(20) character set utf16", "elt(n, '', 'a', 'B', 'é', '😀', '10', '9')", ""},
	{"binary(4)", "elt(n, '', x'00ff', ' ', 'a', 'A', x'ff', x'ffff')", ""},
	{"varbinary(300)", "elt(n, '', x'00', ' ', 'a', 'a ', x'ff', repeat('a', 300))", ""},
	{"tinytext", "elt(n, '', 'a', 'B', 'é', '😀', '10', '9')", "(10)"},
	{"longtext", "elt(n, '', 'a', 'B', 'é', '😀', concat('10', repeat('x', 70000)), '9')", "(10)"},
	{"longtext collate utf8mb4_bin", "elt(n, '', 'a', 'A', 'é', '😀', concat('10', repeat('x', 70000)), '9')", "(3)"},
	{"tinyblob", "elt(n, '', x'00', ' ', 'a', 'a ', x'ff', 'A')", "(10)"},
	{"longblob", "elt(n, '', x'00', ' ', 'a', 'a ', x'ff', repeat('b', 70000))", "(2)"},
	{"enum('b','a','10','9','é','','x')", "n", ""},
	{"set('b','a','é')", "n", ""},
}

// keyTable is a table with a key of one type; n is unique, too, and says which value the key has.
type keyTable struct {
	name   string
	of     string
	create string
	value  string // of the key, made from n
}

func (k keyTable) fill(ctx context.Context, t *cluster.Tablet) error {
	return t.Exec(ctx, "set sql_mode = '', time_zone = '+00:00'", k.create, "insert into "+k.name+" (k, n, v) select "+k.value+", n, n from numbers where n <= 6")
}

// plant changes one row, deletes one, and gives one another key.
func (k keyTable) plant(ctx context.Context, t *cluster.Tablet) error {
	return t.Exec(ctx, "set sql_mode = '', time_zone = '+00:00'",
		"delete from "+k.name+" where n = 1", "update "+k.name+" set v = -1 where n = 2",
		"insert into "+k.name+" (k, n, v) select "+k.value+", n, n from (select 7 as n) x", "delete from "+k.name+" where n = 3")
}

// TestKeyTypes compares tables whose key is of each type that MySQL allows there, first as a whole, then after a change, a deleted
// row and a row under another key: by digests and by rows in a fence.
func TestKeyTypes(t *testing.T) {
	b := testBed(t)
	ctx := longContext(t)
	require.NoError(t, addOne(ctx, b))
	var tables []keyTable
	for i, k := range keyTypes {
		name := fmt.Sprintf("key_%d", i)
		tables = append(tables, keyTable{name, k.column, "create table " + name + " (k " + k.column + " not null, n int, v int, primary key (k" + k.prefix + "))", k.value})
		if i%4 == 0 { // with others in front and behind
			name += "_more"
			tables = append(tables, keyTable{name, k.column + " between others", "create table " + name + " (k " + k.column + " not null, n int, v int, o int default 7, p varchar(9) default 'p', primary key (o, k" + k.prefix + ", p))", k.value})
		}
	}
	var columns, names []string
	for i := range 15 {
		columns = append(columns, fmt.Sprintf("c%d tinyint default %d", i, i%3))
		names = append(names, fmt.Sprintf("c%d", i))
	}
	tables = append(tables, keyTable{"key_long", "16 columns", "create table key_long (k int, n int, v int, " + strings.Join(columns, ", ") + ", primary key (" + strings.Join(names, ", ") + ", k))", "n"})

	w := b.c.Workflow("one", "keytypes")
	for _, k := range tables {
		require.NoError(t, k.fill(ctx, b.source()), k.of)
	}
	require.NoError(t, w.MoveTables(ctx, "--source-keyspace", sourceName, "--tables", tableNames(tables)))
	defer func() { assert.NoError(t, w.Cancel(context.WithoutCancel(ctx), "MoveTables")) }()
	hold := func(when string, want [4]int64) {
		t.Helper()
		for _, flags := range [][]string{nil, inFenceOnly} {
			s, err := w.Diff(ctx, flags...)
			require.NoError(t, err)
			for _, k := range tables {
				assert.Equal(t, counts(k.name, want[0], want[1], want[2], want[3]), s.TableSummaryMap[k.name], "%s: %s, %v", k.of, when, flags)
			}
		}
	}
	hold("as copied", [4]int64{6, 0, 0, 0})
	for _, k := range tables {
		require.NoError(t, k.plant(ctx, b.c.Primary("one", "0")), k.of)
	}
	hold("planted", [4]int64{3, 1, 2, 1})
}

func tableNames(tables []keyTable) string {
	var names []string
	for _, k := range tables {
		names = append(names, k.name)
	}
	return strings.Join(names, ",")
}

// keyEdits are keys and what they are made on the target: another case, an accent, spaces at the end, what some collations take for
// spaces, a space behind a Thai tone mark, and a zero byte, at which MySQL's weights of Thai text end.
var keyEdits = [][2]string{
	{"ABC", "abc"}, {"Eclair", "\u00c9clair"}, {"space", "space "}, {"nobreak", "nobreak\u00a0"}, {"wide", "wide\u3000 "}, {"grave", "grave`"},
	{"tone\u0e48", "tone\u0e48 "}, {"zero", "zero\x00"}, {"zero\x00A", "zero\x00B"},
}

// oddSpaces are collations that Vitess knows, under which other characters weigh as much as a space.
var oddSpaces = []string{"utf16_unicode_ci", "utf32_unicode_520_ci", "utf8mb4_unicode_ci", "koi8u_general_ci", "cp1250_general_ci", "cp1251_ukrainian_ci"}

// textIn is text in a charset, as SQL.
func textIn(charset, text string) string {
	return fmt.Sprintf("convert(convert(x'%x' using utf8mb4) using %s)", text, charset)
}

// addCollationTable makes a table whose key is text under a collation, with keys that are text of a charset.
func addCollationTable(ctx context.Context, src *cluster.Tablet, table, charset, column string) error {
	rows := []string{"('other', 100, 1)", "('same', 101, 1)"}
	for n, edit := range keyEdits {
		rows = append(rows, fmt.Sprintf("(%s, %d, 1)", textIn(charset, edit[0]), n))
	}
	return src.Exec(ctx, "create table "+table+" (k "+column+" primary key, n int, v int)", "insert into "+table+" values "+strings.Join(rows, ", "))
}

// editedCounts asks MySQL which of the edited keys are the same key under a collation.
func editedCounts(ctx context.Context, src *cluster.Tablet, charset, collation string) ([4]int64, error) {
	counted := [4]int64{2, 0, 0, 0}
	var same []string
	for _, edit := range keyEdits {
		same = append(same, fmt.Sprintf("%s collate %s = %s", textIn(charset, edit[0]), collation, textIn(charset, edit[1])))
	}
	result, err := src.Query(ctx, "select "+strings.Join(same, ", "))
	if err != nil {
		return counted, err
	}
	for _, equal := range result.Rows[0] {
		if equal.ToString() == "1" {
			counted[1]++
		} else {
			counted[2], counted[3] = counted[2]+1, counted[3]+1
		}
	}
	return counted, nil
}

// TestKeyCollations compares tables whose key is text, for every collation of the server that Vitess does not know and some that it
// does, with the same collation on the source and, unless all is usual, with utf8mb4 there. Keys are edited on the target: MySQL says whether one is the
// same key there, and then the rows are a pair that does not match; otherwise each is extra.
func TestKeyCollations(t *testing.T) {
	b := testBed(t)
	ctx := longContext(t)
	require.NoError(t, addOne(ctx, b))
	src, one := b.source(), b.c.Primary("one", "0")
	result, err := src.Query(ctx, "select collation_name, character_set_name from information_schema.collations where character_set_name <> 'binary' order by id")
	require.NoError(t, err)
	env := collations.MySQL8()
	var tables []keyTable
	want := map[string][4]int64{}
	edits := map[string][]string{}
	var altered []string
	unknown := 0
	for i, row := range result.Rows {
		name, charset, odd := row[0].ToString(), row[1].ToString(), true
		if id := env.LookupByName(name); id == collations.Unknown || colldata.Lookup(id) == nil {
			unknown++
		} else if odd = slices.Contains(oddSpaces, name); i%12 > 0 && !odd {
			continue
		}
		counted, err := editedCounts(ctx, src, charset, name)
		require.NoError(t, err, name)
		column := fmt.Sprintf("varchar(20) character set %s collate %s", charset, name)
		for suffix, source := range map[string]string{"same": column, "utf8": "varchar(20) character set utf8mb4 collate utf8mb4_0900_as_cs"} {
			if suffix == "utf8" && !odd {
				continue
			}
			table := fmt.Sprintf("coll_%d_%s", i, suffix)
			require.NoError(t, addCollationTable(ctx, src, table, charset, source), name)
			tables = append(tables, keyTable{name: table, of: name + " from " + source})
			want[table] = counted
			if suffix == "utf8" { // VReplication copies bytes into whatever charset, so that the column is changed afterwards
				altered = append(altered, "alter table "+table+" modify k "+column)
			}
			for n, edit := range keyEdits {
				edits[table] = append(edits[table], fmt.Sprintf("update %s set k = %s where n = %d", table, textIn(charset, edit[1]), n))
			}
		}
	}
	t.Logf("%d tables, %d collations that Vitess does not know", len(tables), unknown)
	assert.Positive(t, unknown, "if Vitess knows all there is no need to ask MySQL")
	w := b.c.Workflow("one", "collations")
	require.NoError(t, w.MoveTables(ctx, "--source-keyspace", sourceName, "--tables", tableNames(tables)))
	defer func() { assert.NoError(t, w.Cancel(context.WithoutCancel(ctx), "MoveTables")) }()
	require.NoError(t, one.Exec(ctx, altered...))
	s, err := w.Diff(ctx)
	require.NoError(t, err)
	for _, k := range tables {
		assert.Equal(t, counts(k.name, int64(len(keyEdits)+2), 0, 0, 0), s.TableSummaryMap[k.name], "%s: as copied", k.of)
		require.NoError(t, one.Exec(ctx, append([]string{"set sql_mode = ''"}, edits[k.name]...)...), k.of)
	}
	for _, flags := range [][]string{nil, inFenceOnly} {
		s, err := w.Diff(ctx, flags...)
		require.NoError(t, err)
		for _, k := range tables {
			v := want[k.name]
			assert.Equal(t, counts(k.name, v[0], v[1], v[2], v[3]), s.TableSummaryMap[k.name], "%s, %v", k.of, flags)
		}
	}
}
