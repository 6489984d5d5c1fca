// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package endtoend

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"vitess.io/vitess/go/vt/vttablet/tabletmanager/vdiff"
)

// valueTypes are the types that MySQL allows for a value, with seven values as for a key: those that no key can have, or only with a prefix, and
// after them those of keyTypes.
var valueTypes = slices.Concat([]keyType{
	{"json", `elt(n, '{"b": 1, "a": [1.0, 2]}', '9007199254740993', 'null', '"😀"', '{"a": {"b": [true, null, ""]}}', '-1e-300', '[]')`, ""},
	{"vector(3)", "string_to_vector(elt(n, '[1,2,3]', '[0,0,0]', '[-1,0.1,3e7]', '[1,2,4]', '[0.001,0,0]', '[7,7,7]', '[3,2,1]'))", ""},
	{"vector", "string_to_vector(concat('[', n, repeat(',0.5', 2000), ']'))", ""},
	{"geometry", "st_geomfromtext(concat('point(', n, ' 1)'), 4326)", ""},
	{"point", "st_geomfromtext(concat('point(', n, ' -0.5)'))", ""},
	{"linestring", "st_geomfromtext(concat('linestring(0 0, ', n, ' 1)'))", ""},
	{"polygon", "st_geomfromtext(concat('polygon((0 0, 0 ', n, ', 1 1, 0 0))'))", ""},
	{"multipoint", "st_geomfromtext(concat('multipoint(0 0, ', n, ' 1)'))", ""},
	{"multilinestring", "st_geomfromtext(concat('multilinestring((0 0, 1 1), (', n, ' 1, 2 2))'))", ""},
	{"multipolygon", "st_geomfromtext(concat('multipolygon(((0 0, 0 ', n, ', 1 1, 0 0)))'))", ""},
	{"geometrycollection", "st_geomfromtext(if(n = 1, 'geometrycollection empty', concat('geometrycollection(point(', n, ' 1), linestring(0 0, 1 1))')))", ""},
	{"blob", "elt(n, '', x'00', x'0000', ' ', repeat(x'ff', 65535), repeat(x'fe', 65535), 'a')", ""},
	{"mediumblob", "concat(repeat('b', 1 << 20), char(n))", ""},
	{"text", "elt(n, '', 'a', 'A', 'a ', repeat('😀', 16000), repeat('é', 16000), char(0))", ""},
	{"mediumtext character set utf16", "elt(n, '', 'a', 'A', 'a ', '😀', repeat('é', 30000), 'z')", ""},
	{"varchar(20) character set gbk", "elt(n, '', 'a', 'A', convert(x'b0a1' using gbk), convert(x'c4e3' using gbk), 'a ', 'z')", ""},
	{"varchar(20) character set utf8mb3", "elt(n, '', 'a', 'A', 'é', '€', 'a ', 'z')", ""},
	{"char(20) character set latin1 collate latin1_german2_ci", "elt(n, '', 'a', 'A', 'ß', 'ss', 'ä', 'ae')", ""},
	{"varchar(100) collate utf8mb4_ja_0900_as_cs", "elt(n, '', 'か', 'が', 'カ', 'a', 'A', '😀')", ""},
	{"int zerofill", "elt(n, 0, 1, 9, 10, 99, 100, 4294967295)", ""},
	{"float(10,2)", "elt(n, -12345.67, -0.5, 0, 0.01, 1.25, 99999.99, 3)", ""},
	{"double(20,3)", "elt(n, -12345678901.667, -0.5, 0, 0.001, 1.25, 99999999999.999, 3)", ""},
	{"boolean", "n % 2", ""},
	{"enum('a','b','c','d','e','f','g')", "elt(n, 'g', 'f', 'e', 'd', 'c', 'b', 'a')", ""},
	{"set(" + members(64) + ")", "elt(n, 0, 1, 1 << 31, 1 << 32, 1 << 62, 1 << 63, 18446744073709551615)", ""},
}, keyTypes)

// members are the definitions of so many members of a SET.
func members(n int) string {
	var names []string
	for i := range n {
		names = append(names, fmt.Sprintf("'m%d'", i))
	}
	return strings.Join(names, ",")
}

// valueRows selects rows whose columns have the values of their types, NULL apart, by numbers that are called id.
func valueRows(ids string) string {
	values := []string{"id"}
	for _, k := range valueTypes {
		values = append(values, k.value)
	}
	return "select " + strings.Join(values, ", ") + " from (select n as id, 1 + n % 7 as n from numbers where " + ids + ") x"
}

