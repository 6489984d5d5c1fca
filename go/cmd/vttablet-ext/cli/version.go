// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"runtime/debug"

	"vitess.io/vitess/go/vt/servenv"
)

// version is the release. A build may set it:
//
//	go build -ldflags "-X github.com/vttablet-ext/vttablet-ext/go/cmd/vttablet-ext/cli.version=1.2.3"
var version = "0.1.0-dev"

// versionText is what --version prints: a line for this project and one for the Vitess in it, in
// Vitess's own form.
func versionText() string {
	info, _ := debug.ReadBuildInfo()
	return fmt.Sprintf("%s version %s%s\nvttablet (Vitess) %s", name, version, revision(info), servenv.AppVersion.String())
}

// revision says which commit the binary was built from, if the build knew.
func revision(info *debug.BuildInfo) string {
	if info == nil {
		return ""
	}
	var rev, dirty string
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			rev = s.Value
		case s.Key == "vcs.modified" && s.Value == "true":
			dirty = ", with changes"
		}
	}
	if rev == "" {
		return ""
	}
	return fmt.Sprintf(" (Git revision %.12s%s)", rev, dirty)
}
