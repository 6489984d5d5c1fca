// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package sidecar

import (
	"context"
	"strings"
	"sync"

	"vitess.io/vitess/go/mysql/sqlerror"
	"vitess.io/vitess/go/sqltypes"
)

// fakeMySQL records statements. answer says what each one returns; nil answers with no rows.
type fakeMySQL struct {
	mu         sync.Mutex
	statements []string
	opened     int
	closed     int
	answer     func(query string) (*sqltypes.Result, error)
}

type fakeConn struct {
	m    *fakeMySQL
	once sync.Once
	gone chan struct{}
}

func (m *fakeMySQL) connect(ctx context.Context) (Conn, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.opened++
	return &fakeConn{m: m, gone: make(chan struct{})}, nil
}

func (c *fakeConn) ExecuteFetch(query string, _ int, _ bool) (*sqltypes.Result, error) {
	c.m.mu.Lock()
	c.m.statements = append(c.m.statements, query)
	answer := c.m.answer
	c.m.mu.Unlock()
	if strings.Contains(query, "sleep for ever") {
		<-c.gone
		return nil, sqlerror.NewSQLError(sqlerror.CRServerLost, "", "closed")
	}
	if answer == nil {
		return &sqltypes.Result{RowsAffected: 1}, nil
	}
	qr, err := answer(query)
	if qr == nil {
		qr = &sqltypes.Result{RowsAffected: 1}
	}
	return qr, err
}

func (c *fakeConn) Close() {
	c.once.Do(func() {
		close(c.gone)
		c.m.mu.Lock()
		defer c.m.mu.Unlock()
		c.m.closed++
	})
}

// reset returns what was recorded and forgets it.
func (m *fakeMySQL) reset() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	got := m.statements
	m.statements = nil
	return got
}

func newFakeDB(answer func(string) (*sqltypes.Result, error)) (*DB, *fakeMySQL) {
	m := &fakeMySQL{answer: answer}
	return New(m.connect, m.connect, "vt_ks"), m
}

func rows(names string, lines ...string) *sqltypes.Result {
	types := strings.Repeat("|varchar", strings.Count(names, "|")+1)[1:]
	return sqltypes.MakeTestResult(sqltypes.MakeTestFields(names, types), lines...)
}
