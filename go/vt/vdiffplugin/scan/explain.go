// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package scan

import (
	"context"

	"vitess.io/vitess/go/vt/vterrors"
)

// Explain returns how MySQL would read a range: the rows of EXPLAIN by the names of its columns, NULL being "". It
// executes the very statement that Digest does, with an EXPLAIN before it.
func (l *Local) Explain(ctx context.Context, req *DigestRequest) (rows []map[string]string, err error) {
	if err := req.Check(); err != nil {
		return nil, err
	}
	c, err := req.Table.compile()
	if err != nil {
		return nil, err
	}
	err = l.run(ctx, "explain", func(s *session) error {
		st, params, _, err := c.statement(s, req, "explain format=traditional ")
		if err != nil {
			return err
		}
		columns, err := s.execute(st, params)
		if err != nil {
			return err
		}
		rows, err = s.texts(columns)
		return vterrors.Wrap(err, "explain")
	})
	return rows, err
}

// texts reads the few rows of a prepared statement. Values that have no text are left out.
func (s *session) texts(columns []column) (rows []map[string]string, err error) {
	p := rowParser{columns: columns}
	for i := range columns {
		p.want(true, i)
	}
	for {
		row, long, err := s.next()
		if err != nil || row == nil && !long {
			return rows, err
		}
		if long {
			if err := p.parsePieces(&s.in, func([]byte) {}); err != nil {
				return nil, err
			}
		} else if err := p.parse(row, p.last); err != nil {
			return nil, err
		}
		texts := make(map[string]string, len(columns))
		for i := range columns {
			if p.values[i] == nil {
				continue
			}
			if text, err := columns[i].appendText(nil, p.values[i]); err == nil {
				texts[columns[i].name] = string(text)
			}
		}
		rows = append(rows, texts)
	}
}
