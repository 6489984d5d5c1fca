// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package scanservice

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"vitess.io/vitess/go/vt/log"

	vdiffscanpb "github.com/vttablet-ext/vttablet-ext/proto/vdiffscan"
)

// heartbeat sends progress at an interval, whatever the call does.
type heartbeat struct {
	cancel context.CancelFunc
	done   chan struct{}
	wg     sync.WaitGroup
	once   sync.Once

	mu      sync.Mutex
	rows    int64
	waiting string
}

// startHeartbeat returns a context that ends when a message cannot be sent: its receiver is gone. The heartbeat has
// to be stopped; nothing is sent afterwards.
func startHeartbeat(ctx context.Context, every time.Duration, send func(*vdiffscanpb.Progress) error) (context.Context, *heartbeat) {
	ctx, cancel := context.WithCancel(ctx)
	h := &heartbeat{cancel: cancel, done: make(chan struct{})}
	h.wg.Go(func() {
		defer func() {
			if x := recover(); x != nil {
				log.Error(fmt.Sprintf("VDiff plug-in: panic in the progress of the scan service: %v\n%s", x, debug.Stack()))
				cancel()
			}
		}()
		ticker := time.NewTicker(every)
		defer ticker.Stop()
		for {
			select {
			case <-h.done:
				return
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
			if err := send(h.get()); err != nil {
				cancel()
				return
			}
		}
	})
	return ctx, h
}

// set is a scan.Progress.
func (h *heartbeat) set(rows int64, waiting string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.rows, h.waiting = rows, waiting
}

func (h *heartbeat) get() *vdiffscanpb.Progress {
	h.mu.Lock()
	defer h.mu.Unlock()
	return &vdiffscanpb.Progress{Rows: h.rows, Waiting: h.waiting}
}

// stop returns when the heartbeat has ended.
func (h *heartbeat) stop() {
	h.once.Do(func() { close(h.done) })
	h.wg.Wait()
	h.cancel()
}
