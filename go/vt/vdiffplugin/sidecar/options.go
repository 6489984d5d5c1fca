// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package sidecar

import (
	"encoding/json"
	"fmt"

	"google.golang.org/protobuf/encoding/protojson"

	tabletmanagerdatapb "vitess.io/vitess/go/vt/proto/tabletmanagerdata"
)

// encodeOptions returns the JSON that is stored in vdiff.options. It has the names of the fields in
// snake case, as the stock engine writes them and as both engines look for auto_retry in SQL.
func encodeOptions(options *tabletmanagerdatapb.VDiffOptions) (string, error) {
	b, err := json.Marshal(withParts(options))
	if err != nil {
		return "", fmt.Errorf("encode options: %w", err)
	}
	return string(b), nil
}

// decodeOptions reads stored options. They are never nil and neither are their parts: zero values
// where nothing could be read. Every call returns an object of its own.
func decodeOptions(stored []byte) (*tabletmanagerdatapb.VDiffOptions, error) {
	options := &tabletmanagerdatapb.VDiffOptions{}
	if len(stored) == 0 {
		return withParts(options), nil
	}
	// This reads field names in snake and in camel case and numbers as such and as strings, which is
	// all that any version has been able to store.
	err := (protojson.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(stored, options)
	if err == nil {
		return withParts(options), nil
	}
	// What the stock engine reads when it opens, for the sake of null.
	options = &tabletmanagerdatapb.VDiffOptions{}
	if json.Unmarshal(stored, options) == nil {
		return withParts(options), nil
	}
	return withParts(nil), fmt.Errorf("stored options: %w", err)
}

// withParts returns options with its three parts, where it has none new ones.
func withParts(options *tabletmanagerdatapb.VDiffOptions) *tabletmanagerdatapb.VDiffOptions {
	if options == nil {
		options = &tabletmanagerdatapb.VDiffOptions{}
	}
	if options.PickerOptions != nil && options.CoreOptions != nil && options.ReportOptions != nil {
		return options
	}
	// A copy: the caller's object may be in use elsewhere.
	options = options.CloneVT()
	if options.PickerOptions == nil {
		options.PickerOptions = &tabletmanagerdatapb.VDiffPickerOptions{}
	}
	if options.CoreOptions == nil {
		options.CoreOptions = &tabletmanagerdatapb.VDiffCoreOptions{}
	}
	if options.ReportOptions == nil {
		options.ReportOptions = &tabletmanagerdatapb.VDiffReportOptions{}
	}
	return options
}
