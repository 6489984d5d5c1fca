// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

// Package cli is the vttablet-ext command: upstream's vttablet command, with its flags, plug-ins and
// checks, and another RunE.
//
// Upstream's command, package vitess.io/vitess/go/cmd/vttablet/cli, exports the cobra command and
// nothing else: neither the TabletManager that its RunE makes, nor the variables behind the flags
// that only its RunE reads. So the values of those flags are read from the flag set, and run makes
// the TabletManager here, from the same parts in the same order, so that it can be given the plug-in
// before it starts.
//
// It is also the example for a custom build: what concerns the plug-in are the call of RegisterFlags
// in Command, that of Install in run, and that of AddStatusPart in addStatusParts.
package cli
