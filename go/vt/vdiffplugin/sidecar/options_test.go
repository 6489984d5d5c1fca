// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package sidecar

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	tabletmanagerdatapb "vitess.io/vitess/go/vt/proto/tabletmanagerdata"
)

func fullOptions() *tabletmanagerdatapb.VDiffOptions {
	autoStart := false
	return &tabletmanagerdatapb.VDiffOptions{
		PickerOptions: &tabletmanagerdatapb.VDiffPickerOptions{TabletTypes: "in_order:RDONLY,REPLICA", SourceCell: "z1,z2", TargetCell: "z3"},
		CoreOptions: &tabletmanagerdatapb.VDiffCoreOptions{
			Tables: `a,"b"`, AutoRetry: true, MaxRows: math.MaxInt64, TimeoutSeconds: 30, MaxExtraRowsToCompare: 1000,
			UpdateTableStats: true, MaxDiffSeconds: 60, AutoStart: &autoStart,
		},
		ReportOptions: &tabletmanagerdatapb.VDiffReportOptions{OnlyPks: true, DebugQuery: true, MaxSampleRows: 10, RowDiffColumnTruncateAt: 128},
	}
}

// TestOptionsForBothEngines tests that what we store is read by us and in both ways in which the
// stock engine reads it (encoding/json when it opens, protojson when it resumes), and has the key
// that both engines look for in SQL.
func TestOptionsForBothEngines(t *testing.T) {
	want := fullOptions()
	stored, err := encodeOptions(want)
	require.NoError(t, err)

	ours, err := decodeOptions([]byte(stored))
	require.NoError(t, err)
	require.True(t, proto.Equal(want, ours))

	byJSON := &tabletmanagerdatapb.VDiffOptions{}
	require.NoError(t, json.Unmarshal([]byte(stored), byJSON))
	require.True(t, proto.Equal(want, byJSON))

	byProtoJSON := &tabletmanagerdatapb.VDiffOptions{}
	require.NoError(t, protojson.Unmarshal([]byte(stored), byProtoJSON))
	require.True(t, proto.Equal(want, byProtoJSON))

	var keys struct {
		CoreOptions struct {
			AutoRetry bool `json:"auto_retry"`
		} `json:"core_options"`
	}
	require.NoError(t, json.Unmarshal([]byte(stored), &keys))
	require.True(t, keys.CoreOptions.AutoRetry)
}

// TestOptionsOfOthers tests that options that others have stored are read: those of protojson, with
// large numbers as strings, and those with fields of a later version.
func TestOptionsOfOthers(t *testing.T) {
	want := fullOptions()
	stored, err := protojson.Marshal(want)
	require.NoError(t, err)
	got, err := decodeOptions(stored)
	require.NoError(t, err)
	require.True(t, proto.Equal(want, got))

	got, err = decodeOptions([]byte(`{"core_options": {"max_rows": 5, "from_the_future": [1]}, "more": "x"}`))
	require.NoError(t, err)
	require.Equal(t, int64(5), got.CoreOptions.MaxRows)
}

// TestOptionsGarbage tests that stored options of any shape give options with all parts, an error
// where they cannot be read, and never a panic; and that no two calls share an object.
func TestOptionsGarbage(t *testing.T) {
	f := func(stored string, wantErr bool) {
		t.Helper()
		got, err := decodeOptions([]byte(stored))
		require.Equal(t, wantErr, err != nil, "%s: %v", stored, err)
		require.NotNil(t, got.PickerOptions)
		require.NotNil(t, got.CoreOptions)
		require.NotNil(t, got.ReportOptions)
	}
	f("", false)
	f("null", false)
	f("{}", false)
	f(`{"core_options": null}`, false)
	f(`[]`, true)
	f(`"x"`, true)
	f(`17`, true)
	f(`{"core_options": "all"}`, true)
	f(`{"core_options": {"max_rows": "many"}}`, true)
	f(`{"core_options": {"auto_retry": "true"}}`, true)
	f(`{"report_options": [1, 2]}`, true)
	f(`{`, true)

	a, _ := decodeOptions(nil)
	b, _ := decodeOptions(nil)
	a.CoreOptions.Tables = "t1"
	require.Empty(t, b.CoreOptions.Tables)
}
