// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package sidecar

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func testFence(id int64, streams, messageLen int) *Fence {
	f := &Fence{VDiffID: id, UUID: "7d3d4ab8-0000-4000-8000-000000000001", Workflow: "w"}
	for i := range streams {
		f.Streams = append(f.Streams, StreamState{ID: int32(i + 1), State: "Running", Message: strings.Repeat("é\"", messageLen/4)})
	}
	return f
}

func logLines(t *testing.T, f *Fence) []logLine {
	t.Helper()
	messages, err := encodeFence(f)
	require.NoError(t, err)
	var lines []logLine
	for _, m := range messages {
		require.True(t, strings.HasPrefix(m, fencePrefix), m[:min(80, len(m))])
		require.LessOrEqual(t, len(m), maxMessage)
		lines = append(lines, logLine{vdiffID: f.VDiffID, message: m})
	}
	return lines
}

func closedLine(t *testing.T, id int64) logLine {
	t.Helper()
	b, err := json.Marshal(fenceLine{State: fenceClosed, Fence: &Fence{UUID: "u", Workflow: "w"}})
	require.NoError(t, err)
	return logLine{vdiffID: id, message: string(b)}
}

// TestFenceLines tests that a fence comes back from its lines as it was, also when it has more streams
// than one line holds, and that a single stream that fits into no line is an error.
func TestFenceLines(t *testing.T) {
	f := func(streams, messageLen int, wantSeveral bool) {
		t.Helper()
		want := testFence(5, streams, messageLen)
		lines := logLines(t, want)
		require.Equal(t, wantSeveral, len(lines) > 1)
		require.Equal(t, []*Fence{want}, openFences(lines))
	}
	f(0, 0, false)
	f(1, 0, false)
	f(8, 1000, false)
	f(1000, 1000, true)

	_, err := encodeFence(testFence(5, 1, 2*maxMessage))
	require.Error(t, err)
}

// TestOpenFences tests that the newest line of each vdiff decides, in any interleaving, and that lines
// that cannot be read hide no others.
func TestOpenFences(t *testing.T) {
	one, two := testFence(1, 2, 0), testFence(2, 3, 0)
	large := testFence(1, 300, 1000)
	l := func(f *Fence) []logLine { return logLines(t, f) }
	f := func(want []*Fence, parts ...[]logLine) {
		t.Helper()
		var lines []logLine
		for _, p := range parts {
			lines = append(lines, p...)
		}
		require.Equal(t, want, openFences(lines))
	}
	closed := func(id int64) []logLine { return []logLine{closedLine(t, id)} }
	garbage := []logLine{
		{1, `{"fence":`}, {1, `{"fence":5}`}, {1, `{"fence":"ajar","uuid":"u"}`}, {2, `{"fence":"open","streams":"x"}`}, {1, ``},
	}

	f(nil)
	f(nil, closed(1))
	f([]*Fence{one}, l(one))
	f(nil, l(one), closed(1))
	f([]*Fence{two}, l(one), l(two), closed(1))
	f([]*Fence{one}, l(one), l(two), closed(2))
	f([]*Fence{one}, l(one), closed(1), l(one))
	f([]*Fence{large}, l(one), l(large), closed(2))
	f([]*Fence{two, large}, l(two), l(large))
	f([]*Fence{one, two}, garbage, l(one), garbage, l(two), garbage)
	f([]*Fence{two}, l(one), garbage, closed(1), l(two))
}
