// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package vdiffplugin

import (
	"context"
	"fmt"
	"reflect"
	"runtime"
	"strings"

	"vitess.io/vitess/go/vt/servenv"
	"vitess.io/vitess/go/vt/vttablet/grpctmserver"
	"vitess.io/vitess/go/vt/vttablet/tabletmanager"

	tabletmanagerdatapb "vitess.io/vitess/go/vt/proto/tabletmanagerdata"
)

// rpcTM is a TabletManager with another VDiff. A panic in it ends where the panic of any other
// TabletManager RPC ends: in HandleRPCPanic, which the gRPC service defers in each of its methods.
type rpcTM struct {
	*tabletmanager.TabletManager
	driver *driver
}

var _ tabletmanager.RPCTM = (*rpcTM)(nil)

// VDiff answers with the plug-in's engine.
func (tm *rpcTM) VDiff(ctx context.Context, req *tabletmanagerdatapb.VDiffRequest) (*tabletmanagerdatapb.VDiffResponse, error) {
	return tm.driver.perform(ctx, req)
}

// service stands in tabletmanager.RegisterTabletManagers where the stock gRPC service stood.
type service struct {
	tm    *tabletmanager.TabletManager
	rpc   *rpcTM
	stock tabletmanager.RegisterTabletManager
}

// register makes the gRPC service for the TabletManager of Install, on the same condition as the
// stock entry: --service-map. Any other TabletManager gets the stock service.
func (s *service) register(tm *tabletmanager.TabletManager) {
	if tm != s.tm {
		s.stock(tm)
		return
	}
	if servenv.GRPCCheckServiceMap("tabletmanager") {
		grpctmserver.RegisterForTest(servenv.GRPCServer, s.rpc)
	}
}

// replaceService puts our gRPC service in the place of the stock one and leaves the other entries as
// they are. A gRPC server dies of two services of one name, and a tablet with none cannot be
// managed, so it is an error if there is not exactly one to replace.
func replaceService(tm *tabletmanager.TabletManager, d *driver) error {
	list := tabletmanager.RegisterTabletManagers
	at := -1
	for i, f := range list {
		switch {
		case isOurs(f):
			return failed("it is already installed in another TabletManager of this process")
		case !isStock(f):
		case at >= 0:
			return failed("package grpctmserver has registered more than one TabletManager service")
		default:
			at = i
		}
	}
	if at < 0 {
		return failed(fmt.Sprintf("no TabletManager service of package grpctmserver among the %d registered ones", len(list)))
	}
	s := &service{tm: tm, rpc: &rpcTM{TabletManager: tm, driver: d}, stock: list[at]}
	list[at] = s.register
	return nil
}

// isOurs says whether f is the register method of a service. All method values of one method share
// their code.
func isOurs(f tabletmanager.RegisterTabletManager) bool {
	var s *service
	return codeOf(f) == codeOf(s.register)
}

// isStock says whether f is a function of package grpctmserver. The entry has no name of its own but
// the runtime knows the package it was compiled in.
func isStock(f tabletmanager.RegisterTabletManager) bool {
	pkg := strings.TrimSuffix(funcName(grpctmserver.RegisterForTest), "RegisterForTest") // with the dot
	return strings.HasPrefix(funcName(f), pkg)
}

func codeOf(f any) uintptr { return reflect.ValueOf(f).Pointer() }

func funcName(f any) string {
	if fn := runtime.FuncForPC(codeOf(f)); fn != nil {
		return fn.Name()
	}
	return ""
}
