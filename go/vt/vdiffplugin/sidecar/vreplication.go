// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package sidecar

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"google.golang.org/protobuf/encoding/prototext"

	"vitess.io/vitess/go/sqltypes"
	"vitess.io/vitess/go/vt/binlog/binlogplayer"
	"vitess.io/vitess/go/vt/log"

	binlogdatapb "vitess.io/vitess/go/vt/proto/binlogdata"
)

const selectStreams = `select s.id as id, s.workflow as workflow, s.source as source, s.pos as pos, s.stop_pos as stop_pos, s.state as state,
	s.message as message, s.workflow_type as workflow_type,
	exists (select 1 from %#s.copy_state as c where c.vrepl_id = s.id) as copying
	from %#s.vreplication as s where s.db_name = %a`

// Streams is part of TableStore and FenceStore.
func (db *DB) Streams(ctx context.Context, workflow string) ([]*Stream, error) {
	return db.streams(ctx, true, " and s.workflow = %a", workflow)
}

// AllStreams is part of FenceStore. A stream whose source cannot be read has none, so that one
// stream does not keep the others from being repaired.
func (db *DB) AllStreams(ctx context.Context) ([]*Stream, error) {
	return db.streams(ctx, false, "")
}

func (db *DB) streams(ctx context.Context, strict bool, condition string, values ...any) ([]*Stream, error) {
	var streams []*Stream
	err := db.do(ctx, "read the streams", func(w *work) error {
		qr, err := w.exec(selectStreams+condition, append([]any{db.dbName}, values...)...)
		if err != nil {
			return err
		}
		streams = make([]*Stream, 0, len(qr.Rows))
		for _, row := range qr.Named().Rows {
			s, err := streamOf(row)
			if err != nil && strict {
				return err
			}
			if err != nil {
				log.Warn(err.Error())
			}
			streams = append(streams, s)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	// Not by MySQL, for the rules of thousands of tables: see Tables.
	slices.SortFunc(streams, func(a, b *Stream) int { return cmp.Compare(a.ID, b.ID) })
	return streams, nil
}

// streamOf reads a row of selectStreams. The stream is returned with an error too, as far as it can
// be read.
func streamOf(row sqltypes.RowNamedValues) (*Stream, error) {
	s := &Stream{
		ID:       row.AsInt32("id", 0),
		Workflow: row.AsString("workflow", ""),
		Pos:      row.AsString("pos", ""),
		StopPos:  row.AsString("stop_pos", ""),
		State:    row.AsString("state", ""),
		Message:  row.AsString("message", ""),
		Type:     binlogdatapb.VReplicationWorkflowType(row.AsInt32("workflow_type", 0)),
		Copying:  row.AsInt64("copying", 0) != 0,
	}
	// A tablet may be configured to store positions compressed.
	if pos := binlogplayer.MysqlUncompress(s.Pos); pos != nil {
		s.Pos = string(pos)
	}
	source := &binlogdatapb.BinlogSource{}
	if err := prototext.Unmarshal(row.AsBytes("source", nil), source); err != nil {
		return s, fmt.Errorf("source of stream %d of workflow %s: %w", s.ID, s.Workflow, err)
	}
	s.Source = source
	return s, nil
}
