// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"sync"
)

// slots lets one at a time change a vdiff. Unlike a mutex a slot is waited for with a context, and it
// may be held while waiting: for the run to end, for the database.
type slots struct {
	mu   sync.Mutex
	held map[string]chan struct{} // closed when the slot is given back
}

// take returns when the slot of a vdiff is the caller's, who gives it back by calling release.
func (s *slots) take(ctx context.Context, uuid string) (release func(), err error) {
	for {
		release, held := s.grab(uuid)
		if held == nil {
			return release, nil
		}
		select {
		case <-held:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// try takes the slot if nobody has it.
func (s *slots) try(uuid string) (release func(), ok bool) {
	release, held := s.grab(uuid)
	return release, held == nil
}

// grab takes the slot, or returns what is closed when its holder gives it back.
func (s *slots) grab(uuid string) (release func(), held <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c, ok := s.held[uuid]; ok {
		return nil, c
	}
	if s.held == nil {
		s.held = make(map[string]chan struct{})
	}
	c := make(chan struct{})
	s.held[uuid] = c
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.held, uuid)
		close(c)
	}, nil
}
