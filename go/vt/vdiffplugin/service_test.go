// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package vdiffplugin

import (
	"context"
	"net"
	"sync"
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"vitess.io/vitess/go/vt/dbconfigs"
	"vitess.io/vitess/go/vt/servenv"
	"vitess.io/vitess/go/vt/vttablet/tabletmanager"

	tabletmanagerdatapb "vitess.io/vitess/go/vt/proto/tabletmanagerdata"
	tabletmanagerservicepb "vitess.io/vitess/go/vt/proto/tabletmanagerservice"
)

const serviceName = "tabletmanagerservice.TabletManager"

var grpcFlags = sync.OnceValue(func() *pflag.FlagSet {
	servenv.RegisterGRPCServerFlags()
	return servenv.GetFlagSetFor("vdiffplugin-test")
})

// withGRPC gives the process a gRPC server, the TabletManager service in --service-map, and gRPC
// switched on or not.
func withGRPC(t *testing.T, on bool) *grpc.Server {
	t.Helper()
	servenv.InitServiceMap("grpc", "tabletmanager")
	port := "0"
	if on {
		port = "15999" // nobody listens there
	}
	require.NoError(t, grpcFlags().Set("grpc-port", port))
	t.Cleanup(func() { _ = grpcFlags().Set("grpc-port", "0") })
	before := servenv.GRPCServer
	servenv.GRPCServer = grpc.NewServer()
	t.Cleanup(func() {
		servenv.GRPCServer.Stop()
		servenv.GRPCServer = before
	})
	return servenv.GRPCServer
}

// register does what a TabletManager does when its process begins to run.
func register(tm *tabletmanager.TabletManager) {
	for _, f := range tabletmanager.RegisterTabletManagers {
		f(tm)
	}
}

// dial serves s and returns a client of it.
func dial(t *testing.T, s *grpc.Server) tabletmanagerservicepb.TabletManagerClient {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = s.Serve(l)
	}()
	conn, err := grpc.NewClient(l.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	t.Cleanup(func() {
		_ = conn.Close()
		s.Stop()
		<-done
	})
	return tabletmanagerservicepb.NewTabletManagerClient(conn)
}

// TestRegister checks that our entry asks servenv as the stock one does whether the service is wanted,
// that there is exactly one TabletManager service when it is (a second one would end the process), and
// that another TabletManager of the same process gets the stock service.
func TestRegister(t *testing.T) {
	f := func(name string, on, other bool) {
		t.Helper()
		t.Run(name, func(t *testing.T) {
			tm := newTM(t)
			s := withGRPC(t, on)
			require.NoError(t, Install(tm, withEngine((&fakeEngine{}).build)))
			if other {
				tm = &tabletmanager.TabletManager{}
			}
			register(tm)
			_, found := s.GetServiceInfo()[serviceName]
			assert.Equal(t, on, found)
		})
	}
	f("gRPC is off", false, false)
	f("gRPC is off, another TabletManager", false, true)
	f("gRPC is on", true, false)
	f("gRPC is on, another TabletManager", true, true)
}

// TestVDiffOverGRPC asks for a VDiff over the network: the engine's answer, UNAVAILABLE while the
// engine is closed, a panic that is contained and leaves the server working, and an RPC that is not
// ours and still goes to the TabletManager.
func TestVDiffOverGRPC(t *testing.T) {
	tm := newTM(t)
	s := withGRPC(t, true)
	e := &fakeEngine{}
	require.NoError(t, Install(tm, withEngine(e.build)))
	register(tm)
	client := dial(t, s)
	ctx := t.Context()
	req := &tabletmanagerdatapb.VDiffRequest{VdiffUuid: "u"}

	_, err := client.VDiff(ctx, req)
	assert.Equal(t, codes.Unavailable, status.Code(err))
	assert.ErrorContains(t, err, "vdiff engine is closed")

	require.NoError(t, tm.QueryServiceControl.InitDBConfig(testTarget(), &dbconfigs.DBConfigs{}, nil))
	require.NoError(t, tm.QueryServiceControl.SetServingType(primary, noTime, true, ""))
	resp, err := client.VDiff(ctx, req)
	require.NoError(t, err)
	assert.Equal(t, "answer to u", resp.VdiffUuid)

	e.onPerform = func() error { panic("a bug") }
	_, err = client.VDiff(ctx, req)
	assert.ErrorContains(t, err, "caught panic during VDiff: a bug")

	e.onPerform = func() error { return context.Canceled }
	_, err = client.VDiff(ctx, req)
	assert.ErrorContains(t, err, "canceled")

	pong, err := client.Ping(ctx, &tabletmanagerdatapb.PingRequest{Payload: "hello"})
	require.NoError(t, err)
	assert.Equal(t, "hello", pong.Payload)
}
