// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package verify

import "time"

// Config has the limits of a Machine. A field that is not positive has its default.
type Config struct {
	// Workers is the number of calls that the caller makes at a time: among so many, lanes and batches of tiny
	// tables are shared out. The Machine does not hold the caller to it. Default 4.
	Workers int
	// FirstRows is the rows of a table's first walk (10,000). They double up to MaxRows (200,000) while
	// ranges are equal at first sight, and halve down to MinRows (1,000) when they are not.
	FirstRows, MinRows, MaxRows int64
	// MaxBytes ends a walk early (64 MB), and so does TaskTime (1 s).
	MaxBytes int64
	TaskTime time.Duration
	// Tries is how often a range is compared before it is split (3).
	Tries int
	// RetryAfter is the wait before the second comparison (1 s); it doubles with each further one.
	RetryAfter time.Duration
	// MaxPending is how many ranges of one table may wait; beyond it the table is not walked on (64).
	MaxPending int
	// MaxFence is how many ranges of one table are left for the fence before all others that are unequal are left
	// too, without another try (64).
	MaxFence int
	// LeafRows is the rows of a range that is not worth splitting (64).
	LeafRows int64
}

// withDefaults fills in what is not set, and makes the numbers of rows agree.
func (c Config) withDefaults() Config {
	c.Workers = orDefault(c.Workers, 4)
	c.FirstRows = orDefault(c.FirstRows, 10_000)
	c.MinRows = min(orDefault(c.MinRows, 1_000), c.FirstRows)
	c.MaxRows = max(orDefault(c.MaxRows, 200_000), c.FirstRows)
	c.MaxBytes = orDefault(c.MaxBytes, 64<<20)
	c.TaskTime = orDefault(c.TaskTime, time.Second)
	c.Tries = orDefault(c.Tries, 3)
	c.RetryAfter = orDefault(c.RetryAfter, time.Second)
	c.MaxPending = orDefault(c.MaxPending, 64)
	c.MaxFence = orDefault(c.MaxFence, 64)
	c.LeafRows = orDefault(c.LeafRows, 64)
	return c
}

// orDefault returns a value if it is positive.
func orDefault[T int | int64 | time.Duration](value, fallback T) T {
	if value > 0 {
		return value
	}
	return fallback
}

// backoff returns the wait before the next comparison after n that did not do.
func (c Config) backoff(n int) time.Duration { return c.RetryAfter << min(max(n-1, 0), 6) }
