// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package endtoend

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/vttablet-ext/vttablet-ext/test/endtoend/cluster"
)

// fault is one row of a target that is not as replication left it. Beside the target's database its mysqld has
// two more with the same tables: kept has the row as it must be, stale the row as it was before the source's
// last update of it. Nothing of this goes into a binary log: a fault stays on its mysqld.
type fault struct {
	kind   faultKind
	s      *subject
	target *cluster.Tablet
	// ident is the row, moved where it or its copy has gone to.
	ident, moved int64
	// damage is the assignment of a damaged value.
	damage string
	// reversed says that a lost update is put right after a time, by the test.
	reversed bool
}

type faultKind string

const (
	lostUpdate   faultKind = "lost update"
	damagedValue faultKind = "damaged value"
	doubledRow   faultKind = "doubled row"
	wrongKey     faultKind = "wrong key"
	wrongCase    faultKind = "key of wrong case"
	deletedRow   faultKind = "deleted row"
	strayRow     faultKind = "stray row"
)

// found are the rows of a table that a vdiff reports.
type found struct{ mismatched, extraSource, extraTarget int64 }

func (f found) plus(g found) found {
	return found{f.mismatched + g.mismatched, f.extraSource + g.extraSource, f.extraTarget + g.extraTarget}
}

// within says whether each count is between those of least and most.
func (f found) within(least, most found) bool {
	return f.mismatched >= least.mismatched && f.mismatched <= most.mismatched &&
		f.extraSource >= least.extraSource && f.extraSource <= most.extraSource &&
		f.extraTarget >= least.extraTarget && f.extraTarget <= most.extraTarget
}

// found is what a vdiff must report of the fault. A row of a table without a key is all key.
func (f *fault) found() found {
	switch f.kind {
	case doubledRow, strayRow:
		return found{extraTarget: 1}
	case deletedRow:
		return found{extraSource: 1}
	case wrongKey:
		return found{extraSource: 1, extraTarget: 1}
	}
	if f.s.keyless {
		return found{extraSource: 1, extraTarget: 1}
	}
	return found{mismatched: 1}
}

func (f *fault) String() string {
	text := fmt.Sprintf("%s of %s %s=%d on %s", f.kind, f.s.name, f.s.ident, f.ident, f.target.Alias)
	if f.moved != 0 {
		text += fmt.Sprintf(" (to %d)", f.moved)
	}
	if f.damage != "" {
		text += " (" + f.damage + ")"
	}
	if f.reversed {
		text += " (reversed)"
	}
	return text
}

// newFault chooses a kind, and what it does.
func newFault(r *rand.Rand, s *subject, target *cluster.Tablet, ident, moved int64) *fault {
	kinds := []faultKind{lostUpdate, lostUpdate, damagedValue, damagedValue, wrongKey, deletedRow, strayRow}
	if s.keyless {
		kinds = append(kinds, doubledRow, doubledRow)
	}
	if s.textKey != "" {
		kinds = append(kinds, wrongCase, wrongCase)
	}
	f := &fault{kind: pick(r, kinds), s: s, target: target, ident: ident}
	switch f.kind {
	case lostUpdate:
		f.reversed = r.IntN(4) == 0
	case wrongKey, strayRow:
		f.moved = moved
	case damagedValue:
		c := pick(r, s.columns)
		f.damage = c.name + " = " + c.gen(r)
	}
	return f
}

// prepare is called before the row is touched: it keeps the row. For a lost update it has the source update it once more,
// and waits until the update is on the target.
func (f *fault) prepare(ctx context.Context, source *cluster.Tablet, r *rand.Rand) error {
	if f.kind != lostUpdate {
		return f.exec(ctx, f.keep("kept"))
	}
	if err := f.exec(ctx, f.keep("stale")); err != nil {
		return err
	}
	where := f.where(f.ident)
	c := pick(r, f.s.columns) // none that was added later: see stored
	if err := source.Exec(ctx, fmt.Sprintf("update %s set rev = rev + 1, %s = %s where %s", f.s.name, c.name, c.gen(r), where)); err != nil {
		return err
	}
	newer := fmt.Sprintf("select count(*) from %s t join stale.%[1]s s on t.%[2]s = s.%[2]s and t.rev = s.rev + 1 where t.%[3]s", f.s.name, f.s.ident, where)
	err := cluster.WaitFor(ctx, "an update to reach "+f.target.Alias, 20*time.Millisecond, func(ctx context.Context) (bool, error) {
		result, err := f.target.Query(ctx, newer)
		return err == nil && result.Rows[0][0].ToString() == "1", err
	})
	if err != nil {
		return err
	}
	return f.exec(ctx, f.keep("kept"))
}

