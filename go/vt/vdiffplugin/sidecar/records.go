// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package sidecar

import (
	"context"

	"vitess.io/vitess/go/vt/vttablet/tabletmanager/vdiff"

	binlogdatapb "vitess.io/vitess/go/vt/proto/binlogdata"
	tabletmanagerdatapb "vitess.io/vitess/go/vt/proto/tabletmanagerdata"
)

// VDiff is one row of _vt.vdiff.
type VDiff struct {
	ID       int64
	UUID     string
	Workflow string
	Keyspace string
	Shard    string
	State    vdiff.VDiffState
	// Options is never nil and neither are its three parts. When the stored JSON cannot be read it
	// holds zero values and OptionsErr says why; such a vdiff must not be run.
	Options    *tabletmanagerdatapb.VDiffOptions
	OptionsErr error
	LastError  string
	// StartedAt and CompletedAt are UTC in vdiff.TimestampFormat, "" for NULL.
	StartedAt   string
	CompletedAt string
}

// Table is one row of _vt.vdiff_table.
type Table struct {
	Name  string
	State vdiff.VDiffState
	// LastPK is the prototext of a tabletmanagerdata.VDiffTableLastPK, nil for NULL.
	LastPK       []byte
	TableRows    int64
	RowsCompared int64
	Mismatch     bool
	// Report is the JSON of report.Report, nil for NULL.
	Report []byte
}

// Progress is what one checkpoint of a table writes, in a single statement: either all of it is
// stored or nothing is.
type Progress struct {
	RowsCompared int64
	// LastPK nil stores NULL: the table starts again from its first row when it is resumed.
	LastPK   []byte
	Report   []byte
	Mismatch bool
	// State is stored too when it is not empty.
	State vdiff.VDiffState
}

// TableProgress is the Progress of one table.
type TableProgress struct {
	Table string
	*Progress
}

// Stream is one row of _vt.vreplication.
type Stream struct {
	ID       int32
	Workflow string
	Source   *binlogdatapb.BinlogSource
	Pos      string
	StopPos  string
	State    string // as stored, e.g. "Running"; see binlogdatapb.VReplicationWorkflowState
	Message  string
	Type     binlogdatapb.VReplicationWorkflowType
	// Copying is true while copy_state has rows of this stream.
	Copying bool
}

// StreamState is what a stream has to return to when a fence ends.
type StreamState struct {
	ID      int32  `json:"id"`
	State   string `json:"state"`
	Message string `json:"message,omitempty"`
	StopPos string `json:"stop_pos,omitempty"`
}

// Fence is the durable record that the streams of a workflow are stopped on behalf of a vdiff.
type Fence struct {
	VDiffID  int64         `json:"-"`
	UUID     string        `json:"uuid"`
	Workflow string        `json:"workflow"`
	Streams  []StreamState `json:"streams"`
}

// TableStore is the part of the store that the run of one vdiff needs.
type TableStore interface {
	// Streams returns the streams of a workflow on this tablet's database, ordered by id.
	Streams(ctx context.Context, workflow string) ([]*Stream, error)
	// EnsureTables makes a pending record for every table that has none and stores the estimate of
	// its rows (information_schema). analyze runs ANALYZE TABLE on each first.
	EnsureTables(ctx context.Context, vdiffID int64, tables []string, analyze bool) error
	// Tables returns the records of a vdiff's tables, ordered by name.
	Tables(ctx context.Context, vdiffID int64) ([]*Table, error)
	// SaveProgress writes p in one statement.
	SaveProgress(ctx context.Context, vdiffID int64, table string, p *Progress) error
	// SaveProgressOf writes the progress of several tables in one transaction, a statement for each.
	SaveProgressOf(ctx context.Context, vdiffID int64, tables []TableProgress) error
	// StartTables makes tables started and changes nothing else.
	StartTables(ctx context.Context, vdiffID int64, tables []string) error
	// Log adds a line to _vt.vdiff_log. The message is cut when it is too long for the column.
	Log(ctx context.Context, vdiffID int64, message string) error
}

// FenceStore is the part of the store that fences need.
type FenceStore interface {
	Streams(ctx context.Context, workflow string) ([]*Stream, error)
	// OpenFence stores f before any stream is touched, CloseFence says that every stream is back in
	// its state from before, and OpenFences returns the ones that were never closed: those of a
	// process that died.
	OpenFence(ctx context.Context, f *Fence) error
	CloseFence(ctx context.Context, f *Fence) error
	OpenFences(ctx context.Context) ([]*Fence, error)
	// AllStreams returns all streams of this tablet's database.
	AllStreams(ctx context.Context) ([]*Stream, error)
}
