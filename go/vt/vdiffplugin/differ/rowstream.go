// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package differ

import (
	"context"
	"fmt"
	"io"
	"sync"

	"vitess.io/vitess/go/vt/vterrors"

	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/rowdiff"
	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/scan"

	querypb "vitess.io/vitess/go/vt/proto/query"
	vtrpcpb "vitess.io/vitess/go/vt/proto/vtrpc"
)

// rowStream is the rows of several reads, in one read view of one tablet. They are consumed read by read.
type rowStream struct {
	start  *scan.RowsStart
	parts  chan rowPart
	cancel context.CancelFunc
	done   sync.WaitGroup
	err    error // set before parts is closed

	pending *rowPart // taken from parts, but of a read that nobody has asked for yet
}

// rowPart is a batch and the read that it is of.
type rowPart struct {
	read   int
	fields []*querypb.Field // of the read's first part
	batch  *scan.Batch      // nil without rows
}

// openRows opens the read view and returns when it is there. The rows come while ctx lives. bounded ends the wait
// for the view only.
func openRows(ctx, bounded context.Context, reader Reader, call *scan.RowsCall, progress scan.Progress) (*rowStream, error) {
	ctx, cancel := context.WithCancel(ctx)
	s := &rowStream{parts: make(chan rowPart, 2), cancel: cancel}
	started := make(chan *scan.RowsStart, 1)
	s.done.Go(func() {
		defer close(s.parts)
		s.err = contained(func() error {
			return reader.Rows(ctx, call, func(start *scan.RowsStart) error {
				started <- start
				return nil
			}, func(b *scan.RowsBatch) error { return s.push(ctx, b) }, progress)
		})()
	})
	select {
	case s.start = <-started:
		return s, nil
	case part, ok := <-s.parts:
		if ok {
			s.pending = &part // both channels were ready
			s.start = <-started
			return s, nil
		}
		select {
		case s.start = <-started: // and the rows ended already, well or not: next tells
			return s, nil
		default:
		}
		s.close()
		if s.err == nil {
			s.err = vterrors.Errorf(vtrpcpb.Code_INTERNAL, "the rows ended before their read view was open")
		}
		return nil, s.err
	case <-bounded.Done():
		s.close()
		return nil, context.Cause(bounded)
	}
}

func (s *rowStream) push(ctx context.Context, b *scan.RowsBatch) error {
	part := rowPart{read: b.Read, fields: b.Fields}
	if len(b.Rows) > 0 {
		part.batch = scan.NewBatch(len(b.Rows[0].Lengths), b.Rows)
	}
	select {
	case s.parts <- part:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// close ends the stream and waits for its goroutine.
func (s *rowStream) close() {
	s.cancel()
	for part := range s.parts {
		if part.batch != nil {
			part.batch.Release()
		}
	}
	s.done.Wait()
}

// next returns the next part of a read, io.EOF behind its last.
func (s *rowStream) next(ctx context.Context, read int) (*rowPart, error) {
	for {
		if s.pending == nil {
			select {
			case part, ok := <-s.parts:
				switch {
				case !ok && s.err != nil:
					return nil, s.err
				case !ok:
					return nil, io.EOF
				}
				s.pending = &part
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
		part := s.pending
		if part.read > read {
			return nil, io.EOF
		}
		s.pending = nil
		if part.read == read {
			return part, nil
		}
		if part.batch != nil { // the rest of a read that nobody wants any more
			part.batch.Release()
		}
	}
}

// tableRows is one read of a rowStream.
type tableRows struct {
	s      *rowStream
	read   int
	fields []*querypb.Field
	first  *rowPart
}

var _ rowdiff.Source = (*tableRows)(nil)

// open waits for the columns of a read.
func (s *rowStream) open(ctx context.Context, read int) (*tableRows, error) {
	part, err := s.next(ctx, read)
	if err == io.EOF {
		err = vterrors.Errorf(vtrpcpb.Code_INTERNAL, "the rows have no part for table %d", read)
	}
	if err != nil {
		return nil, err
	}
	if len(part.fields) == 0 {
		return nil, fmt.Errorf("the rows of table %d arrived before their columns", read)
	}
	return &tableRows{s: s, read: read, fields: part.fields, first: part}, nil
}

// Next is part of rowdiff.Source.
func (t *tableRows) Next(ctx context.Context) (*scan.Batch, error) {
	for {
		part := t.first
		t.first = nil
		if part == nil {
			var err error
			if part, err = t.s.next(ctx, t.read); err != nil {
				return nil, err
			}
		}
		if part.batch != nil {
			return part.batch, nil
		}
	}
}
