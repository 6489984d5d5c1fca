// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package vdiffplugin_test

import (
	"github.com/spf13/pflag"

	"vitess.io/vitess/go/vt/servenv"
	"vitess.io/vitess/go/vt/vttablet/tabletmanager"
	"vitess.io/vitess/go/vt/vttablet/tabletserver/tabletenv"

	topodatapb "vitess.io/vitess/go/vt/proto/topodata"

	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin"
)

// What a vttablet with its own main adds: the flags where it makes its others, and the rest between
// making the TabletManager and starting it. The TabletManager has its stock VDiffEngine, too, so that
// --vdiff-plugin=false finds one.
func Example() {
	registerFlags := func(fs *pflag.FlagSet) {
		vdiffplugin.RegisterFlags(fs)
	}
	start := func(tm *tabletmanager.TabletManager, tablet *topodatapb.Tablet, config *tabletenv.TabletConfig) error {
		if err := vdiffplugin.Install(tm); err != nil {
			return err
		}
		servenv.OnRun(vdiffplugin.AddStatusPart)
		return tm.Start(tablet, config)
	}
	_, _ = registerFlags, start
}
