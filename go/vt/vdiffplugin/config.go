// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package vdiffplugin

import (
	"fmt"
	"time"
)

// Config is what an operator can set. The flags fill it; WithConfig sets it from code.
type Config struct {
	// Enabled false leaves the tablet with the stock engine.
	Enabled bool
	// Concurrency is how many ranges, or tables, of one vdiff are compared at a time.
	Concurrency int
	// ScanConcurrency is how many reads for digests this tablet makes at a time, for its own vdiffs and those of others.
	ScanConcurrency int
	// MaxSnapshotAge is how long a read view lives at most, on either side.
	MaxSnapshotAge time.Duration
	// LockWait bounds each try to get a lock: the workflow's lock in the topo, table locks in MySQL.
	LockWait time.Duration
	// RetryInterval is the pause before the first retry of a vdiff that failed. It doubles with
	// every further one.
	RetryInterval time.Duration
	// MaxRetries is how many retries in a row a vdiff is given that do not get beyond what it had compared before.
	MaxRetries int
	// MemoryLimit bounds the bytes of rows of one table that wait for their partner. Only a table
	// whose rows do not come in key order makes any wait.
	MemoryLimit int64
}

// DefaultConfig returns the values that the flags have when they are not given.
func DefaultConfig() Config {
	return Config{
		Enabled:         true,
		Concurrency:     4,
		ScanConcurrency: 8,
		MaxSnapshotAge:  time.Hour,
		LockWait:        10 * time.Second,
		RetryInterval:   30 * time.Second,
		MaxRetries:      10,
		MemoryLimit:     256 << 20,
	}
}

// Limits of the values, where a value beyond them can only be a slip: a unit forgotten, a digit too
// many.
const (
	maxConcurrency     = 64
	maxScanConcurrency = 256
	minMaxSnapshotAge  = time.Second
	minLockWait        = 100 * time.Millisecond
	maxLockWait        = time.Hour
	minRetryInterval   = time.Second
	minMemoryLimit     = 1 << 20
)

// Validate returns an error that names the flag whose value cannot be used.
func (c Config) Validate() error {
	switch {
	case c.Concurrency < 1 || c.Concurrency > maxConcurrency:
		return fmt.Errorf("--%s must be between 1 and %d, not %d", flagConcurrency, maxConcurrency, c.Concurrency)
	case c.ScanConcurrency < 1 || c.ScanConcurrency > maxScanConcurrency:
		return fmt.Errorf("--%s must be between 1 and %d, not %d", flagScans, maxScanConcurrency, c.ScanConcurrency)
	case c.MaxSnapshotAge < minMaxSnapshotAge:
		return fmt.Errorf("--%s must be at least %v, not %v", flagMaxSnapshotAge, minMaxSnapshotAge, c.MaxSnapshotAge)
	case c.LockWait < minLockWait || c.LockWait > maxLockWait:
		return fmt.Errorf("--%s must be between %v and %v, not %v", flagLockWait, minLockWait, maxLockWait, c.LockWait)
	case c.RetryInterval < minRetryInterval:
		return fmt.Errorf("--%s must be at least %v, not %v", flagRetryInterval, minRetryInterval, c.RetryInterval)
	case c.MaxRetries < 0:
		return fmt.Errorf("--%s must be 0 (no retries) or more, not %d", flagMaxRetries, c.MaxRetries)
	case c.MemoryLimit < minMemoryLimit:
		return fmt.Errorf("--%s is in bytes and must be at least %d (1 MiB), not %d", flagMemoryLimit, minMemoryLimit, c.MemoryLimit)
	}
	return nil
}