// TestValueTypes compares one table with a column of each type: as it was copied, with rows that were replicated, with one value of each column changed
// and then missing, by digests and by rows in a fence. Each sample shows the changed column as unlike, and no other.
func TestValueTypes(t *testing.T) {
	b := testBed(t)
	ctx := longContext(t)
	columns := []string{"id int primary key"}
	for i, k := range valueTypes {
		columns = append(columns, fmt.Sprintf("c%d %s null", i, k.column))
	}
	session := "set sql_mode = '', time_zone = '+00:00'"
	n := int64(len(valueTypes))
	w, one := b.moveToOne(t, ctx, "valuetypes", "kinds", session, "create table kinds ("+strings.Join(columns, ", ")+")",
		fmt.Sprintf("insert into kinds %s", valueRows(fmt.Sprintf("n <= %d", n))), "insert into kinds (id) values (0)")
	hold := func(when string, rows, mismatched int64) {
		t.Helper()
		for _, flags := range [][]string{nil, inFenceOnly} {
			s, err := w.Diff(ctx, append([]string{"--max-report-sample-rows", "0"}, flags...)...)
			require.NoError(t, err)
			assert.Equal(t, counts("kinds", rows-mismatched, mismatched, 0, 0), s.TableSummaryMap["kinds"], "%s, %v", when, flags)
			seen := map[string]bool{}
			for _, diff := range s.Reports["kinds"]["0"].MismatchedRowsDiffs {
				id := diff.Source.Row["id"]
				seen[id] = true
				assert.Equal(t, []string{columnOf(id)}, unlikeColumns(diff), "%s, %v", when, flags)
			}
			assert.Len(t, seen, int(mismatched), "%s, %v", when, flags)
		}
	}
	hold("as copied", n+1, 0)
	require.NoError(t, b.source().Exec(ctx, session, "insert into kinds "+valueRows("n between 501 and 507")))
	hold("as replicated", n+8, 0)
	for i, k := range valueTypes {
		other := fmt.Sprintf("(select %s from (select %d as n) x)", k.value, 1+(i+2)%7)
		require.NoError(t, one.Exec(ctx, session, fmt.Sprintf("update kinds set c%d = %s where id = %d", i, other, i+1)), k.column)
	}
	hold("with other values", n+8, n)
	for i, k := range valueTypes {
		require.NoError(t, one.Exec(ctx, session, fmt.Sprintf("update kinds set c%d = null where id = %d", i, i+1)), k.column)
	}
	hold("with no values", n+8, n)
}

// columnOf is the column that is changed in a row.
func columnOf(id string) string {
	var n int
	if _, err := fmt.Sscan(id, &n); err != nil {
		return err.Error()
	}
	return fmt.Sprintf("c%d", n-1)
}

// unlikeColumns are the columns in which both sides of a sample are not the same.
func unlikeColumns(diff *vdiff.DiffMismatch) []string {
	var unlike []string
	for name, value := range diff.Source.Row {
		if diff.Target.Row[name] != value {
			unlike = append(unlike, name)
		}
	}
	slices.Sort(unlike)
	return unlike
}

// TestPartialJSON lets the source's MySQL write only the changed parts of JSON values to its binary log. VReplication applies them to whatever the
// target has, so that equal digests at unlike positions would prove nothing: the table is compared in a fence.
func TestPartialJSON(t *testing.T) {
	b := testBed(t)
	ctx := longContext(t)
	w, one := b.moveToOne(t, ctx, "partial", "parts", "create table parts (id int primary key, j json)",
		`insert into parts select n, json_object('list', json_array(1, 2, 3), 'text', repeat('x', 100)) from numbers`)
	require.NoError(t, b.source().Exec(ctx, "set global binlog_row_value_options = 'PARTIAL_JSON'"))
	defer func() {
		assert.NoError(t, b.source().Exec(context.WithoutCancel(ctx), "set global binlog_row_value_options = ''"))
	}()
	const remove = "update parts set j = json_remove(j, '$.list[0]') where id "
	require.NoError(t, b.source().Exec(ctx, "set binlog_row_value_options = 'PARTIAL_JSON'", remove+"<= 5"))
	require.NoError(t, one.Exec(ctx, remove+"> 997"))
	s, err := w.Diff(ctx)
	require.NoError(t, err)
	assert.Equal(t, counts("parts", 997, 3, 0, 0), s.TableSummaryMap["parts"])
	lines, err := one.GrepLogs(regexp.MustCompile("table parts is compared row by row: a source writes only parts of column j"))
	require.NoError(t, err)
	assert.NotEmpty(t, lines)
}
