// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package scan

import (
	"io"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Tests the long ping by which mysqld's buffer grows: what is sent, and that a server which refuses it, answers something else or
// hangs up is noticed.
func TestLongPing(t *testing.T) {
	s := fakeSession(newAnswer().packet([]byte{okPacket, 0, 0, 2, 0, 0, 0}), 64)
	require.NoError(t, s.ping(1<<17))
	written := s.raw.(*fakeConn).written.Bytes()
	assert.Equal(t, []byte{0, 0, 2, 0, comPing, 0}, written[:6])
	assert.Len(t, written, packetHeader+(1<<17))

	require.ErrorContains(t, fakeSession(newAnswer().fail(1153, "Got a packet bigger"), 64).ping(100), "bigger")
	require.ErrorIs(t, fakeSession(newAnswer().packet([]byte{1, 2}), 64).ping(100), errProtocol)
	require.ErrorIs(t, fakeSession(newAnswer(), 64).ping(100), io.ErrUnexpectedEOF)
}
