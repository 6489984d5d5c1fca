// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"vitess.io/vitess/go/vt/vtctl/workflow"
	"vitess.io/vitess/go/vt/vttablet/tabletmanager/vdiff"
)

// tamperedShard is where rows are changed: not the shard whose tablet was killed.
const tamperedShard = "80-"

// edits are the ids of the rows that are not as replication left them.
type edits struct {
	changed, deleted, inserted string
}

// tamper writes straight to the target's mysqld, as a bug or an operator's slip would.
func (d *demo) tamper(ctx context.Context) error {
	target := d.c.Primary(dst, tamperedShard)
	result, err := target.Query(ctx, fmt.Sprintf("select id from %s where id > %d order by id limit 2", ordersTable, d.tables[0].rows/2))
	if err != nil {
		return err
	}
	if len(result.Rows) != 2 {
		return fmt.Errorf("%s has too few rows on %s", ordersTable, target.Alias)
	}
	d.edits = edits{
		changed:  result.Rows[0][0].ToString(),
		deleted:  result.Rows[1][0].ToString(),
		inserted: fmt.Sprint(d.tables[0].rows + 1),
	}
	for _, sql := range []string{
		"update " + ordersTable + " set price = price + 0.01 where id = " + d.edits.changed,
		"delete from " + ordersTable + " where id = " + d.edits.deleted,
		"insert into " + ordersTable + " values (" + d.edits.inserted + ", 7, 9.99, '2026-02-03 04:05:06', 'none', 'nobody ordered this')",
	} {
		d.out.command("mysql --socket", target.Socket(), "-e", `"`+sql+`"`)
		if err := target.Exec(ctx, sql); err != nil {
			return err
		}
	}
	return nil
}

func (d *demo) diffTampered(ctx context.Context) error {
	uuid, err := d.createVDiff(ctx)
	if err != nil {
		return err
	}
	s, err := d.waitVDiff(ctx, uuid)
	if err != nil {
		return err
	}
	d.showTables(s)
	rows := d.tables[0].rows
	err = checkVerdict(s, d.tables, map[string]counts{
		// All rows of the source, and the one that only the target has. The changed and the deleted one are not equal.
		ordersTable: {compared: rows + 1, matching: rows - 2, mismatched: 1, extraSource: 1, extraTarget: 1},
	})
	if err != nil {
		return err
	}
	if err := d.showSamples(s); err != nil {
		return err
	}
	if err := errors.Join(d.flow().WaitRunning(ctx), d.noPanics()); err != nil {
		return err
	}
	d.out.good("exactly the three rows that were touched, and no other of %s", count(total(d.tables)))
	d.findings = append(d.findings, fmt.Sprintf("found: 1 row mismatched (id %s), 1 extra on the source (id %s), 1 extra on the target (id %s)",
		d.edits.changed, d.edits.deleted, d.edits.inserted))
	return nil
}

// showSamples prints the rows of the report, and returns an error unless they are the three that were touched.
func (d *demo) showSamples(s *workflow.Summary) error {
	r := s.Reports[ordersTable][tamperedShard]
	if len(r.MismatchedRowsDiffs) != 1 || len(r.ExtraRowsSourceDiffs) != 1 || len(r.ExtraRowsTargetDiffs) != 1 {
		return fmt.Errorf("the report of shard %s shows %d mismatched rows, %d extra on the source, %d extra on the target, and not one of each",
			tamperedShard, len(r.MismatchedRowsDiffs), len(r.ExtraRowsSourceDiffs), len(r.ExtraRowsTargetDiffs))
	}
	mismatch := r.MismatchedRowsDiffs[0]
	for _, sample := range []struct {
		what string
		row  *vdiff.RowDiff
		id   string
	}{
		{"mismatched, source", mismatch.Source, d.edits.changed},
		{"mismatched, target", mismatch.Target, d.edits.changed},
		{"extra on the source", r.ExtraRowsSourceDiffs[0], d.edits.deleted},
		{"extra on the target", r.ExtraRowsTargetDiffs[0], d.edits.inserted},
	} {
		if sample.row == nil || sample.row.Row["id"] != sample.id {
			return fmt.Errorf("the report shows as %s another row than id %s: %+v", sample.what, sample.id, sample.row)
		}
		d.out.say("%-20s %s", sample.what, rowText(sample.row.Row))
	}
	if mismatch.Source.Row["price"] == mismatch.Target.Row["price"] {
		return fmt.Errorf("the report shows the price %q on both sides", mismatch.Source.Row["price"])
	}
	return nil
}

// rowText writes a row on one line: the key first, long values cut.
func rowText(row map[string]string) string {
	names := make([]string, 0, len(row))
	for name := range row {
		if name != "id" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	var b strings.Builder
	fmt.Fprintf(&b, "id=%s", row["id"])
	for _, name := range names {
		value := row[name]
		if len(value) > 20 {
			value = strings.ToValidUTF8(value[:17], "") + "..."
		}
		fmt.Fprintf(&b, " %s=%s", name, value)
	}
	return b.String()
}
