// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package load

import (
	"context"
	"errors"
	"fmt"

	"github.com/vttablet-ext/vttablet-ext/test/endtoend/cluster"
)

// Table is a table and how its rows are made.
type Table struct {
	Name string
	// Columns is what stands between the parentheses of CREATE TABLE.
	Columns string
	// Values is the select list, with n as the number of the row.
	Values string
	// PerInsert is how many rows one statement inserts; 20,000 when zero.
	PerInsert int64
	// NoBinlog keeps the rows (not the table) out of the binary log.
	NoBinlog bool
}

// Sequence is the numbers First, First+Step, ... up to Last; a Step of zero is one.
type Sequence struct {
	First, Last, Step int64
}

// Len is how many numbers there are.
func (s Sequence) Len() int64 {
	if s.Last < s.First {
		return 0
	}
	return (s.Last-s.First)/s.step() + 1
}

func (s Sequence) step() int64 { return max(s.Step, 1) }

// Fill creates the table on a primary and inserts one row for each number, as Append does.
func Fill(ctx context.Context, tablet *cluster.Tablet, table Table, seq Sequence, progress func(rows int64)) error {
	if err := tablet.Exec(ctx, "create table "+table.Name+" ("+table.Columns+")"); err != nil {
		return fmt.Errorf("load %s: %w", table.Name, err)
	}
	return Append(ctx, tablet, table, seq, progress)
}

// Append inserts one row for each number. progress, if not nil, is called after each statement with the count of rows so far.
// At the end the table's statistics are brought up to date.
func Append(ctx context.Context, tablet *cluster.Tablet, table Table, seq Sequence, progress func(rows int64)) error {
	conn, err := tablet.Conn(ctx)
	if err != nil {
		return fmt.Errorf("load %s: %w", table.Name, err)
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, conn.Close)()
	exec := func(sql string) error {
		if _, err := conn.ExecuteFetch(sql, 10, false); err != nil {
			return fmt.Errorf("load %s: %w", table.Name, errors.Join(err, ctx.Err()))
		}
		return nil
	}
	if err := exec("set session cte_max_recursion_depth = 10000000"); err != nil {
		return err
	}
	if table.NoBinlog {
		if err := exec("set session sql_log_bin = 0"); err != nil {
			return err
		}
	}
	for _, part := range seq.split(table.perInsert()) {
		if err := exec(table.insert(part)); err != nil {
			return err
		}
		if progress != nil {
			progress((part.Last-seq.First)/seq.step() + 1)
		}
	}
	return exec("analyze local table " + table.Name)
}

func (t Table) perInsert() int64 {
	if t.PerInsert > 0 {
		return t.PerInsert
	}
	return 20_000
}

// insert is the statement for the rows of a sequence.
func (t Table) insert(s Sequence) string {
	return fmt.Sprintf("insert into %s with recursive seq (n) as (select %d union all select n + %d from seq where n + %[3]d <= %[4]d) select %[5]s from seq",
		t.Name, s.First, s.step(), s.Last, t.Values)
}

// split cuts a sequence into parts of at most so many numbers.
func (s Sequence) split(most int64) []Sequence {
	var parts []Sequence
	for first := s.First; first <= s.Last; first += most * s.step() {
		last := min(s.Last, first+(most-1)*s.step())
		parts = append(parts, Sequence{First: first, Last: last, Step: s.Step})
	}
	return parts
}
