// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

// Package vdiffplugin puts this VDiff engine into a vttablet: it is the only package that a custom
// build imports. Such a build needs these lines beside its own:
//
//	vdiffplugin.RegisterFlags(cmd.Flags()) // --vdiff-plugin and its siblings
//
//	if err := vdiffplugin.Install(tm); err != nil { // tm is not started yet
//		return err
//	}
//	servenv.OnRun(vdiffplugin.AddStatusPart)
//
// Vitess has no hook for another VDiff engine: TabletManager.VDiffEngine is a concrete type. Install
// therefore uses three things that a TabletManager does allow.
//
//   - VDiffEngine may be nil: then the TabletManager neither opens nor closes it. Only the VDiff RPC
//     would use it all the same.
//   - QueryServiceControl is an interface, and a TabletManager tells it each change of its tablet's
//     type, serving or not. A decorator passes every call on and takes from two of them what the
//     engine needs: the connection parameters, and whether the tablet is PRIMARY.
//   - The gRPC service is made by an entry in tabletmanager.RegisterTabletManagers, from anything that
//     has the TabletManager's methods. Ours takes the place of the stock entry and differs from it in
//     one method, VDiff.
//
// The face may wait for the engine only at shutdown. A change of the tablet's type is never held up
// by a diff, and never fails because of one: the calls into the engine are made one after the other
// by a goroutine that exists only while there is something to tell.
package vdiffplugin
