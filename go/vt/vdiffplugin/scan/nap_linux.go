// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package scan

import (
	"syscall"
	"time"
)

// nap waits in the kernel. Go's scheduler would put the goroutine aside, which costs a timer, a poll of the network and two wake-ups
// of threads, thousands of times a second, and cannot wait for less than a millisecond; here the thread just sleeps. Its processor
// is free for others meanwhile, as in any system call.
func nap(d time.Duration) {
	ts := syscall.NsecToTimespec(int64(d))
	_ = syscall.Nanosleep(&ts, nil) // a signal that ends it early does no harm
}
