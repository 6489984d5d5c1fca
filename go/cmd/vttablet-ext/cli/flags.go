// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"time"

	"github.com/spf13/pflag"

	"vitess.io/vitess/go/vt/topo/topoproto"

	topodatapb "vitess.io/vitess/go/vt/proto/topodata"
)

// tabletFlags has the values of the flags that upstream's command keeps in variables of its own.
type tabletFlags struct {
	alias             *topodatapb.TabletAlias // --tablet-path
	configFile        string                  // --tablet-config
	aclFile           string                  // --table-acl-config
	aclReloadInterval time.Duration           // --table-acl-config-reload-interval
	enforceACL        bool                    // --enforce-tableacl-config
}

func readFlags(fs *pflag.FlagSet) (*tabletFlags, error) {
	var (
		f    tabletFlags
		path string
	)
	for _, err := range []error{
		read(&path, "tablet-path", fs.GetString),
		read(&f.configFile, "tablet-config", fs.GetString),
		read(&f.aclFile, "table-acl-config", fs.GetString),
		read(&f.aclReloadInterval, "table-acl-config-reload-interval", fs.GetDuration),
		read(&f.enforceACL, "enforce-tableacl-config", fs.GetBool),
	} {
		if err != nil {
			return nil, err
		}
	}
	var err error
	if f.alias, err = topoproto.ParseTabletAlias(path); err != nil {
		return nil, fmt.Errorf("failed to parse --tablet-path: %w", err)
	}
	return &f, nil
}

func read[T any](to *T, flag string, get func(string) (T, error)) (err error) {
	if *to, err = get(flag); err != nil {
		return fmt.Errorf("cannot read --%s, this Vitess may not be the one that %s is made for: %w", flag, name, err)
	}
	return nil
}
