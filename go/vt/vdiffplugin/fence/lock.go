// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package fence

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path"
	"time"

	"vitess.io/vitess/go/vt/log"
	"vitess.io/vitess/go/vt/topo"
	"vitess.io/vitess/go/vt/vterrors"
)

// lockTTL is how long the topo lock of a workflow outlives the process that held it. While the process
// lives the lock is renewed.
const lockTTL = 30 * time.Second

// lockMarker is a file that makes the directory of a lock exist: a lock with a TTL can only be taken
// in a directory that is there.
const lockMarker = "vdiff"

// HeldLock is a topo lock that is held. topo.LockDescriptor is one.
type HeldLock interface {
	// Check returns an error when the lock is not held any more.
	Check(ctx context.Context) error
	Unlock(ctx context.Context) error
}

// TopoLock returns a Config.Lock which takes the same lock as (*topo.Server).LockName, the one that
// switching traffic and the stock engine take. LockName itself asks for a lease of 24 hours: a tablet
// that is killed in a fence would block its workflow, its own next fence included, for a day.
//
// The lock is renewed for as long as the context of the call lives, so that must outlive the lock: a
// bound on the wait for the lock has to be set by cancelling it, and not by a deadline.
func TopoLock(ts *topo.Server) func(ctx context.Context, name, action string) (HeldLock, error) {
	return func(ctx context.Context, name, action string) (HeldLock, error) {
		conn, err := ts.ConnForCell(ctx, topo.GlobalCell)
		if err != nil {
			return nil, vterrors.Wrap(err, "opening the global topo")
		}
		contents, err := lockContents(action)
		if err != nil {
			return nil, err
		}
		dir := path.Join(topo.NamedLocksPath, name)
		marker := path.Join(dir, lockMarker)
		if _, err := conn.Create(ctx, marker, []byte(contents)); err != nil && !topo.IsErrType(err, topo.NodeExists) {
			return nil, vterrors.Wrapf(err, "creating %s in the topo", marker)
		}
		lock, err := conn.LockWithTTL(ctx, dir, contents, lockTTL)
		if err != nil {
			return nil, err
		}
		return &topoLock{LockDescriptor: lock, conn: conn, marker: marker}, nil
	}
}

type topoLock struct {
	topo.LockDescriptor
	conn   topo.Conn
	marker string
}

// Unlock is part of HeldLock.
func (l *topoLock) Unlock(ctx context.Context) error {
	err := l.LockDescriptor.Unlock(ctx)
	// Whoever waits for the lock has seen the directory already; who comes later makes it again.
	if err := l.conn.Delete(ctx, l.marker, nil); err != nil && !topo.IsErrType(err, topo.NoNode) {
		log.Warn(fmt.Sprintf("removing %s from the topo: %v", l.marker, err))
	}
	return err
}

// lockContents tells a person who looks at the lock who holds it.
func lockContents(action string) (string, error) {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	contents, err := json.MarshalIndent(struct {
		Action, HostName, Time, Status string
	}{action, host, time.Now().Format(time.RFC3339), "Running"}, "", "  ")
	return string(contents), err
}
