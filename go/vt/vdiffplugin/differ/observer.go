// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package differ

import (
	"context"
	"time"

	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/sidecar"
)

// Runner compares the tables of one vdiff.
type Runner interface {
	// Run returns nil when every table is completed. It writes the records of the tables but never
	// the state of the vdiff itself: that is the caller's. It returns soon after ctx is done, whatever
	// it is doing, and leaves no goroutine behind. An error that will come back every time is marked
	// with sidecar.AsPermanent, one that passes by itself with sidecar.AsTransient.
	Run(ctx context.Context, v *sidecar.VDiff, obs Observer) error
}

// Observer is told what a run does. Its methods are safe for concurrent use and never block for
// long, so a run may call them from its hot path.
type Observer interface {
	// RowsCompared says that n more rows of a table are compared.
	RowsCompared(table string, n int64)
	// Phase says that a phase of a table took that long.
	Phase(table, phase string, took time.Duration)
	// TableAt says that a table is compared from where so many of its rows have been, 0 from its first one, whatever was said of it before.
	TableAt(table string, rows int64)
	// TableRestarted says that --max-diff-duration made the table begin a new snapshot.
	TableRestarted(table string)
	// Ranges says how many ranges of a table are verified, are being tried again, and are left for the fence.
	Ranges(table string, verified, retrying, fenced int64)
	// Read says that MySQL has sent so many more rows of so many bytes, on any tablet.
	Read(rows, bytes int64)
	// View says that a read view is open until the function that it returns is called.
	View() (closed func())
	// HeldUp says that a read was held up for that long: by a tablet's throttler, or waiting for its turn there.
	HeldUp(d time.Duration)
	// Waiting says what the run waits for now, in a few words; "" means that it works.
	Waiting(what string)
}
