// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package scanservice

import (
	"fmt"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"vitess.io/vitess/go/vt/vterrors"

	vtrpcpb "vitess.io/vitess/go/vt/proto/vtrpc"

	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/digest"
	vdiffscanpb "github.com/vttablet-ext/vttablet-ext/proto/vdiffscan"
)

// ProtocolVersion is the newest version of the protocol that this code speaks, MinProtocolVersion the oldest.
const (
	ProtocolVersion    = 2
	MinProtocolVersion = 2
)

// versions is what one side speaks.
type versions struct {
	min, max, digest uint32
}

func ourVersions() versions {
	return versions{min: MinProtocolVersion, max: ProtocolVersion, digest: digest.Version}
}

func (v versions) proto() *vdiffscanpb.Versions {
	return &vdiffscanpb.Versions{
		MinProtocol: v.min, MaxProtocol: v.max, Digest: v.digest, Forms: []vdiffscanpb.Form{vdiffscanpb.Form_FORM_BINARY},
	}
}

func versionsOf(p *vdiffscanpb.Versions) versions {
	return versions{min: p.GetMinProtocol(), max: p.GetMaxProtocol(), digest: p.GetDigest()}
}

func (v versions) String() string {
	return fmt.Sprintf("protocol %d to %d, digest %d", v.min, v.max, v.digest)
}

// agree returns the newest protocol version that both sides speak.
func (v versions) agree(other versions) (uint32, bool) {
	newest := min(v.max, other.max)
	return newest, v.digest == other.digest && newest >= max(v.min, other.min)
}

// versionError refuses a request because of its versions. On the wire it has the tablet's versions as a detail.
type versionError struct {
	asked string
	have  versions
}

func (e *versionError) Error() string {
	return fmt.Sprintf("unlike versions of the scan service: asked for %s, this tablet speaks %v", e.asked, e.have)
}

// ErrorCode is part of vterrors.ErrorWithCode.
func (e *versionError) ErrorCode() vtrpcpb.Code { return vtrpcpb.Code_FAILED_PRECONDITION }

// toGRPC returns an error as gRPC sends it.
func toGRPC(err error) error {
	e, ok := err.(*versionError)
	if !ok {
		return vterrors.ToGRPC(err)
	}
	s := status.New(codes.FailedPrecondition, e.Error())
	if detailed, err := s.WithDetails(e.have.proto()); err == nil {
		s = detailed
	}
	return s.Err()
}

// refusedVersions says whether a status refuses the versions of a request, and which ones the tablet speaks.
func refusedVersions(s *status.Status) (versions, bool) {
	if s.Code() != codes.FailedPrecondition {
		return versions{}, false
	}
	for _, d := range s.Details() {
		if p, ok := d.(*vdiffscanpb.Versions); ok {
			return versionsOf(p), true
		}
	}
	return versions{}, false
}
