// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package cli

import (
	"strings"

	"github.com/spf13/cobra"

	"vitess.io/vitess/go/cmd/vttablet/cli"

	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin"
)

const name = "vttablet-ext"

const intro = `vttablet-ext is vttablet with another VDiff engine. Every flag of vttablet works, and so does every
VDiff command of vtctldclient. --vdiff-plugin=false runs VDiff with the engine of Vitess; the other
flags that begin with --vdiff-plugin belong to the engine that is added.

What follows is vttablet's own help.

`

// Command returns the command. It is upstream's command, changed in place: there is one per process.
func Command() *cobra.Command {
	cmd := cli.Main
	if cmd.Use == name {
		return cmd
	}
	cmd.Use = name
	cmd.Short = "vttablet with a VDiff engine that survives every restart."
	cmd.Long = intro + cmd.Long
	cmd.Example = strings.ReplaceAll(cmd.Example, "vttablet \\\n", name+" \\\n")
	cmd.Version = versionText()
	cmd.SetVersionTemplate("{{.Version}}\n")
	cmd.RunE = run
	vdiffplugin.RegisterFlags(cmd.Flags())
	return cmd
}
