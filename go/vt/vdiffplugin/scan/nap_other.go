// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

//go:build !linux

package scan

import "time"

// nap waits for a time that is too short to matter.
func nap(d time.Duration) { time.Sleep(d) }
