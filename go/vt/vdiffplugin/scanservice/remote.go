// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package scanservice

import (
	"context"
	"errors"
	"io"
	"time"

	"vitess.io/vitess/go/vt/vterrors"

	topodatapb "vitess.io/vitess/go/vt/proto/topodata"
	vtrpcpb "vitess.io/vitess/go/vt/proto/vtrpc"

	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/scan"
	vdiffscanpb "github.com/vttablet-ext/vttablet-ext/proto/vdiffscan"
)

// remote reads one tablet over the network.
type remote struct {
	client  *Client
	tablet  *topodatapb.Tablet
	uuid    string
	where   string
	address string
}

var _ Reader = (*remote)(nil)

// header begins a request.
func (r *remote) header(protocol uint32) *vdiffscanpb.Header {
	return &vdiffscanpb.Header{
		Protocol: protocol, Digest: r.client.versions.digest, Form: vdiffscanpb.Form_FORM_BINARY,
		Target: targetOf(r.tablet), VdiffUuid: r.uuid,
	}
}

// call runs one call on the tablet's connection. f pauses the watchdog while it does not wait for the tablet. It
// returns gRPC's errors, or its own as callErrors.
func (r *remote) call(ctx context.Context, what string, f func(ctx context.Context, s vdiffscanpb.VDiffScanClient, h *vdiffscanpb.Header, w *watchdog) error) error {
	cn, protocol, err := r.connect(ctx)
	if err != nil {
		return err
	}
	defer r.client.done(cn)
	callCtx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil) // ends a stream that was not read to its end
	w := newWatchdog(r.client.config.Silence, func() { cancel(errSilent) })
	err = f(callCtx, cn.service, r.header(protocol), w)
	w.stop()
	if err == nil {
		return nil
	}
	if isUnimplemented(err) && ctx.Err() == nil {
		// Either the tablet was replaced by one without the service, or its reader cannot do this.
		r.client.setAgreed(cn, 0)
		if _, helloErr := r.client.hello(ctx, cn, r.where); helloErr != nil {
			return helloErr
		}
	}
	err = explain(ctx, context.Cause(callCtx), r.where, what, r.client.config.Silence, err)
	if errors.Is(err, ErrUnsupported) {
		r.client.remember(cn, err)
	}
	return err
}

// Digest is scan.Digester. Progress may be nil.
func (r *remote) Digest(ctx context.Context, call *scan.Call, progress scan.Progress) (*scan.Answer, error) {
	if err := checkTables(call); err != nil {
		return nil, err
	}
	var answer *scan.Answer
	err := r.call(ctx, "Digest", func(ctx context.Context, s vdiffscanpb.VDiffScanClient, h *vdiffscanpb.Header, w *watchdog) error {
		stream, err := s.Digest(ctx, encodeCall(h, call))
		if err != nil {
			return err
		}
		for {
			message, err := stream.Recv()
			if errors.Is(err, io.EOF) {
				if answer == nil {
					return &callError{code: vtrpcpb.Code_INTERNAL, message: "Digest of " + r.where + ": the stream ended without an answer"}
				}
				return nil
			}
			if err != nil {
				return err
			}
			w.pause()
			switch m := message.GetMessage().(type) {
			case *vdiffscanpb.DigestResponse_Progress:
				if progress != nil {
					progress(m.Progress.GetRows(), m.Progress.GetWaiting())
				}
			case *vdiffscanpb.DigestResponse_Answer:
				if answer != nil {
					return &callError{code: vtrpcpb.Code_INTERNAL, message: "Digest of " + r.where + ": a second answer"}
				}
				if answer, err = decodeAnswer(m.Answer, call); err != nil {
					return &callError{code: vtrpcpb.Code_INTERNAL, message: "Digest of " + r.where, cause: err}
				}
			}
			w.resume()
		}
	})
	if err != nil {
		return nil, err
	}
	return answer, nil
}

// Rows is scan.RowReader. Progress may be nil.
func (r *remote) Rows(ctx context.Context, call *scan.RowsCall, start func(*scan.RowsStart) error, send func(*scan.RowsBatch) error, progress scan.Progress) error {
	var callback error // what start or send returned: the caller gets it as it is
	err := r.call(ctx, "Rows", func(ctx context.Context, s vdiffscanpb.VDiffScanClient, h *vdiffscanpb.Header, w *watchdog) error {
		request, err := encodeRowsCall(h, call)
		if err != nil {
			return &callError{code: vterrors.Code(err), message: "Rows of " + r.where, cause: err}
		}
		stream, err := s.Rows(ctx, request)
		if err != nil {
			return err
		}
		broken := func(what string) error {
			return &callError{code: vtrpcpb.Code_INTERNAL, message: "Rows of " + r.where + ": " + what}
		}
		rows := newAssembler(call)
		started := false
		for {
			message, err := stream.Recv()
			switch {
			case errors.Is(err, io.EOF) && (!started || rows.open != nil):
				return broken("the stream ended too early")
			case errors.Is(err, io.EOF):
				return nil
			case err != nil:
				return err
			}
			w.pause()
			switch m := message.GetMessage().(type) {
			case *vdiffscanpb.RowsResponse_Progress:
				if progress != nil {
					progress(m.Progress.GetRows(), m.Progress.GetWaiting())
				}
			case *vdiffscanpb.RowsResponse_Start:
				if started {
					return broken("a second start")
				}
				started = true
				callback = start(&scan.RowsStart{Position: m.Start.GetPosition(), Positions: m.Start.GetPositions()})
			case *vdiffscanpb.RowsResponse_Batch:
				if !started {
					return broken("rows before the start")
				}
				b, err := rows.add(m.Batch)
				if err != nil {
					return broken(err.Error())
				}
				if b != nil {
					callback = send(b)
				}
			}
			if callback != nil {
				return callback
			}
			w.resume()
		}
	})
	if callback != nil {
		return callback
	}
	return err
}

// watchdog ends a call that is not heard from. It has one user, who pauses it while nobody listens.
type watchdog struct {
	after time.Duration
	timer *time.Timer
}

func newWatchdog(after time.Duration, bite func()) *watchdog {
	return &watchdog{after: after, timer: time.AfterFunc(after, bite)}
}

func (w *watchdog) pause()  { w.timer.Stop() }
func (w *watchdog) resume() { w.timer.Reset(w.after) }
func (w *watchdog) stop()   { w.timer.Stop() }
