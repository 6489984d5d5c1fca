// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package vdiffplugin

import (
	"github.com/spf13/pflag"

	"vitess.io/vitess/go/vt/servenv"

	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/scanservice"
)

const (
	flagEnabled        = "vdiff-plugin"
	flagConcurrency    = "vdiff-plugin-concurrency"
	flagMaxSnapshotAge = "vdiff-plugin-max-snapshot-age"
	flagLockWait       = "vdiff-plugin-lock-wait"
	flagRetryInterval  = "vdiff-plugin-retry-interval"
	flagMaxRetries     = "vdiff-plugin-max-retries"
	flagMemoryLimit    = "vdiff-plugin-memory-limit"
	flagScans          = "vdiff-plugin-scan-concurrency"
)

// flagConfig is what the flags set. It is read by Install and not changed afterwards.
var flagConfig = DefaultConfig()

func init() {
	// A command named vttablet that collects its flags after this package is initialized gets ours
	// with the others. Whether upstream's command is such a one is up to the order in which Go
	// initializes packages, so every build calls RegisterFlags too.
	servenv.OnParseFor("vttablet", RegisterFlags)
}

// RegisterFlags adds the flags of the plug-in to fs. A set that has them already is left as it is,
// so it does no harm to call it where servenv has called it before.
func RegisterFlags(fs *pflag.FlagSet) {
	scanservice.UseFlags(fs) // the client's credentials are in it
	if fs.Lookup(flagEnabled) != nil {
		return
	}
	c := &flagConfig
	fs.BoolVar(&c.Enabled, flagEnabled, c.Enabled, "run VDiff with the engine of the plug-in; false runs the engine that comes with Vitess")
	fs.IntVar(&c.Concurrency, flagConcurrency, c.Concurrency, "how many ranges or tables of a vdiff are compared at a time")
	fs.IntVar(&c.ScanConcurrency, flagScans, c.ScanConcurrency, "how many reads for the digests of vdiffs this tablet makes at a time, whoever asks for them; others wait")
	fs.DurationVar(&c.MaxSnapshotAge, flagMaxSnapshotAge, c.MaxSnapshotAge, "how long a vdiff keeps a MySQL read view open; what is not compared by then continues from a new one")
	fs.DurationVar(&c.LockWait, flagLockWait, c.LockWait, "how long a vdiff waits, at each try, for the lock of its workflow and for table locks; the workflow runs between tries")
	fs.DurationVar(&c.RetryInterval, flagRetryInterval, c.RetryInterval, "how long a vdiff that failed waits for its first retry (with --auto-retry); every further retry waits longer")
	fs.IntVar(&c.MaxRetries, flagMaxRetries, c.MaxRetries, "how many retries in a row a vdiff is given that makes no progress (with --auto-retry); 0 turns retries off")
	fs.Int64Var(&c.MemoryLimit, flagMemoryLimit, c.MemoryLimit, "bytes of rows of one table that are held in memory while they wait for their partner from the other side; a table that needs more is read in several passes")
}
