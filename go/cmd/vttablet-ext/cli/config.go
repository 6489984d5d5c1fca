// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"os"

	"vitess.io/vitess/go/mysql/collations"
	"vitess.io/vitess/go/vt/log"
	"vitess.io/vitess/go/vt/mysqlctl"
	"vitess.io/vitess/go/vt/vttablet/tabletserver/tabletenv"
	"vitess.io/vitess/go/yaml2"
)

// loadConfig returns the tablet's configuration: what the flags say, overridden by --tablet-config,
// and the connection parameters completed. The my.cnf is nil when flags say how to connect to MySQL:
// then MySQL is not ours, and backups and restores are off.
func loadConfig(f *tabletFlags, collationEnv *collations.Environment) (*tabletenv.TabletConfig, *mysqlctl.Mycnf, error) {
	tabletenv.Init() // first: it completes what the flags have set
	config := tabletenv.NewCurrentConfig()
	if err := config.Verify(); err != nil {
		return nil, nil, fmt.Errorf("invalid config: %w", err)
	}
	if f.configFile != "" {
		data, err := os.ReadFile(f.configFile)
		if err != nil {
			return nil, nil, fmt.Errorf("cannot read --tablet-config: %w", err)
		}
		if err := yaml2.Unmarshal(data, config); err != nil {
			return nil, nil, fmt.Errorf("cannot parse --tablet-config %s: %w", f.configFile, err)
		}
	}
	if text, err := yaml2.Marshal(config); err == nil {
		log.Info(fmt.Sprintf("The tablet's configuration (--tablet-config %q):\n%s", f.configFile, text))
	}

	var (
		mycnf  *mysqlctl.Mycnf
		socket string
	)
	if config.DB.HasGlobalSettings() {
		log.Info("Flags say how to connect to MySQL: no my.cnf is read")
	} else {
		var err error
		if mycnf, err = mysqlctl.NewMycnfFromFlags(f.alias.Uid); err != nil {
			return nil, nil, fmt.Errorf("cannot read my.cnf: %w", err)
		}
		socket = mycnf.SocketFile
	}
	config.DB.InitWithSocket(socket, collationEnv)
	for _, c := range config.ExternalConnections {
		c.InitWithSocket("", collationEnv)
	}
	return config, mycnf, nil
}
