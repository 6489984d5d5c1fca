// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"net"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

// TestTraffic tests that the bytes of all connections to a port are counted once, those of one that is closed at once, of one
// that stays open and of one from before, and none of another port.
func TestTraffic(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	listen := func() (net.Listener, int) {
		l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp4", "127.0.0.1:0")
		require.NoError(t, err)
		return l, l.Addr().(*net.TCPAddr).Port
	}
	counted, port := listen()
	defer counted.Close()
	other, otherPort := listen()
	defer other.Close()
	// exchange sends n bytes to the listener and as many back.
	exchange := func(client, server net.Conn, n int) {
		t.Helper()
		for _, ends := range [][2]net.Conn{{client, server}, {server, client}} {
			_, err := ends[0].Write(make([]byte, n))
			require.NoError(t, err)
			_, err = io.ReadFull(ends[1], make([]byte, n))
			require.NoError(t, err)
		}
	}
	connect := func(l net.Listener) (client, server net.Conn) {
		client, err := (&net.Dialer{}).DialContext(t.Context(), "tcp4", l.Addr().String())
		require.NoError(t, err)
		server, err = l.Accept()
		require.NoError(t, err)
		return client, server
	}
	oldClient, oldServer := connect(counted)
	defer oldClient.Close()
	defer oldServer.Close()
	exchange(oldClient, oldServer, 100_000)

	traffic, err := newTraffic([]int{port})
	require.NoError(t, err)
	exchange(oldClient, oldServer, 1000)
	for range 50 {
		client, server := connect(counted)
		exchange(client, server, 10_000)
		client.Close()
		server.Close()
		client, server = connect(other)
		exchange(client, server, 10_000)
		client.Close()
		server.Close()
	}
	client, server := connect(counted)
	defer client.Close()
	defer server.Close()
	exchange(client, server, 20_000)
	bytes, err := traffic.stop()
	require.NoError(t, err)
	require.NotEqual(t, otherPort, port)
	// A FIN counts as one byte.
	require.InDelta(t, 2*(1000+50*10_000+20_000), bytes, 200)
}
