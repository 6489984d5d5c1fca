// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package scanservice

import (
	"context"
	"sync"
	"time"

	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/scan"
)

var _ scan.RowReader = (*Service)(nil)

// Rows is scan.RowReader, on this tablet: behind its limit and its throttler. Progress may be nil.
//
// It never waits for its turn: a workflow is stopped until its read views are open, and two vdiffs that each hold a
// view on one tablet and wait for one on the other would wait for ever. Too many at a time is an error at once. For the
// same reason the throttler is not asked before the read view is open, but while rows are read. A call that asks for positions of
// streams is none of a fence but of the lock-free comparison: it holds nothing yet, and takes its turn among the digests.
func (s *Service) Rows(ctx context.Context, call *scan.RowsCall, start func(*scan.RowsStart) error, send func(*scan.RowsBatch) error, progress scan.Progress) error {
	told := &rowsProgress{f: progress}
	return s.serve(ctx, "Rows", func(ctx context.Context, reader Reader) error {
		limit, tell := s.rows, func() {}
		if len(call.Streams) > 0 {
			limit, tell = s.digests, func() { told.progress(0, waitingForReader) }
		}
		if err := limit.acquire(ctx, tell); err != nil {
			return err
		}
		defer limit.release()
		var (
			rows    int64
			checked time.Time
		)
		return reader.Rows(ctx, call, start, func(b *scan.RowsBatch) error {
			if time.Since(checked) >= throttleInterval {
				err := s.config.Throttle.wait(ctx, func(reason string) { told.throttled(rows, reason) })
				told.throttled(rows, "")
				if err != nil {
					return err
				}
				checked = time.Now()
			}
			rows += int64(len(b.Rows))
			metrics.rows.Add(int64(len(b.Rows)))
			metrics.bytes.Add(sizeOf(b))
			return send(b)
		}, told.progress)
	})
}

// rowsProgress is the progress of a call that the service holds up in the middle, while the reader goes on to report.
type rowsProgress struct {
	f scan.Progress // may be nil

	mu     sync.Mutex
	reason string
}

// progress is the reader's.
func (p *rowsProgress) progress(rows int64, waiting string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if waiting == "" {
		waiting = p.reason
	}
	if p.f != nil {
		p.f(rows, waiting)
	}
}

// throttled is the service's: why it holds the call up, or "" when it does not any more.
func (p *rowsProgress) throttled(rows int64, reason string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if reason == "" && p.reason == "" {
		return
	}
	p.reason = reason
	if p.f != nil {
		p.f(rows, reason)
	}
}

func sizeOf(b *scan.RowsBatch) (n int64) {
	for _, r := range b.Rows {
		n += int64(len(r.Values))
	}
	return n
}
