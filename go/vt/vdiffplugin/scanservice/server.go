// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package scanservice

import (
	"context"
	"fmt"
	"sync"
	"time"

	"google.golang.org/grpc"

	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/scan"
	vdiffscanpb "github.com/vttablet-ext/vttablet-ext/proto/vdiffscan"
)

// grpcServer translates between the wire and a Service.
type grpcServer struct {
	vdiffscanpb.UnimplementedVDiffScanServer
	service *Service
}

// Hello agrees on versions or refuses them.
func (g *grpcServer) Hello(_ context.Context, req *vdiffscanpb.HelloRequest) (*vdiffscanpb.HelloResponse, error) {
	asked, have := versionsOf(req.GetVersions()), g.service.versions
	protocol, ok := have.agree(asked)
	if !ok {
		return nil, toGRPC(&versionError{asked: asked.String(), have: have})
	}
	return &vdiffscanpb.HelloResponse{Versions: have.proto(), Protocol: protocol}, nil
}

// admit checks what every request that reads begins with.
func (g *grpcServer) admit(h *vdiffscanpb.Header) error {
	have := g.service.versions
	if h.GetProtocol() < have.min || h.GetProtocol() > have.max || h.GetDigest() != have.digest || h.GetForm() != vdiffscanpb.Form_FORM_BINARY {
		asked := fmt.Sprintf("protocol %d, digest %d of form %v", h.GetProtocol(), h.GetDigest(), h.GetForm())
		return &versionError{asked: asked, have: have}
	}
	return checkTarget(h.GetTarget(), g.service.config.Tablet())
}

// Digest serves scan.Digester.
func (g *grpcServer) Digest(req *vdiffscanpb.DigestRequest, stream grpc.ServerStreamingServer[vdiffscanpb.DigestResponse]) (err error) {
	ctx := withVDiff(stream.Context(), req.GetHeader().GetVdiffUuid())
	defer func() { err = toGRPC(err) }()
	defer contain(ctx, "Digest", &err)
	if err := g.admit(req.GetHeader()); err != nil {
		return err
	}
	call, err := decodeDigestRequest(req)
	if err != nil {
		return err
	}
	if err := call.Check(); err != nil {
		return err
	}
	ctx, beat := startHeartbeat(ctx, g.service.interval, func(p *vdiffscanpb.Progress) error {
		return stream.Send(&vdiffscanpb.DigestResponse{Message: &vdiffscanpb.DigestResponse_Progress{Progress: p}})
	})
	defer beat.stop()
	answer, err := g.service.Digest(ctx, call, beat.set)
	if err != nil {
		return err
	}
	beat.stop()
	return stream.Send(&vdiffscanpb.DigestResponse{Message: &vdiffscanpb.DigestResponse_Answer{Answer: encodeAnswer(answer)}})
}

// Rows serves scan.RowReader.
func (g *grpcServer) Rows(req *vdiffscanpb.RowsRequest, stream grpc.ServerStreamingServer[vdiffscanpb.RowsResponse]) (err error) {
	ctx := withVDiff(stream.Context(), req.GetHeader().GetVdiffUuid())
	defer func() { err = toGRPC(err) }()
	defer contain(ctx, "Rows", &err)
	if err := g.admit(req.GetHeader()); err != nil {
		return err
	}
	call, err := decodeRowsRequest(req)
	if err != nil {
		return err
	}
	if err := call.Check(); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() {
		var err error
		defer func() { ended <- err }()
		defer contain(ctx, "Rows", &err)
		err = g.sendRows(ctx, call, stream)
	}()
	select {
	case err := <-ended:
		return err
	case <-g.service.ending.Done():
	}
	// It ends by itself now, unless it waits for a client that takes no rows: gRPC lets it wait until the handler has returned.
	timer := time.NewTimer(endingWait)
	defer timer.Stop()
	select {
	case err := <-ended:
		return err
	case <-timer.C:
		return errClosing()
	}
}

// endingWait is how long a call has to end by itself when the service ends.
const endingWait = 500 * time.Millisecond

func (g *grpcServer) sendRows(ctx context.Context, call *scan.RowsCall, stream grpc.ServerStreamingServer[vdiffscanpb.RowsResponse]) error {
	var mu sync.Mutex // a stream has one sender at a time
	send := func(m *vdiffscanpb.RowsResponse) error {
		mu.Lock()
		defer mu.Unlock()
		return stream.Send(m)
	}
	ctx, beat := startHeartbeat(ctx, g.service.interval, func(p *vdiffscanpb.Progress) error {
		return send(&vdiffscanpb.RowsResponse{Message: &vdiffscanpb.RowsResponse_Progress{Progress: p}})
	})
	defer beat.stop()
	start := func(s *scan.RowsStart) error {
		return send(&vdiffscanpb.RowsResponse{Message: &vdiffscanpb.RowsResponse_Start{
			Start: &vdiffscanpb.RowsStart{Position: s.Position, Positions: s.Positions},
		}})
	}
	batch := func(b *scan.RowsBatch) error {
		return sendBatch(b, func(p *vdiffscanpb.RowsBatch) error {
			return send(&vdiffscanpb.RowsResponse{Message: &vdiffscanpb.RowsResponse_Batch{Batch: p}})
		})
	}
	return g.service.Rows(ctx, call, start, batch, beat.set)
}
