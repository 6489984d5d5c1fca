// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package scanservice

import (
	"context"
	"sync/atomic"

	"google.golang.org/grpc/stats"
)

// Traffic counts bytes of messages on the network, as they are sent: compressed if they are, with gRPC's framing,
// without that of HTTP/2, TLS and TCP.
type Traffic struct {
	sent, received atomic.Int64
}

// Sent is the number of bytes that went out.
func (t *Traffic) Sent() int64 { return t.sent.Load() }

// Received is the number of bytes that came in.
func (t *Traffic) Received() int64 { return t.received.Load() }

type trafficKey struct{}

// WithTraffic makes calls under the context count in t, besides the client's own count.
func WithTraffic(ctx context.Context, t *Traffic) context.Context {
	return context.WithValue(ctx, trafficKey{}, t)
}

// trafficHandler is a stats.Handler that counts.
type trafficHandler struct{ total *Traffic }

var _ stats.Handler = trafficHandler{}

// TagRPC is part of stats.Handler. Nothing has to be added: HandleRPC gets the call's own context.
func (trafficHandler) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context { return ctx }

// HandleRPC is part of stats.Handler.
func (h trafficHandler) HandleRPC(ctx context.Context, s stats.RPCStats) {
	own, _ := ctx.Value(trafficKey{}).(*Traffic)
	switch s := s.(type) {
	case *stats.OutPayload:
		n := int64(s.WireLength)
		h.total.sent.Add(n)
		if own != nil {
			own.sent.Add(n)
		}
		metrics.network.Add("sent", n)
	case *stats.InPayload:
		n := int64(s.WireLength)
		h.total.received.Add(n)
		if own != nil {
			own.received.Add(n)
		}
		metrics.network.Add("received", n)
	}
}

// TagConn is part of stats.Handler.
func (trafficHandler) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }

// HandleConn is part of stats.Handler.
func (trafficHandler) HandleConn(context.Context, stats.ConnStats) {}
