// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package scanservice

import (
	"context"
	"fmt"

	vtrpcpb "vitess.io/vitess/go/vt/proto/vtrpc"

	vdiffscanpb "github.com/vttablet-ext/vttablet-ext/proto/vdiffscan"
)

// hello agrees on a protocol version, once per connection.
func (c *Client) hello(ctx context.Context, cn *conn, where string) (uint32, error) {
	select {
	case cn.greeting <- struct{}{}:
		defer func() { <-cn.greeting }()
	case <-ctx.Done():
		return 0, explain(ctx, nil, where, "use", 0, ctx.Err())
	}
	if protocol := c.agreed(cn); protocol != 0 {
		return protocol, nil
	}
	callCtx, cancel := context.WithTimeoutCause(ctx, c.config.Silence, errSilent)
	defer cancel()
	answer, err := cn.service.Hello(callCtx, &vdiffscanpb.HelloRequest{Versions: c.versions.proto()})
	if err != nil {
		if isUnimplemented(err) && ctx.Err() == nil {
			err = unsupported(where, vtrpcpb.Code_UNIMPLEMENTED)
		} else {
			err = explain(ctx, context.Cause(callCtx), where, "use", c.config.Silence, err)
		}
		c.remember(cn, err)
		return 0, err
	}
	// The other side says what it speaks, so that a mistake of its is found here and not in a digest.
	have := versionsOf(answer.GetVersions())
	protocol, ok := c.versions.agree(have)
	if !ok || protocol != answer.GetProtocol() {
		err := unsupported(fmt.Sprintf("%s: unlike versions of the scan service (here %v, there %v)", where, c.versions, have), vtrpcpb.Code_FAILED_PRECONDITION)
		c.remember(cn, err)
		return 0, err
	}
	c.setAgreed(cn, protocol)
	return protocol, nil
}

// connect returns a connection for one call, and the protocol version that was agreed on.
func (r *remote) connect(ctx context.Context) (*conn, uint32, error) {
	cn, err := r.client.conn(ctx, r.address, r.where)
	if err != nil {
		return nil, 0, err
	}
	protocol := r.client.agreed(cn)
	if protocol == 0 {
		if protocol, err = r.client.hello(ctx, cn, r.where); err != nil {
			r.client.done(cn)
			return nil, 0, err
		}
	}
	return cn, protocol, nil
}
