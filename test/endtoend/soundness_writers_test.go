// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package endtoend

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"vitess.io/vitess/go/mysql"
	"vitess.io/vitess/go/mysql/sqlerror"

	"github.com/vttablet-ext/vttablet-ext/test/endtoend/cluster"
)

// writeEvery is the pause of a writer between two transactions.
const writeEvery = 20 * time.Millisecond

// write runs random transactions on the source until the context ends. Rows of the faults are not touched.
func write(ctx context.Context, source *cluster.Tablet, subjects []*subject, r *rand.Rand) error {
	conn, err := source.Conn(ctx)
	if err != nil {
		return fmt.Errorf("writer: %w", errors.Join(err, ctx.Err()))
	}
	defer conn.Close()
	tick := time.NewTicker(writeEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		s := pick(r, subjects)
		statements := pick(r, s.writes)(s, r)
		if len(statements) > 1 {
			end := "commit"
			if r.IntN(8) == 0 {
				end = "rollback"
			}
			statements = append(append([]string{"begin"}, statements...), end)
		}
		if err := transact(conn, statements); err != nil {
			return fmt.Errorf("writer: %w", err)
		}
	}
}

// transact runs statements on a connection, again from the first when another transaction was in the way.
func transact(conn *mysql.Conn, statements []string) error {
	for try := 0; ; try++ {
		err := func() error {
			for _, sql := range statements {
				if _, err := conn.ExecuteFetch(sql, 1, false); err != nil {
					return err
				}
			}
			return nil
		}()
		if err == nil {
			return nil
		}
		var sqlErr *sqlerror.SQLError
		if !errors.As(err, &sqlErr) || try > 20 || sqlErr.Number() != sqlerror.ERLockDeadlock && sqlErr.Number() != sqlerror.ERLockWaitTimeout {
			return err
		}
		if _, err := conn.ExecuteFetch("rollback", 1, false); err != nil {
			return err
		}
	}
}

func upsert(s *subject, r *rand.Rand) []string {
	set := s.assignments(r, false)
	return []string{fmt.Sprintf("insert into %s set %s = %d, %s on duplicate key update %s", s.name, s.ident, s.free(r), set, set)}
}

func upsertNamed(s *subject, r *rand.Rand) []string {
	set := s.assignments(r, false)
	return []string{fmt.Sprintf("insert into %s set name = %s, num = %d, %s on duplicate key update %s", s.name, word(r), s.free(r), set, set)}
}

func updateOne(s *subject, r *rand.Rand) []string {
	return []string{fmt.Sprintf("update %s set %s where %s = %d", s.name, s.assignments(r, false), s.ident, s.free(r))}
}

func updateAll(s *subject, r *rand.Rand) []string {
	return []string{fmt.Sprintf("update %s set %s where %s = %d", s.name, s.assignments(r, true), s.ident, s.free(r))}
}

func updateRange(s *subject, r *rand.Rand) []string {
	return []string{fmt.Sprintf("update %s set %s where %s", s.name, s.assignments(r, false), s.span(r, 20))}
}

func deleteRange(s *subject, r *rand.Rand) []string {
	return []string{fmt.Sprintf("delete from %s where %s", s.name, s.span(r, 3))}
}

// changeIdentity gives a row another key, often one that belongs to another shard of the target.
func changeIdentity(s *subject, r *rand.Rand) []string {
	return []string{fmt.Sprintf("update ignore %s set %s = %d where %s = %d", s.name, s.ident, s.free(r), s.ident, s.free(r))}
}

func changeName(s *subject, r *rand.Rand) []string {
	return []string{fmt.Sprintf("update ignore %s set name = %s where num = %d", s.name, word(r), s.free(r))}
}

// changeCase gives a row a key that is equal to what it was under its collation.
func changeCase(s *subject, r *rand.Rand) []string {
	return []string{fmt.Sprintf("update %s set name = %s(name) where num = %d", s.name, pick(r, []string{"upper", "lower"}), s.free(r))}
}

// bigTransaction is mostly a single row, too: big ones would not let the streams catch up.
func bigTransaction(s *subject, r *rand.Rand) []string {
	if r.IntN(10) > 0 {
		return updateOne(s, r)
	}
	statements := []string{fmt.Sprintf("update %s set %s where %s", s.name, s.assignments(r, false), s.span(r, s.rows/10))}
	for range 20 {
		statements = append(statements, updateOne(s, r)...)
		statements = append(statements, upsert(s, r)...)
		statements = append(statements, changeIdentity(s, r)...)
	}
	return append(statements, deleteRange(s, r)...)
}

func insertUnkeyed(s *subject, r *rand.Rand) []string {
	var statements []string
	for range 1 + r.IntN(3)*r.IntN(10) {
		statements = append(statements, fmt.Sprintf("insert into %s set a = %d, %s", s.name, s.single(r), s.assignments(r, true)))
	}
	return statements
}

// updateUnkeyed and the others below change one row at a time, lest two become equal.
func updateUnkeyed(s *subject, r *rand.Rand) []string {
	return []string{fmt.Sprintf("update %s set %s where a = %d limit 1", s.name, s.assignments(r, false), s.single(r))}
}

func deleteUnkeyed(s *subject, r *rand.Rand) []string {
	var statements []string
	for range 1 + r.IntN(3)*r.IntN(10) {
		statements = append(statements, fmt.Sprintf("delete from %s where a = %d limit 1", s.name, s.single(r)))
	}
	return statements
}

func moveUnkeyed(s *subject, r *rand.Rand) []string {
	return []string{fmt.Sprintf("update %s set a = %d where a = %d limit 1", s.name, s.single(r), s.single(r))}
}

func insertTwins(s *subject, r *rand.Rand) []string {
	row := fmt.Sprintf("insert into %s set a = %d, %s", s.name, s.twin(r), s.assignments(r, true))
	statements := []string{row}
	for range 1 + r.IntN(3) {
		statements = append(statements, row)
	}
	return statements
}

// doubleTwins adds rows that are equal to those of an identity.
func doubleTwins(s *subject, r *rand.Rand) []string {
	return []string{fmt.Sprintf("insert into %s (a, b, c, rev) select a, b, c, rev from %[1]s where a = %d limit %d", s.name, s.twin(r), 1+r.IntN(2))}
}

func updateTwins(s *subject, r *rand.Rand) []string {
	return []string{fmt.Sprintf("update %s set %s where a = %d", s.name, s.assignments(r, false), s.twin(r))}
}

func deleteTwins(s *subject, r *rand.Rand) []string {
	return []string{fmt.Sprintf("delete from %s where a = %d", s.name, s.twin(r))}
}

// moveTwins sends all rows of an identity, often to the other shard of the target.
func moveTwins(s *subject, r *rand.Rand) []string {
	return []string{fmt.Sprintf("update %s set a = %d where a = %d", s.name, s.twin(r), s.twin(r))}
}
