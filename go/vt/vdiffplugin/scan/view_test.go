// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package scan

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"vitess.io/vitess/go/mysql/replication"
)

// TestWithOwned tests that transactions whose commit is under way count as visible: their rows can be seen before their GTIDs are in
// gtid_executed.
func TestWithOwned(t *testing.T) {
	const a, b = "3e11fa47-71ca-11e1-9e33-c80aa9429562", "3e11fa47-71ca-11e1-9e33-c80aa9429563"
	f := func(executed, owned, want string) {
		t.Helper()
		position, err := replication.ParsePosition(replication.Mysql56FlavorID, executed)
		require.NoError(t, err)
		got, err := withOwned(replication.EncodePosition(position), position, owned)
		require.NoError(t, err)
		assert.Equal(t, "MySQL56/"+want, got)
	}
	f(a+":1-5", "", a+":1-5")
	f(a+":1-5", a+":6#17", a+":1-6")
	f(a+":1-5", a+":6#17:8#19", a+":1-6:8")
	f(a+":1-5", a+":6#17,\n"+b+":1#4#5", a+":1-6,"+b+":1")
	position, err := replication.ParsePosition(replication.Mysql56FlavorID, a+":1-5")
	require.NoError(t, err)
	_, err = withOwned("", position, "garbage#")
	require.Error(t, err)
}
