// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"vitess.io/vitess/go/vt/discovery"
	"vitess.io/vitess/go/vt/vterrors"

	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/sidecar"

	tabletmanagerdatapb "vitess.io/vitess/go/vt/proto/tabletmanagerdata"
	vtrpcpb "vitess.io/vitess/go/vt/proto/vtrpc"
)

// What a client that leaves an option out means: the defaults of vtctldclient.
const (
	defaultTimeoutSeconds  = 30
	defaultMaxExtraRows    = 1000
	defaultMaxSampleRows   = 10
	defaultColumnsTruncate = 128
)

// newOptions returns the options of a new vdiff: a copy of those of the request, so that no two
// vdiffs share any, with defaults for what the request leaves out.
func (e *Engine) newOptions(ctx context.Context, requested *tabletmanagerdatapb.VDiffOptions) (*tabletmanagerdatapb.VDiffOptions, error) {
	options := requested.CloneVT()
	if options == nil {
		options = &tabletmanagerdatapb.VDiffOptions{}
	}
	if options.PickerOptions == nil {
		options.PickerOptions = &tabletmanagerdatapb.VDiffPickerOptions{}
	}
	if options.CoreOptions == nil {
		options.CoreOptions = &tabletmanagerdatapb.VDiffCoreOptions{MaxExtraRowsToCompare: defaultMaxExtraRows}
	}
	if options.ReportOptions == nil {
		options.ReportOptions = &tabletmanagerdatapb.VDiffReportOptions{MaxSampleRows: defaultMaxSampleRows, RowDiffColumnTruncateAt: defaultColumnsTruncate}
	}
	if err := validateOptions(options); err != nil {
		return nil, err
	}
	setCoreDefaults(options.CoreOptions)
	picker := options.PickerOptions
	if picker.SourceCell == "" || picker.TargetCell == "" {
		cells, err := e.allCells(ctx)
		if err != nil {
			return nil, err
		}
		if picker.SourceCell == "" {
			picker.SourceCell = cells
		}
		if picker.TargetCell == "" {
			picker.TargetCell = cells
		}
	}
	return options, nil
}

// setDefaults completes the options of a stored vdiff, whoever stored it.
func setDefaults(v *sidecar.VDiff) {
	if v.Options == nil {
		v.Options = &tabletmanagerdatapb.VDiffOptions{}
	}
	if v.Options.PickerOptions == nil {
		v.Options.PickerOptions = &tabletmanagerdatapb.VDiffPickerOptions{}
	}
	if v.Options.CoreOptions == nil {
		v.Options.CoreOptions = &tabletmanagerdatapb.VDiffCoreOptions{}
	}
	if v.Options.ReportOptions == nil {
		v.Options.ReportOptions = &tabletmanagerdatapb.VDiffReportOptions{}
	}
	setCoreDefaults(v.Options.CoreOptions)
}

// setCoreDefaults replaces the zeros with which a vdiff could do nothing at all: no row to compare,
// no time to wait for replication.
func setCoreDefaults(core *tabletmanagerdatapb.VDiffCoreOptions) {
	if core.MaxRows <= 0 {
		core.MaxRows = math.MaxInt64
	}
	if core.TimeoutSeconds <= 0 {
		core.TimeoutSeconds = defaultTimeoutSeconds
	}
}

func validateOptions(o *tabletmanagerdatapb.VDiffOptions) error {
	for _, limit := range []struct {
		flag  string
		value int64
	}{
		{"limit", o.CoreOptions.MaxRows},
		{"filtered-replication-wait-time", o.CoreOptions.TimeoutSeconds},
		{"max-extra-rows-to-compare", o.CoreOptions.MaxExtraRowsToCompare},
		{"max-diff-duration", o.CoreOptions.MaxDiffSeconds},
		{"max-report-sample-rows", o.ReportOptions.MaxSampleRows},
	} {
		if limit.value < 0 {
			return invalid("--%s must not be negative, but is %d", limit.flag, limit.value)
		}
	}
	if types := o.PickerOptions.TabletTypes; types != "" {
		if _, _, err := discovery.ParseTabletTypesAndOrder(types); err != nil {
			return invalid("--tablet-types %q cannot be read: %v", types, err)
		}
	}
	return nil
}

// allCells returns the names of all cells, separated by commas.
func (e *Engine) allCells(ctx context.Context) (string, error) {
	cells, err := e.cfg.Topo.GetCellInfoNames(ctx)
	if err == nil && len(cells) == 0 {
		err = errors.New("there are none in the topo")
	}
	if err != nil {
		return "", fmt.Errorf("names of the cells: %w", err)
	}
	// A copy is sorted: whoever keeps the names may have given the same slice to another action.
	return strings.Join(slices.Sorted(slices.Values(cells)), ","), nil
}

func invalid(format string, args ...any) error {
	return vterrors.Errorf(vtrpcpb.Code_INVALID_ARGUMENT, format, args...)
}
