// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"vitess.io/vitess/go/vt/vttablet/tabletmanager/vdiff"

	"github.com/vttablet-ext/vttablet-ext/test/endtoend/cluster"
	"github.com/vttablet-ext/vttablet-ext/test/endtoend/load"
)

// victimShard is where the vttablet is killed.
const victimShard = "-80"

// A diff that is over before it is seen in its middle is done again with so many times the rows, and again, so often.
const (
	growBy   = 3
	growMost = 3
)

// errTooQuick says that the diff of the victim's table was over before it was seen in its middle.
var errTooQuick = errors.New("the diff was over before it could be caught in its middle")

// checkpoint is what _vt says of the table that the diff is caught in, on the victim's shard.
type checkpoint struct {
	state, tableState string
	tableRows         int64 // compared so far
	allRows           int64 // of the table on the shard, where that is known
}

// midway says that the table has been begun and is not done.
func (c checkpoint) midway(rows int64) bool {
	return c.state == "started" && c.tableState != "completed" && c.tableRows > 0 && c.tableRows < rows
}

func (d *demo) diffThroughKill(ctx context.Context) error {
	victim := d.c.Primary(dst, victimShard)
	uuid, at, err := d.catch(ctx, victim)
	if err != nil {
		return err
	}
	rows := at.allRows
	started := time.Now()
	if err := victim.Start(ctx); err != nil {
		return err
	}
	d.out.say("its vttablet is started again; nothing else is done")
	least, err := d.watchResume(ctx, victim, uuid, at)
	if err != nil {
		return err
	}
	d.out.good("the diff went on by itself: %s was at row %s of %s when it was seen again", ordersTable, count(least), count(rows))
	summary, err := d.waitVDiff(ctx, uuid)
	if err != nil {
		return err
	}
	if err := checkSame(summary, d.tables); err != nil {
		return err
	}
	if err := errors.Join(d.flow().WaitRunning(ctx), d.noPanics()); err != nil {
		return err
	}
	d.out.good("completed %v after the restart, each row compared once and equal; no panic; the workflow runs as before", round(time.Since(started)))
	d.showTables(summary)
	d.findings = append(d.findings,
		fmt.Sprintf("killed with SIGKILL at row %s of %s of table %s on shard %s: resumed by itself, %s rows equal, 0 different",
			count(at.tableRows), count(rows), ordersTable, victimShard, count(total(d.tables))))
	return nil
}

// catch starts a vdiff and kills the victim's vttablet in the middle of it. When a diff is too quick, the table gets more rows.
func (d *demo) catch(ctx context.Context, victim *cluster.Tablet) (uuid string, at checkpoint, err error) {
	for grown := 0; ; grown++ {
		rows, err := rowsOn(ctx, victim, d.tables[:1])
		if err != nil {
			return "", at, err
		}
		if uuid, err = d.createVDiff(ctx); err != nil {
			return "", at, err
		}
		at, err = d.killMidway(ctx, victim, uuid, rows)
		if err == nil || !errors.Is(err, errTooQuick) || grown == growMost {
			return uuid, at, err
		}
		if err := d.grow(ctx, uuid); err != nil {
			return "", at, err
		}
	}
}

// grow lets a vdiff complete, adds rows to the table and has them all copied anew.
func (d *demo) grow(ctx context.Context, uuid string) error {
	if _, err := d.waitVDiff(ctx, uuid); err != nil {
		return err
	}
	t := &d.tables[0]
	more := load.Sequence{First: t.rows + 1, Last: t.rows * growBy}
	d.out.say("%v: %s gets %s more rows", errTooQuick, t.Name, count(more.Len()))
	if err := d.flow().Cancel(ctx, "MoveTables"); err != nil {
		return err
	}
	err := load.Append(ctx, d.c.Primary(src, "0"), t.Table, more, func(rows int64) {
		d.out.progress(rows, more.Len(), "rows are loaded")
	})
	if err != nil {
		return err
	}
	t.rows = more.Last
	return d.moveTables(ctx)
}

// killMidway kills the victim's vttablet when the table has been begun there and is not done, and returns what _vt says after
// the kill. Its mysqld lives on, so that it can be asked.
func (d *demo) killMidway(ctx context.Context, victim *cluster.Tablet, uuid string, rows int64) (checkpoint, error) {
	err := cluster.WaitFor(ctx, "the diff to be in the middle of "+ordersTable, 10*time.Millisecond, func(ctx context.Context) (bool, error) {
		c, err := readCheckpoint(ctx, victim, uuid)
		if err != nil {
			return false, err
		}
		d.out.progress(c.tableRows, rows, fmt.Sprintf("rows of %s are compared on shard %s", ordersTable, victimShard))
		if c.state == string(vdiff.ErrorState) {
			return false, errors.New("it is in state error")
		}
		if c.tableState == "completed" || c.state == "completed" {
			return false, errTooQuick
		}
		return c.midway(rows), nil
	})
	if err != nil {
		return checkpoint{}, err
	}
	victim.Kill()
	c, err := readCheckpoint(ctx, victim, uuid)
	if err != nil {
		return checkpoint{}, err
	}
	d.out.say("kill -9 of the vttablet of %s, the primary of %s/%s", victim.Alias, dst, victimShard)
	if !c.midway(rows) { // it was quicker than the kill
		if err := victim.Start(ctx); err != nil {
			return checkpoint{}, err
		}
		if err := victim.WaitServing(ctx); err != nil {
			return checkpoint{}, err
		}
		return checkpoint{}, errTooQuick
	}
	c.allRows = rows
	d.out.good("killed in the middle: the vdiff is %s there, %s rows of %s compared in %s", c.state, count(c.tableRows), count(rows), ordersTable)
	return c, nil
}

// watchResume waits until the restarted tablet writes progress of the vdiff. It returns the least count of compared rows that
// was seen until then, which must not be below the one at the kill: the diff goes on where it was and does not begin anew.
func (d *demo) watchResume(ctx context.Context, victim *cluster.Tablet, uuid string, at checkpoint) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	least := at.tableRows
	err := cluster.WaitFor(ctx, "the diff to go on", 10*time.Millisecond, func(ctx context.Context) (bool, error) {
		c, err := readCheckpoint(ctx, victim, uuid)
		if err != nil {
			return false, err
		}
		d.out.progress(c.tableRows, at.allRows, fmt.Sprintf("rows of %s are compared on shard %s", ordersTable, victimShard))
		least = min(least, c.tableRows)
		return c.tableRows > at.tableRows || c.tableState == "completed", nil
	})
	if err == nil && least < at.tableRows {
		err = fmt.Errorf("%s had %d rows compared when it was killed and %d later: it began anew", ordersTable, at.tableRows, least)
	}
	return least, err
}

// readCheckpoint asks the tablet's mysqld. Before the vdiff has its tables, all is zero.
func readCheckpoint(ctx context.Context, t *cluster.Tablet, uuid string) (c checkpoint, err error) {
	result, err := t.Query(ctx, fmt.Sprintf(`select v.state, coalesce(t.state, ''), coalesce(t.rows_compared, 0)
		from _vt.vdiff v left join _vt.vdiff_table t on t.vdiff_id = v.id and t.table_name = '%s'
		where v.vdiff_uuid = '%s' and v.db_name = '%s'`, ordersTable, uuid, t.DBName()))
	if err != nil || len(result.Rows) == 0 {
		return c, err
	}
	row := result.Rows[0]
	c.state, c.tableState = row[0].ToString(), row[1].ToString()
	c.tableRows, err = row[2].ToInt64()
	return c, err
}
