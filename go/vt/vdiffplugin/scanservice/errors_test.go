// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package scanservice

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"vitess.io/vitess/go/vt/vterrors"

	vtrpcpb "vitess.io/vitess/go/vt/proto/vtrpc"
)

// lateContext is a context whose deadline is over, and whose timer has not told it yet.
type lateContext struct{ context.Context }

func (lateContext) Deadline() (time.Time, bool) { return time.Now().Add(-time.Millisecond), true }

// Tests that a call that the tablet ended because its deadline was over is told from one that was cancelled, although the caller's own timer
// has not fired yet, and that any other answer of the tablet is not taken for the deadline's.
func TestTabletNoticesDeadlineFirst(t *testing.T) {
	reset := status.Error(codes.Canceled, "stream terminated by RST_STREAM with error code: CANCEL")
	err := explain(lateContext{t.Context()}, nil, "tablet a-1", "Digest", time.Second, reset)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	assert.Equal(t, vtrpcpb.Code_DEADLINE_EXCEEDED, vterrors.Code(err))

	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	err = explain(ctx, nil, "tablet a-1", "Digest", time.Second, reset)
	require.NotErrorIs(t, err, context.DeadlineExceeded)
	assert.Equal(t, vtrpcpb.Code_CANCELED, vterrors.Code(err))
}
