// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package fence

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"vitess.io/vitess/go/vt/topo/memorytopo"
)

// Tests that the lock excludes those who take it by LockName, as switching traffic does, in both
// directions, and that it leaves nothing behind in the topo.
func TestTopoLock(t *testing.T) {
	ts := memorytopo.NewServer(t.Context(), "zone1")
	defer ts.Close()
	lock := TopoLock(ts)
	_, unlock, err := lock(t.Context(), "ks/w", "vdiff")
	require.NoError(t, err)
	short := func() context.Context {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		t.Cleanup(cancel)
		return ctx
	}
	_, _, err = ts.LockName(short(), "ks/w", "switch")
	require.Error(t, err)
	_, _, err = lock(short(), "ks/w", "vdiff")
	require.Error(t, err)
	_, other, err := lock(short(), "ks/other", "vdiff")
	require.NoError(t, err)
	other(&err)
	require.NoError(t, err)
	unlock(&err)
	require.NoError(t, err)

	_, unlock, err = ts.LockName(t.Context(), "ks/w", "switch")
	require.NoError(t, err)
	_, _, err = lock(short(), "ks/w", "vdiff")
	require.Error(t, err)
	err = nil
	unlock(&err)
	require.NoError(t, err)
	_, unlock, err = lock(t.Context(), "ks/w", "vdiff")
	require.NoError(t, err)
	unlock(&err)
	require.NoError(t, err)
	conn, err := ts.ConnForCell(t.Context(), "global")
	require.NoError(t, err)
	_, err = conn.ListDir(t.Context(), "internal/named_locks/ks/w", false)
	assert.Error(t, err, "the directory is gone")
}
