// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package main

import (
	"github.com/vttablet-ext/vttablet-ext/test/endtoend/load"
)

// table is a table of the demo.
type table struct {
	load.Table
	what string
	rows int64
}

// The table that the diff is caught in, and in which rows are changed.
const ordersTable = "orders"

// tables are three tables of unlike shape with so many rows together.
func tables(rows int64) []table {
	items, events := rows/5, rows/10
	return []table{
		{
			what: "a bigint key, rows of about 200 bytes",
			rows: rows - items - events,
			Table: load.Table{
				Name:    ordersTable,
				Columns: "id bigint not null primary key, customer int not null, price decimal(12,2), made datetime, digest varchar(64), note varchar(200)",
				Values:  "n, n * 7919 % 1000003, n % 100000 / 100, '2026-01-01' + interval n second, sha2(n, 256), rpad(concat('order ', n, ' '), 108, 'abcdefghij')",
			},
		},
		{
			what: "a composite key with text",
			rows: items,
			Table: load.Table{
				Name:    "items",
				Columns: "sku varchar(32) not null, version int not null, title varchar(80), weight double, primary key (sku, version)",
				Values:  "concat(if(n % 2, 'Sku-', 'sku-'), n div 4), n % 4, concat('Größe ', n, ' – ', left(sha2(n, 256), 20)), n / 7",
			},
		},
		{
			what: "no primary key",
			rows: events,
			Table: load.Table{
				Name:    "events",
				Columns: "customer bigint not null, kind enum('view', 'click', 'buy') not null, at datetime(6) not null, detail varchar(60)",
				Values:  "n % 5000, elt(1 + n % 3, 'view', 'click', 'buy'), '2026-01-01' + interval n * 1001 microsecond, concat('event ', n div 2)",
			},
		},
	}
}

// vschema is how dst is sharded.
const vschema = `{"sharded": true,
	"vindexes": {"hash": {"type": "hash"}, "xxhash": {"type": "xxhash"}},
	"tables": {
		"orders": {"column_vindexes": [{"column": "id", "name": "hash"}]},
		"items": {"column_vindexes": [{"column": "sku", "name": "xxhash"}]},
		"events": {"column_vindexes": [{"column": "customer", "name": "hash"}]}}}`

func total(tables []table) int64 {
	var sum int64
	for _, t := range tables {
		sum += t.rows
	}
	return sum
}
