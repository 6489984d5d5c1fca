// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package scanservice

import (
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	vtrpcpb "vitess.io/vitess/go/vt/proto/vtrpc"

	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/scan"
)

// ErrUnsupported is scan.ErrUnsupported: a tablet has no scan service, or one whose versions are unlike ours, now and for
// a while. Use errors.Is.
var ErrUnsupported = scan.ErrUnsupported

// errSilent is the cause with which a call is cancelled that is not heard from.
var errSilent = errors.New("no sign of life")

// callError is what the client returns: it has a code for vterrors, and can be unwrapped.
type callError struct {
	code    vtrpcpb.Code
	message string
	cause   error // nil when the message says it all
}

func (e *callError) Error() string {
	if e.cause == nil {
		return e.message
	}
	return e.message + ": " + e.cause.Error()
}

// ErrorCode is part of vterrors.ErrorWithCode.
func (e *callError) ErrorCode() vtrpcpb.Code { return e.code }

func (e *callError) Unwrap() error { return e.cause }

// explain returns the error of a call. ctx is that of the caller, cause what the call's own context was
// cancelled with.
func explain(ctx context.Context, cause error, where, what string, silence time.Duration, err error) error {
	message := fmt.Sprintf("%s of %s through the scan service", what, where)
	var known *callError
	if errors.As(err, &known) {
		return err
	}
	ctxErr := ctx.Err()
	if deadline, ok := ctx.Deadline(); ctxErr == nil && ok && !time.Now().Before(deadline) {
		ctxErr = context.DeadlineExceeded // the tablet knows the deadline too, and may be the first to notice
	}
	if ctxErr != nil {
		code := vtrpcpb.Code_CANCELED
		if errors.Is(ctxErr, context.DeadlineExceeded) {
			code = vtrpcpb.Code_DEADLINE_EXCEEDED
		}
		return &callError{code: code, message: message, cause: ctxErr}
	}
	if errors.Is(cause, errSilent) {
		return &callError{code: vtrpcpb.Code_UNAVAILABLE, message: fmt.Sprintf("%s: nothing was heard for %v", message, silence)}
	}
	s := status.Convert(err)
	if have, refused := refusedVersions(s); refused {
		return unsupported(fmt.Sprintf("%s: unlike versions (here %v, there %v)", message, ourVersions(), have), vtrpcpb.Code_FAILED_PRECONDITION)
	}
	return &callError{code: vtrpcpb.Code(s.Code()), message: message + ": " + s.Message()}
}

// unsupported returns an error that is ErrUnsupported.
func unsupported(message string, code vtrpcpb.Code) error {
	return &callError{code: code, message: message, cause: ErrUnsupported}
}

// isUnimplemented says whether a status can mean that the server does not have the service.
func isUnimplemented(err error) bool { return status.Code(err) == codes.Unimplemented }
