// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package vdiffplugin

import (
	"testing"
	"time"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"vitess.io/vitess/go/vt/servenv"
)

// TestValidate checks that a value beyond its limits is an error that names its flag, and
// that the defaults and the limits themselves are accepted.
func TestValidate(t *testing.T) {
	f := func(change func(*Config), want string) {
		t.Helper()
		c := DefaultConfig()
		change(&c)
		err := c.Validate()
		if want == "" {
			assert.NoError(t, err)
			return
		}
		assert.ErrorContains(t, err, want)
	}
	f(func(*Config) {}, "")
	f(func(c *Config) { c.Concurrency = 1 }, "")
	f(func(c *Config) { c.Concurrency = 64 }, "")
	f(func(c *Config) { c.MaxRetries = 0 }, "")
	f(func(c *Config) { c.MemoryLimit = 1 << 20 }, "")

	f(func(c *Config) { c.Concurrency = 0 }, "--vdiff-plugin-concurrency must be between 1 and 64, not 0")
	f(func(c *Config) { c.Concurrency = 65 }, "--vdiff-plugin-concurrency")
	f(func(c *Config) { c.MaxSnapshotAge = 0 }, "--vdiff-plugin-max-snapshot-age must be at least 1s, not 0s")
	f(func(c *Config) { c.LockWait = 0 }, "--vdiff-plugin-lock-wait must be between 100ms and 1h0m0s, not 0s")
	f(func(c *Config) { c.LockWait = 2 * time.Hour }, "--vdiff-plugin-lock-wait")
	f(func(c *Config) { c.RetryInterval = -time.Second }, "--vdiff-plugin-retry-interval must be at least 1s, not -1s")
	f(func(c *Config) { c.MaxRetries = -1 }, "--vdiff-plugin-max-retries must be 0 (no retries) or more, not -1")
	f(func(c *Config) { c.MemoryLimit = 256 }, "--vdiff-plugin-memory-limit is in bytes")
}

// TestRegisterFlags checks that the flags set what Install reads, that registering them again in the
// same set is harmless (servenv's hook and a custom main may both do it) and keeps what was parsed.
func TestRegisterFlags(t *testing.T) {
	t.Cleanup(func() { flagConfig = DefaultConfig() })

	fs := servenv.GetFlagSetFor("vttablet")
	require.NotNil(t, fs.Lookup("vdiff-plugin"), "servenv does not know the flags")
	args := []string{
		"--vdiff-plugin=false", "--vdiff-plugin-concurrency=7", "--vdiff-plugin-max-snapshot-age=2h",
		"--vdiff-plugin-lock-wait=3s", "--vdiff-plugin-retry-interval=4s", "--vdiff-plugin-max-retries=5",
		"--vdiff-plugin-memory-limit=6000000", "--vdiff-plugin-scan-concurrency=9",
	}
	require.NoError(t, fs.Parse(args))
	RegisterFlags(fs)
	want := Config{
		Enabled: false, Concurrency: 7, MaxSnapshotAge: 2 * time.Hour, LockWait: 3 * time.Second,
		RetryInterval: 4 * time.Second, MaxRetries: 5, MemoryLimit: 6000000, ScanConcurrency: 9,
	}
	assert.Equal(t, want, flagConfig)

	flagConfig = DefaultConfig()
	fs = pflag.NewFlagSet("custom", pflag.ContinueOnError)
	RegisterFlags(fs)
	RegisterFlags(fs)
	require.NoError(t, fs.Parse(nil))
	assert.Equal(t, DefaultConfig(), flagConfig)
	fs.VisitAll(func(f *pflag.Flag) {
		assert.Regexp(t, "^vdiff-plugin", f.Name)
		assert.NotEmpty(t, f.Usage, f.Name)
	})
}
