// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package plan

import (
	"vitess.io/vitess/go/vt/vterrors"

	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/sidecar"

	vtrpcpb "vitess.io/vitess/go/vt/proto/vtrpc"
)

// invalid is the error of a request or a rule that can never be planned.
func invalid(format string, args ...any) error {
	return sidecar.AsPermanent(vterrors.Errorf(vtrpcpb.Code_INVALID_ARGUMENT, format, args...))
}

// unsupported is the error of a rule that VReplication may run but that no row stream can be asked for.
func unsupported(format string, args ...any) error {
	return sidecar.AsPermanent(vterrors.Errorf(vtrpcpb.Code_UNIMPLEMENTED, format, args...))
}

// unfit is the error of schemas that do not fit the rule or each other.
func unfit(format string, args ...any) error {
	return sidecar.AsPermanent(vterrors.Errorf(vtrpcpb.Code_FAILED_PRECONDITION, format, args...))
}