func (f *fault) keep(db string) string {
	return fmt.Sprintf("insert into %s.%s (%s) select %[3]s from %[4]s.%[2]s where %[5]s", db, f.s.name, f.stored(), f.target.DBName(), f.where(f.ident))
}

// put is the statement that inserts the row as a database has it.
func (f *fault) put(db string) string {
	return fmt.Sprintf("insert into %s (%s) select %[2]s from %[3]s.%[1]s where %[4]s", f.s.name, f.stored(), db, f.where(f.ident))
}

func (f *fault) remove(ident int64) string {
	return "delete from " + f.s.name + " where " + f.where(ident)
}

func (f *fault) where(ident int64) string { return fmt.Sprintf("%s = %d", f.s.ident, ident) }

// stored are the columns that take a value. Those added since the test began keep their default in the rows of faults.
func (f *fault) stored() string {
	switch f.s.name {
	case "s_big":
		return "id, rev, v, n"
	case "s_pair":
		return "name, num, rev, v, n"
	case "s_none":
		return "a, b, c, rev"
	}
	return kindNames + ", hidden"
}

// plant makes the fault.
func (f *fault) plant(ctx context.Context) error {
	here := f.where(f.ident)
	switch f.kind {
	case lostUpdate:
		return f.exec(ctx, f.remove(f.ident), f.put("stale"))
	case deletedRow:
		return f.exec(ctx, f.remove(f.ident))
	case doubledRow:
		return f.exec(ctx, f.put("kept"))
	case wrongKey:
		return f.exec(ctx, fmt.Sprintf("update %s set %s = %d where %s", f.s.name, f.s.ident, f.moved, here))
	case wrongCase:
		key := f.s.textKey
		return f.exec(ctx, fmt.Sprintf("update %s set %s = if(binary %[2]s = binary upper(%[2]s), lower(%[2]s), upper(%[2]s)) where %[3]s", f.s.name, key, here))
	case strayRow:
		columns := strings.Split(f.stored(), ", ")
		values := append([]string(nil), columns...)
		for i := range values {
			if values[i] == f.s.ident {
				values[i] = fmt.Sprint(f.moved)
			}
		}
		return f.exec(ctx, fmt.Sprintf("insert into %s (%s) select %s from kept.%[1]s where %[4]s", f.s.name, f.stored(), strings.Join(values, ", "), here))
	case damagedValue:
		// A value that happens to be the same one is no damage: then the row gets NULL, or another rev in the table without NULLs.
		name, _, _ := strings.Cut(f.damage, " = ")
		toggle := name + " = null"
		if f.s.keyless {
			toggle = "rev = rev + 1"
		}
		same := fmt.Sprintf("%s and exists (select 1 from kept.%s k where k.%s = t.%[3]s and cast(k.%[4]s as binary) <=> cast(t.%[4]s as binary))", here, f.s.name, f.s.ident, name)
		return f.exec(ctx, "update "+f.s.name+" t set "+f.damage+" where "+here, "update "+f.s.name+" t set "+toggle+" where "+same)
	}
	return fmt.Errorf("no fault %q", f.kind)
}

// repair makes the row what it must be, and forgets it.
func (f *fault) repair(ctx context.Context) error {
	statements := []string{f.remove(f.ident)}
	if f.moved != 0 {
		statements = append(statements, f.remove(f.moved))
	}
	statements = append(statements, f.put("kept"))
	for _, db := range []string{"kept", "stale"} {
		statements = append(statements, "delete from "+db+"."+f.s.name+" where "+f.where(f.ident))
	}
	return f.exec(ctx, statements...)
}

// reverse puts a lost update right.
func (f *fault) reverse(ctx context.Context) error {
	return f.exec(ctx, f.remove(f.ident), f.put("kept"))
}

// exec runs statements in one transaction on the target, outside of its binary log.
func (f *fault) exec(ctx context.Context, statements ...string) error {
	conn, err := f.target.Conn(ctx)
	if err != nil {
		return fmt.Errorf("%v: %w", f, err)
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, conn.Close)()
	if _, err := conn.ExecuteFetch("set session sql_log_bin = 0", 1, false); err != nil {
		return fmt.Errorf("%v: %w", f, err)
	}
	if err := transact(conn, append(append([]string{"begin"}, statements...), "commit")); err != nil {
		return fmt.Errorf("%v: %w", f, errors.Join(err, ctx.Err()))
	}
	return nil
}
