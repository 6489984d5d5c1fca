// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package scanservice

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"vitess.io/vitess/go/vt/vterrors"

	vtrpcpb "vitess.io/vitess/go/vt/proto/vtrpc"

	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/scan"
	vdiffscanpb "github.com/vttablet-ext/vttablet-ext/proto/vdiffscan"
)

// Tests that a server that accepts connections and never answers, one that is not there, and one that falls silent
// during a call are given up as UNAVAILABLE.
func TestDeadServer(t *testing.T) {
	noLeaks(t)
	silence := 100 * time.Millisecond
	unavailable := func(t *testing.T, err error) {
		t.Helper()
		require.Error(t, err)
		assert.Equal(t, vtrpcpb.Code_UNAVAILABLE, vterrors.Code(err), err.Error())
		require.NotErrorIs(t, err, ErrUnsupported)
	}
	t.Run("never answers", func(t *testing.T) {
		listener, err := net.Listen("tcp", "127.0.0.1:0") // the kernel accepts
		require.NoError(t, err)
		defer listener.Close()
		tablet := testTablet()
		tablet.PortMap = map[string]int32{"grpc": int32(listener.Addr().(*net.TCPAddr).Port)}
		_, err = newTestClient(t, ClientConfig{Silence: silence}).Reader(testContext(t), "uuid", tablet, false)
		unavailable(t, err)
		require.ErrorContains(t, err, "nothing was heard for 100ms")
	})
	t.Run("not there", func(t *testing.T) {
		tablet := testTablet()
		tablet.PortMap = map[string]int32{"grpc": 1}
		_, err := newTestClient(t, ClientConfig{}).Reader(testContext(t), "uuid", tablet, false)
		unavailable(t, err)
	})
	t.Run("falls silent", func(t *testing.T) {
		release := make(chan struct{})
		server := &countingServer{
			hello: func() (*vdiffscanpb.HelloResponse, error) {
				return &vdiffscanpb.HelloResponse{Versions: ourVersions().proto(), Protocol: ProtocolVersion}, nil
			},
			digest: func() error { <-release; return errors.New("too late") },
		}
		tablet := serve(t, server.register)
		client := newTestClient(t, ClientConfig{})
		r, err := client.Reader(testContext(t), "uuid", tablet, false)
		require.NoError(t, err)
		hearNothingFor(client, silence)
		_, err = r.Digest(testContext(t), testCall(), nil)
		unavailable(t, err)
		require.EqualError(t, err, "Digest of tablet zone1-0000000100 through the scan service: nothing was heard for 100ms")
		close(release)
	})
}

// Tests that a panic of the reader reaches the caller as an error and that the server goes on.
func TestPanicOverNetwork(t *testing.T) {
	noLeaks(t)
	s := newService(t, &fakeReader{digest: func(_ context.Context, call *scan.Call, _ scan.Progress) (*scan.Answer, error) {
		if call.Tables[0].Seed == 0 {
			panic("boom")
		}
		return answerFor(call), nil
	}}, Config{}, nil)
	tablet := serve(t, s.Register)
	r, err := newTestClient(t, ClientConfig{}).Reader(testContext(t), "uuid", tablet, false)
	require.NoError(t, err)
	call := testCall()
	call.Tables[0].Seed = 0
	_, err = r.Digest(testContext(t), call, nil)
	require.ErrorContains(t, err, "panic in Digest of the scan service")
	assert.Equal(t, vtrpcpb.Code_INTERNAL, vterrors.Code(err))
	_, err = r.Digest(testContext(t), testCall(), nil)
	require.NoError(t, err)
}

// Tests that the tablet of this process is called without the network, and that one of another cluster with the same
// alias is not taken for it.
func TestLocalTablet(t *testing.T) {
	noLeaks(t)
	remoteService := newService(t, answering(), Config{}, nil)
	tablet := serve(t, remoteService.Register)
	local := newService(t, answering(), Config{}, nil)
	client := newTestClient(t, ClientConfig{Local: testTablet().Alias, LocalReader: local})
	r, err := client.Reader(testContext(t), "uuid", tablet, false)
	require.NoError(t, err)
	assert.Same(t, local, r)
	assert.Empty(t, client.conns)
	r, err = client.Reader(testContext(t), "uuid", tablet, true)
	require.NoError(t, err)
	assert.IsType(t, &remote{}, r)
}
