// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package scanservice

import (
	"context"
	"time"

	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/scan"
)

var _ scan.RowReader = (*Service)(nil)

// Rows is scan.RowReader, on this tablet: behind its limit and its throttler. Progress may be nil.
//
// It never waits for its turn: a workflow is stopped until its read views are open, and two vdiffs that each hold a
// view on one tablet and wait for one on the other would wait for ever. Too many at a time is an error at once. For the
// same reason the throttler is not asked before the read view is open, but while rows are read.
func (s *Service) Rows(ctx context.Context, call *scan.RowsCall, start func(*scan.RowsStart) error, send func(*scan.RowsBatch) error, progress scan.Progress) error {
	if progress == nil {
		progress = func(int64, string) {}
	}
	return s.serve(ctx, "Rows", func(ctx context.Context, reader Reader) error {
		if err := s.rows.acquire(ctx, func() {}); err != nil {
			return err
		}
		defer s.rows.release()
		var (
			rows    int64
			checked time.Time
		)
		return reader.Rows(ctx, call, start, func(b *scan.RowsBatch) error {
			if time.Since(checked) >= throttleInterval {
				if err := s.config.Throttle.wait(ctx, func(reason string) { progress(rows, reason) }); err != nil {
					return err
				}
				checked = time.Now()
				progress(rows, "")
			}
			rows += int64(len(b.Rows))
			metrics.rows.Add(int64(len(b.Rows)))
			metrics.bytes.Add(sizeOf(b))
			return send(b)
		}, progress)
	})
}

func sizeOf(b *scan.RowsBatch) (n int64) {
	for _, r := range b.Rows {
		n += int64(len(r.Values))
	}
	return n
}
