// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"os"
	"sync"
	"time"
)

// traffic counts the bytes on the connections to some ports: gRPC, when they are the gRPC ports of tablets. The kernel counts
// payload for each connection. All counters are read at the beginning and at the end, and a connection that ends in
// between is announced together with its counters: nothing is sampled, and no other traffic of the machine is in it.
//
// What the tablets' workflows and vtctld send is in it: about a kilobyte per second and tablet, and with writes on the source
// each changed row once.
type traffic struct {
	ports  map[uint16]bool
	before map[uint64]uint64 // bytes by cookie, at the beginning
	events *os.File
	ended  <-chan error

	mu    sync.Mutex
	total uint64 // of connections that have ended
	seen  map[uint64]bool

	stopOnce sync.Once
	stopErr  error
}

// announced is how long the end of the last connections is waited for.
const announced = 150 * time.Millisecond

// newTraffic begins to count. The result must be stopped.
func newTraffic(ports []int) (*traffic, error) {
	t := &traffic{ports: map[uint16]bool{}, before: map[uint64]uint64{}, seen: map[uint64]bool{}}
	for _, port := range ports {
		t.ports[uint16(port)] = true
	}
	now, err := connections()
	if err != nil {
		return nil, err
	}
	for _, c := range now {
		t.before[c.cookie] = c.bytes
	}
	// A connection that ends in this very moment is missed.
	t.events, t.ended, err = watchDestroyed(t.add)
	return t, err
}

func (t *traffic) add(c connection) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ports[c.port] && !t.seen[c.cookie] {
		t.seen[c.cookie] = true
		t.total += c.bytes - t.before[c.cookie]
	}
}

// stop returns the bytes since newTraffic, in both directions. Later calls return the same.
func (t *traffic) stop() (bytes int64, err error) {
	t.stopOnce.Do(func() {
		// Connections that have ended just now are announced a moment later.
		deadlineErr := t.events.SetReadDeadline(time.Now().Add(announced))
		endErr := <-t.ended
		now, err := connections()
		t.stopErr = errors.Join(deadlineErr, endErr, t.events.Close(), err)
		for _, c := range now {
			t.add(c)
		}
	})
	return int64(t.total), t.stopErr
}
