// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

// Command vttablet-ext is vttablet with this project's VDiff engine in it.
package main

import (
	"fmt"
	"net/http"
	"os"

	"vitess.io/vitess/go/vt/log"
	"vitess.io/vitess/go/vt/servenv"
	"vitess.io/vitess/go/vt/utils"

	"github.com/vttablet-ext/vttablet-ext/go/cmd/vttablet-ext/cli"
)

func main() {
	// A path that nothing else serves leads to the status page.
	servenv.HTTPHandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, servenv.StatusURLPath(), http.StatusFound)
	})

	cmd := cli.Command()
	// Flags may be written with underscores, as they were until Vitess v23.
	cmd.SetGlobalNormalizationFunc(utils.NormalizeUnderscoresToDashes)
	if err := cmd.Execute(); err != nil {
		log.Error(fmt.Sprint(err))
		os.Exit(1)
	}
}
