// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package scanservice

import (
	"context"
	"slices"

	"vitess.io/vitess/go/vt/vterrors"

	vtrpcpb "vitess.io/vitess/go/vt/proto/vtrpc"

	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/scan"
)

// waitingForReader is the progress of a call that waits for its turn.
const waitingForReader = "waiting for a free reader"

// readsPerCheck is how many ranges are read between two questions to the throttler. Ranges of about a second come in
// calls of one; many in a call are tiny tables.
const readsPerCheck = 16

var _ scan.Digester = (*Service)(nil)

// Digest is scan.Digester, on this tablet: behind its limit and its throttler. Progress may be nil.
//
// A call that reads in the read view of its streams is throttled before that is opened only, for a read view
// that is held open while nothing is read costs MySQL more than the read. Any other call is a
// sequence of statements, so the throttler is asked between them, too.
func (s *Service) Digest(ctx context.Context, call *scan.Call, progress scan.Progress) (*scan.Answer, error) {
	if progress == nil {
		progress = func(int64, string) {}
	}
	var answer *scan.Answer
	err := s.serve(ctx, "Digest", func(ctx context.Context, reader Reader) error {
		if err := s.digests.acquire(ctx, func() { progress(0, waitingForReader) }); err != nil {
			return err
		}
		defer s.digests.release()
		var err error
		answer, err = s.digest(ctx, reader, call, progress)
		return err
	})
	if err != nil {
		return nil, err
	}
	return answer, nil
}

func (s *Service) digest(ctx context.Context, reader Reader, call *scan.Call, progress scan.Progress) (*scan.Answer, error) {
	var total scan.Answer
	var rows int64
	for i, part := range parts(call) {
		if err := s.config.Throttle.wait(ctx, func(reason string) { progress(rows, reason) }); err != nil {
			return nil, err
		}
		before := rows
		answer, err := reader.Digest(ctx, part, func(n int64, waiting string) { progress(before+n, waiting) })
		if err != nil {
			return nil, err
		}
		if answer == nil || len(answer.Digests) != len(part.Tables) {
			return nil, vterrors.New(vtrpcpb.Code_INTERNAL, "the reader did not answer for every range")
		}
		for _, d := range answer.Digests {
			rows += d.Read
			metrics.rows.Add(d.Read)
			metrics.bytes.Add(d.Bytes)
		}
		if i == 0 {
			total = *answer
			continue
		}
		total.Digests = append(total.Digests, answer.Digests...)
		total.Executed = answer.Executed
		total.ReadView = max(total.ReadView, answer.ReadView)
	}
	return &total, nil
}

// parts cuts a call where the throttler may be asked. A position that was waited for stays executed, so only the
// first part has it.
func parts(call *scan.Call) []*scan.Call {
	if len(call.Streams) > 0 || len(call.Tables) <= readsPerCheck {
		return []*scan.Call{call}
	}
	var out []*scan.Call
	for tables := range slices.Chunk(call.Tables, readsPerCheck) {
		part := &scan.Call{Tables: tables}
		if len(out) == 0 {
			part.WaitFor, part.WaitTimeout = call.WaitFor, call.WaitTimeout
		}
		out = append(out, part)
	}
	return out
}
