// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package vdiffplugin

import (
	"context"
	"sync"

	"vitess.io/vitess/go/vt/dbconfigs"
	"vitess.io/vitess/go/vt/vterrors"
	"vitess.io/vitess/go/vt/vttablet/tabletmanager"

	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/differ"
	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/scan"
	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/scanservice"

	topodatapb "vitess.io/vitess/go/vt/proto/topodata"
	vtrpcpb "vitess.io/vitess/go/vt/proto/vtrpc"
)

// scans is the reading beside MySQL: the tablet's own, for its vdiffs and those of other tablets, and the way to
// other tablets. It is there on tablets of every type.
type scans struct {
	service *scanservice.Service

	tablet func() *topodatapb.Tablet

	mu     sync.Mutex
	local  *scan.Local
	client *scanservice.Client // nil before its first use
	closed bool
}

func newScans(tm *tabletmanager.TabletManager, c Config) *scans {
	s := &scans{tablet: tm.Tablet, service: scanservice.New(scanservice.Config{
		Tablet:        tm.Tablet,
		Throttle:      scanservice.TabletThrottle(tm.QueryServiceControl.CheckThrottler),
		MaxConcurrent: c.ScanConcurrency,
	})}
	s.service.RegisterOnRun()
	return s
}

// open is called once, when the connection parameters are complete.
func (s *scans) open(dbcfgs *dbconfigs.DBConfigs) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.local = scan.NewLocal(dbcfgs, s.service.MaxReads())
	s.service.Bind(s.local)
}

// reader returns what reads a tablet on behalf of a vdiff.
func (s *scans) reader(ctx context.Context, uuid string, tablet *topodatapb.Tablet, otherCluster bool) (differ.Reader, error) {
	s.mu.Lock()
	if s.client == nil && !s.closed {
		s.client = scanservice.NewClient(scanservice.ClientConfig{Local: s.tablet().Alias, LocalReader: s.service})
	}
	client := s.client
	s.mu.Unlock()
	if client == nil {
		return nil, vterrors.New(vtrpcpb.Code_UNAVAILABLE, "the tablet is shutting down")
	}
	return client.Reader(ctx, uuid, tablet, otherCluster)
}

// idle closes the connections to other tablets that nobody uses.
func (s *scans) idle() {
	s.mu.Lock()
	client := s.client
	s.mu.Unlock()
	if client != nil {
		client.CloseIdle()
	}
}

// end ends the reads, those of other tablets too, for which gRPC would wait.
func (s *scans) end(ctx context.Context) error { return s.service.Close(ctx) }

// close closes the connections, when nobody uses them any more.
func (s *scans) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	if s.client != nil {
		s.client.Close()
	}
	if s.local != nil {
		s.local.Close()
	}
}
