// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package vdiffplugin

import (
	"io"
	"net"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"vitess.io/vitess/go/vt/servenv"

	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/engine"
)

// TestStatus renders the status page and checks what it says of an engine that is switched off,
// closed, open with vdiffs, and shut down, and that text of a vdiff is escaped.
func TestStatus(t *testing.T) {
	AddStatusPart()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = servenv.HTTPServe(l)
	}()
	defer func() {
		_ = l.Close()
		<-done
	}()
	page := func() string {
		t.Helper()
		resp, err := http.Get("http://" + l.Addr().String() + servenv.StatusURLPath())
		require.NoError(t, err)
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		return string(body)
	}
	tm := newTM(t)
	installed.Store(nil)
	assert.Contains(t, page(), "Off: the stock VDiff engine runs.")

	e := &fakeEngine{live: []engine.Live{{UUID: "u-1", Workflow: "wf", State: "started", Waiting: "the throttler", RowsCompared: 42, LastError: "<b>"}}}
	require.NoError(t, Install(tm, withEngine(e.build)))
	d := driverOf(t, tm)
	d.build(nil)
	assert.Contains(t, page(), "Closed: the tablet is not PRIMARY.")
	d.setPrimary(true)
	e.wait(t, "open")
	got := page()
	for _, want := range []string{"u-1", "wf", "started", "the throttler", "42", "&lt;b&gt;"} {
		assert.Contains(t, got, want)
	}
	require.NoError(t, d.shutdown(t.Context()))
	assert.Contains(t, page(), "Closed: the tablet is shutting down.")
}
