// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/vttablet-ext/vttablet-ext/test/endtoend/load"
)

// Keyspaces: src and one have one shard, two has two.
const (
	src = "src"
	one = "one"
	two = "two"
)

const (
	defaultRuns = 3
	defaultRows = 3_000_000
	// rowsPerWide is how many rows of the big table there are for one of the wide table: 2,000 by default.
	rowsPerWide = 1500
	manyTables  = 100
	manyRows    = 500
	// busyWrites is the rate of row changes under which the big table is compared.
	busyWrites = 500
	// churned is what an update does to a row of the big table.
	churned = "a = floor(rand() * 1000003), price = price + 0.01, hash = sha2(rand(), 256), note = concat('changed ', rand())"
)

// scenario is one comparison: tables that a workflow has copied from one keyspace to another.
type scenario struct {
	name     string
	what     string // for people
	from, to string // keyspaces
	tables   []load.Table
	rows     int64 // in each table, all shards together
	floor    bool  // also time CHECKSUM TABLE on both sides
	// writes is how many rows of the table are changed per second meanwhile.
	writes int
	// stockSource runs upstream's vttablet on the source, for either engine.
	stockSource bool
	limits      limits
}

func (s scenario) totalRows() int64 { return s.rows * int64(len(s.tables)) }

func (s scenario) tableNames() string {
	names := make([]string, len(s.tables))
	for i, t := range s.tables {
		names[i] = t.Name
	}
	return strings.Join(names, ",")
}

// bigTable has rows of about 205 bytes.
func bigTable(name string) load.Table {
	return load.Table{
		Name:     name,
		Columns:  "id bigint not null primary key, a int, price decimal(12,2), made datetime, hash varchar(64), note varchar(200)",
		Values:   "n, n * 7919 % 1000003, n % 100000 / 100, '2026-01-01' + interval n second, sha2(n, 256), rpad(concat('row ', n, ' '), 112, 'abcdefghij')",
		NoBinlog: true,
	}
}

// wideTable has rows of one MiB.
func wideTable(name string) load.Table {
	return load.Table{
		Name:      name,
		Columns:   "id bigint not null primary key, data longblob",
		Values:    "n, repeat(sha2(n, 256), 16384)",
		PerInsert: 16,
		NoBinlog:  true,
	}
}

func smallTables(count int) []load.Table {
	tables := make([]load.Table, count)
	for i := range tables {
		tables[i] = load.Table{
			Name:     fmt.Sprintf("small_%03d", i),
			Columns:  "id bigint not null primary key, a int, hash varchar(64)",
			Values:   fmt.Sprintf("n, n * %d, sha2(n, 256)", i+1),
			NoBinlog: true,
		}
	}
	return tables
}

// allScenarios are in the order in which they run.
func allScenarios(rows int64) []scenario {
	return []scenario{
		{name: "big", what: "one table, unsharded to unsharded", from: src, to: one, tables: []load.Table{bigTable("big")}, rows: rows, floor: true, limits: limits{ratio: 4.5, floors: 2}},
		{name: "many", what: "many small tables, unsharded to unsharded", from: src, to: one, tables: smallTables(manyTables), rows: manyRows, limits: limits{ratio: 25}},
		{name: "shard", what: "one table, from 1 to 2 shards", from: src, to: two, tables: []load.Table{bigTable("big")}, rows: rows, limits: limits{ratio: 3.5}},
		{name: "merge", what: "one table, from 2 shards to 1", from: two, to: one, tables: []load.Table{bigTable("merged")}, rows: rows, limits: limits{ratio: 3.5}},
		{name: "wide", what: "rows of 1 MiB, unsharded to unsharded", from: src, to: one, tables: []load.Table{wideTable("wide")}, rows: max(1, rows/rowsPerWide), limits: limits{ratio: 3, overIdleMB: 64}},
		{name: "busy", what: "big while its rows are changed", from: src, to: one, tables: []load.Table{bigTable("big")}, rows: rows, writes: busyWrites, limits: limits{stopped: 2}},
		{name: "stock-source", what: "big from a stock vttablet", from: src, to: one, tables: []load.Table{bigTable("big")}, rows: rows, stockSource: true, limits: limits{ratio: 1.5}},
	}
}

// config is what the environment asks for.
type config struct {
	scenarios []scenario
	runs      int
	rows      int64
}

func configFromEnv() (config, error) {
	runs, err := positive("BENCH_RUNS", defaultRuns)
	if err != nil {
		return config{}, err
	}
	rows, err := positive("BENCH_ROWS", defaultRows)
	if err != nil {
		return config{}, err
	}
	cfg := config{runs: int(runs), rows: rows}
	all := allScenarios(rows)
	chosen := map[string]bool{}
	for name := range strings.SplitSeq(os.Getenv("BENCH_SCENARIOS"), ",") {
		if name = strings.TrimSpace(name); name != "" {
			chosen[name] = true
		}
	}
	var names []string
	for _, s := range all {
		names = append(names, s.name)
		if len(chosen) == 0 || chosen[s.name] {
			cfg.scenarios = append(cfg.scenarios, s)
		}
	}
	if len(chosen) > 0 && len(cfg.scenarios) != len(chosen) {
		return config{}, errors.New("BENCH_SCENARIOS may name: " + strings.Join(names, ","))
	}
	return cfg, nil
}

// positive reads a whole number of at least one from the environment.
func positive(name string, fallback int64) (int64, error) {
	text := os.Getenv(name)
	if text == "" {
		return fallback, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 1 {
		return 0, fmt.Errorf("%s must be a number of 1 or more, not %q", name, text)
	}
	return n, nil
}
