// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package rowdiff

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/scan"
)

// cursor walks one stream row by row.
type cursor struct {
	source Source
	batch  *scan.Batch
	i      int // index of the head in batch
	head   key // valid until the next advance
	eof    bool
}

// next moves to the next row; eof is set behind the last one.
func (cu *cursor) next(ctx context.Context) error {
	if cu.batch != nil {
		if cu.i++; cu.i < cu.batch.Len() {
			cu.head.row = cu.batch.Row(cu.i)
			return nil
		}
		cu.batch.Release()
		cu.batch = nil
	}
	if cu.eof {
		return nil
	}
	b, err := cu.source.Next(ctx)
	if errors.Is(err, io.EOF) {
		cu.eof, cu.head = true, key{}
		return nil
	}
	if err != nil {
		return err
	}
	cu.batch, cu.i = b, 0
	cu.head.row = b.Row(0)
	return nil
}

func (cu *cursor) release() {
	if cu.batch != nil {
		cu.batch.Release()
		cu.batch = nil
	}
}

// orderedCursor is a cursor that insists on strictly ascending keys.
type orderedCursor struct {
	cursor
	c         *comparer
	name      string
	integer   bool
	unsigned  bool
	keyColumn int
	previous  scan.Row // owns its memory; integer keys use last alone
	last      int64
	started   bool
	end       key // the last key that is looked at, when its row is set
}

func newOrderedCursor(c *comparer, name string, source Source) *orderedCursor {
	oc := &orderedCursor{cursor: cursor{source: source}, c: c, name: name}
	oc.unsigned, oc.integer = c.integerKey()
	if oc.integer {
		oc.keyColumn = c.table.Key[0]
	}
	return oc
}

// startAfter makes the first row subject to the check too.
func (oc *orderedCursor) startAfter(row scan.Row) error {
	if row.Lengths == nil {
		return nil
	}
	start, err := oc.keyOf(row)
	if err != nil {
		return err
	}
	if oc.head.number = start.number; !oc.integer {
		oc.head.row = start.row
	}
	oc.started = true
	return nil
}

// endAt makes the cursor end behind the key of row.
func (oc *orderedCursor) endAt(row scan.Row) (err error) {
	if row.Lengths != nil {
		oc.end, err = oc.keyOf(row)
	}
	return err
}

func (oc *orderedCursor) keyOf(row scan.Row) (key, error) {
	k := key{row: row.Clone()}
	if oc.integer {
		value, _ := row.Value(oc.keyColumn)
		number, ok := parseInteger(value, oc.unsigned)
		if !ok {
			return key{}, oc.notOrdered()
		}
		k.number = number
	}
	return k, nil
}

func (oc *orderedCursor) next(ctx context.Context) error {
	oc.remember()
	if err := oc.cursor.next(ctx); err != nil {
		return err
	}
	return oc.check()
}

// remember keeps the key of the head for the check of the next one.
func (oc *orderedCursor) remember() {
	oc.last = oc.head.number
	if oc.started && !oc.integer && !oc.eof {
		oc.head.row.CopyTo(&oc.previous)
	}
}

// check checks the head against the key before it. It uses the comparer, as fetching a row does not.
func (oc *orderedCursor) check() error {
	if oc.eof {
		return nil
	}
	if oc.integer {
		value, ok := oc.head.row.Value(oc.keyColumn)
		number, parsed := parseInteger(value, oc.unsigned)
		if !ok || !parsed {
			return fmt.Errorf("table %s, %s: the key is not an integer: %w", oc.c.table.Name, oc.name, ErrNotOrdered)
		}
		if oc.started && number <= oc.last {
			return oc.notOrdered()
		}
		oc.head.number = number
	} else if oc.started {
		n, err := oc.c.compareKeys(oc.previous, oc.head.row)
		if err != nil {
			return err
		}
		if n >= 0 {
			return oc.notOrdered()
		}
	}
	oc.started = true
	return oc.checkEnd()
}

// checkEnd ends the cursor when its head is behind the last key that is looked at.
func (oc *orderedCursor) checkEnd() error {
	if oc.end.row.Lengths == nil {
		return nil
	}
	behind := oc.head.number > oc.end.number
	if !oc.integer {
		n, err := oc.c.compareKeys(oc.head.row, oc.end.row)
		if err != nil {
			return err
		}
		behind = n > 0
	}
	if behind {
		oc.release()
		oc.eof, oc.head = true, key{}
	}
	return nil
}

func (oc *orderedCursor) notOrdered() error {
	return fmt.Errorf("table %s, %s: %w", oc.c.table.Name, oc.name, ErrNotOrdered)
}

// compareHeads orders the heads of two cursors; one at its end is behind everything.
func compareHeads(a, b *orderedCursor) (int, error) {
	switch {
	case a.eof && b.eof:
		return 0, nil
	case a.eof:
		return 1, nil
	case b.eof:
		return -1, nil
	case a.integer:
		switch {
		case a.head.number < b.head.number:
			return -1, nil
		case a.head.number > b.head.number:
			return 1, nil
		}
		return 0, nil
	}
	return a.c.compareKeys(a.head.row, b.head.row)
}
