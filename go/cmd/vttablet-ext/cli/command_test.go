// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"expvar"
	"os"
	"path/filepath"
	"runtime/debug"
	"testing"
	"time"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"vitess.io/vitess/go/mysql/collations"
	"vitess.io/vitess/go/stats"

	topodatapb "vitess.io/vitess/go/vt/proto/topodata"
)

// TestCommand checks that the command is upstream's with our name, version and flags, and that making
// it twice changes nothing.
func TestCommand(t *testing.T) {
	cmd := Command()
	long := cmd.Long
	require.Same(t, cmd, Command())
	assert.Equal(t, long, cmd.Long)
	assert.Equal(t, "vttablet-ext", cmd.Name())
	for _, flag := range []string{
		"vdiff-plugin", "vdiff-plugin-concurrency", "vdiff-plugin-lock-wait", // ours
		"tablet-path", "table-acl-config", "tablet-config", // of upstream's command
		"init-keyspace", "topo-implementation", "queryserver-config-pool-size", // of its packages
		"s3-backup-aws-region", "datadog-agent-host", // of its plug-ins
	} {
		assert.NotNil(t, cmd.Flags().Lookup(flag), flag)
	}

	var out bytes.Buffer
	cmd.SetOut(&out)
	defer cmd.SetOut(nil)
	cmd.SetArgs([]string{"--help"})
	require.NoError(t, cmd.Execute())
	for _, want := range []string{"vttablet-ext is vttablet with another VDiff engine", "vttablet-ext [flags]", "--vdiff-plugin ", "--tablet-path string"} {
		assert.Contains(t, out.String(), want)
	}
	require.NoError(t, cmd.Flags().Set("help", "false"))

	out.Reset()
	cmd.SetArgs([]string{"--version"})
	require.NoError(t, cmd.Execute())
	require.NoError(t, cmd.Flags().Set("version", "false"))
	assert.Regexp(t, "^vttablet-ext version "+version, out.String())
	assert.Contains(t, out.String(), "\nvttablet (Vitess) Version: ")
}

// TestRevision checks what --version says of the commit.
func TestRevision(t *testing.T) {
	f := func(want string, settings ...debug.BuildSetting) {
		t.Helper()
		assert.Equal(t, want, revision(&debug.BuildInfo{Settings: settings}))
	}
	commit := debug.BuildSetting{Key: "vcs.revision", Value: "0123456789abcdef"}
	f("")
	f("", debug.BuildSetting{Key: "vcs.modified", Value: "true"})
	f(" (Git revision 0123456789ab)", commit, debug.BuildSetting{Key: "vcs.modified", Value: "false"})
	f(" (Git revision 0123456789ab, with changes)", commit, debug.BuildSetting{Key: "vcs.modified", Value: "true"})
	assert.Empty(t, revision(nil))
}

// TestReadFlags checks that the values come from the flag set, that upstream's command has all of
// these flags with the types that are read, and that a wrong alias is an error that names its flag.
func TestReadFlags(t *testing.T) {
	fs := Command().Flags()
	set := func(name, value string) {
		t.Helper()
		before := fs.Lookup(name).Value.String()
		require.NoError(t, fs.Set(name, value))
		t.Cleanup(func() { _ = fs.Set(name, before) })
	}
	_, err := readFlags(fs)
	require.ErrorContains(t, err, "--tablet-path")

	set("tablet-path", "zone1-0000000100")
	set("tablet-config", "/tablet.yaml")
	set("table-acl-config", "/acl.json")
	set("table-acl-config-reload-interval", "30s")
	set("enforce-tableacl-config", "true")
	got, err := readFlags(fs)
	require.NoError(t, err)
	assert.Equal(t, &tabletFlags{
		alias:             &topodatapb.TabletAlias{Cell: "zone1", Uid: 100},
		configFile:        "/tablet.yaml",
		aclFile:           "/acl.json",
		aclReloadInterval: 30 * time.Second,
		enforceACL:        true,
	}, got)

	_, err = readFlags(pflag.NewFlagSet("another", pflag.ContinueOnError))
	require.ErrorContains(t, err, "cannot read --tablet-path")
}

// TestEnforceACL checks that an ACL that is enforced needs its file.
func TestEnforceACL(t *testing.T) {
	_, err := newQueryService(t.Context(), &tabletFlags{enforceACL: true}, nil, nil, nil)
	require.ErrorContains(t, err, "--table-acl-config has to name a file")
}

// TestLoadConfig checks the errors of --tablet-config: no such file, and no YAML, of which the error
// shows the name and not the contents (they may hold passwords).
func TestLoadConfig(t *testing.T) {
	env := collations.MySQL8()
	_, _, err := loadConfig(&tabletFlags{configFile: "/no/such/file"}, env)
	require.ErrorContains(t, err, "cannot read --tablet-config")

	file := filepath.Join(t.TempDir(), "tablet.yaml")
	require.NoError(t, os.WriteFile(file, []byte("db: [secret"), 0o600))
	_, _, err = loadConfig(&tabletFlags{configFile: file}, env)
	require.ErrorContains(t, err, "cannot parse --tablet-config "+file)
	assert.NotContains(t, err.Error(), "secret")
}

// TestSrvTopoCounts checks that the query service counts in the metric that upstream's command has
// published, and not in one of its own that nobody sees.
func TestSrvTopoCounts(t *testing.T) {
	published, ok := expvar.Get("TabletSrvTopo").(*stats.CountersWithSingleLabel)
	require.True(t, ok)
	assert.Same(t, published, srvTopoCounts())
}
