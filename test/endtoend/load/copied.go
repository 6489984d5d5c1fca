// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package load

import (
	"context"
	"fmt"
	"time"

	"github.com/vttablet-ext/vttablet-ext/test/endtoend/cluster"
)

// WaitCopied waits until a new workflow has copied all rows and its streams run. A stream that has not begun to copy is Running
// too and has no tables left to copy: it is told by its position, which is empty. meanwhile, if not nil, is called again and again.
func WaitCopied(ctx context.Context, w *cluster.Workflow, meanwhile func(context.Context) error) error {
	var last []cluster.Stream
	err := cluster.WaitFor(ctx, "the copy of "+w.Name, 100*time.Millisecond, func(ctx context.Context) (bool, error) {
		streams, err := w.Streams(ctx)
		if err != nil {
			return false, err
		}
		last = streams
		if meanwhile != nil {
			if err := meanwhile(ctx); err != nil {
				return false, err
			}
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
