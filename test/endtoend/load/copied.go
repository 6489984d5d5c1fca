// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package load

import (
	"context"
	"fmt"
	"time"

	"github.com/vttablet-ext/vttablet-ext/test/endtoend/cluster"
)

// WaitCopied waits until a new workflow has copied all rows and its streams run. A stream that has not begun to copy is Running
// too and has no tables left to copy: it is told by its position, which is empty. progress, if not nil, gets the count of rows
// that were copied so far.
func WaitCopied(ctx context.Context, w *cluster.Workflow, progress func(rows int64)) error {
	var last []cluster.Stream
	err := cluster.WaitFor(ctx, "the copy of "+w.Name, 100*time.Millisecond, func(ctx context.Context) (bool, error) {
		streams, err := w.Streams(ctx)
		if err != nil {
			return false, err
		}
		last = streams
		if progress != nil {
			rows, err := copiedRows(ctx, w)
			if err != nil {
				return false, err
			}
			progress(rows)
		}
		for _, s := range streams {
			if s.State == "Error" {
				return false, fmt.Errorf("stream %s of %s: %s", s.ID, s.Tablet, s.Message)
			}
			if s.State != "Running" || s.Copying || s.Pos == "" {
				return false, nil
			}
		}
		return len(streams) > 0, nil
	})
	if err != nil {
		return fmt.Errorf("%w: streams are %+v", err, last)
	}
	return nil
}

func copiedRows(ctx context.Context, w *cluster.Workflow) (int64, error) {
	var sum int64
	for _, t := range w.Primaries() {
		result, err := t.Query(ctx, fmt.Sprintf("select cast(coalesce(sum(rows_copied), 0) as signed) from _vt.vreplication where workflow = '%s' and db_name = '%s'", w.Name, t.DBName()))
		if err != nil {
			return 0, err
		}
		rows, err := result.Rows[0][0].ToInt64()
		if err != nil {
			return 0, err
		}
		sum += rows
	}
	return sum, nil
}
