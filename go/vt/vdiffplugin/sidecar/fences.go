// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package sidecar

import (
	"context"
	"encoding/json"
	"fmt"

	"vitess.io/vitess/go/vt/log"
	"vitess.io/vitess/go/vt/vttablet/tabletmanager/vdiff"
)

// fenceLine is how a Fence is stored in vdiff_log. The first key tells it from other lines. The
// streams of a large workflow take several lines, written in one transaction: Part 0 is the first.
type fenceLine struct {
	State string `json:"fence"`
	Part  int    `json:"part,omitempty"`
	*Fence
}

const (
	fenceOpen   = "open"
	fenceClosed = "closed"
	// fencePrefix begins every fenceLine.
	fencePrefix = `{"fence":`
	// maxFenceLine leaves room in a line for what is around the streams.
	maxFenceLine = maxMessage - 4096
)

// encodeFence returns the lines that record an open fence.
func encodeFence(f *Fence) ([]string, error) {
	var lines []string
	part := &Fence{UUID: f.UUID, Workflow: f.Workflow}
	size := 0
	flush := func() error {
		b, err := json.Marshal(fenceLine{State: fenceOpen, Part: len(lines), Fence: part})
		if err != nil {
			return err
		}
		if len(b) > maxMessage {
			return fmt.Errorf("stream %d does not fit into the record of a fence: %d bytes", part.Streams[0].ID, len(b))
		}
		lines = append(lines, string(b))
		part, size = &Fence{UUID: f.UUID, Workflow: f.Workflow}, 0
		return nil
	}
	for _, s := range f.Streams {
		b, err := json.Marshal(s)
		if err != nil {
			return nil, err
		}
		if size > 0 && size+len(b) > maxFenceLine {
			if err := flush(); err != nil {
				return nil, err
			}
		}
		part.Streams = append(part.Streams, s)
		size += len(b) + 1
	}
	return lines, flush()
}

// openFences returns the fences of which the newest line is not closed. lines are ordered as they
// were written. A line that cannot be read is passed over: it must not keep others from being found.
func openFences(lines []logLine) []*Fence {
	newest := make(map[int64]*Fence)
	var order []int64
	for _, l := range lines {
		line := fenceLine{Fence: &Fence{}}
		if err := json.Unmarshal([]byte(l.message), &line); err != nil || line.Fence == nil {
			log.Warn(fmt.Sprintf("vdiff %d: the record of a fence cannot be read: %v", l.vdiffID, err))
			continue
		}
		f := line.Fence
		f.VDiffID = l.vdiffID
		switch before := newest[l.vdiffID]; {
		case line.State == fenceClosed:
			newest[l.vdiffID] = nil
		case line.State != fenceOpen:
			log.Warn(fmt.Sprintf("vdiff %d: the record of a fence has an unknown state", l.vdiffID))
		case line.Part > 0 && before != nil:
			before.Streams = append(before.Streams, f.Streams...)
		default:
			newest[l.vdiffID] = f
			order = append(order, l.vdiffID)
		}
	}
	var open []*Fence
	for _, id := range order {
		if f := newest[id]; f != nil {
			open = append(open, f)
			newest[id] = nil // order may have it twice
		}
	}
	return open
}

type logLine struct {
	vdiffID int64
	message string
}

// OpenFence is part of FenceStore.
func (db *DB) OpenFence(ctx context.Context, f *Fence) error {
	lines, err := encodeFence(f)
	if err != nil {
		return fmt.Errorf("open fence: %w", err)
	}
	found, err := db.change(ctx, "open fence", f.VDiffID, func(w *work, _ vdiff.VDiffState, _ string) error {
		for _, line := range lines {
			if err := w.log(f.VDiffID, line); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil && !found {
		return fmt.Errorf("open fence: %w", ErrNotFound)
	}
	return err
}

// CloseFence is part of FenceStore.
func (db *DB) CloseFence(ctx context.Context, f *Fence) error {
	line, err := json.Marshal(fenceLine{State: fenceClosed, Fence: &Fence{UUID: f.UUID, Workflow: f.Workflow}})
	if err != nil {
		return fmt.Errorf("close fence: %w", err)
	}
	// A vdiff that is gone has no fence: that is what was wanted.
	_, err = db.change(ctx, "close fence", f.VDiffID, func(w *work, _ vdiff.VDiffState, _ string) error {
		return w.log(f.VDiffID, string(line))
	})
	return err
}

// OpenFences is part of FenceStore.
func (db *DB) OpenFences(ctx context.Context) ([]*Fence, error) {
	var lines []logLine
	err := db.do(ctx, "read the open fences", func(w *work) error {
		qr, err := w.exec(`select l.vdiff_id as vdiff_id, l.message as message from %#s.vdiff_log as l join %#s.vdiff as v on v.id = l.vdiff_id
			where v.db_name = %a and l.message like %a order by l.id`, db.dbName, fencePrefix+"%")
		if err != nil {
			return err
		}
		lines = make([]logLine, 0, len(qr.Rows))
		for _, row := range qr.Named().Rows {
			lines = append(lines, logLine{vdiffID: row.AsInt64("vdiff_id", 0), message: row.AsString("message", "")})
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return openFences(lines), nil
}

// openFence says whether a vdiff has an open fence. The transaction holds the vdiff's row.
func (w *work) openFence(id int64) (bool, error) {
	qr, err := w.exec("select message as message from %#s.vdiff_log where vdiff_id = %a and message like %a order by id", id, fencePrefix+"%")
	if err != nil {
		return false, err
	}
	var lines []logLine
	for _, row := range qr.Named().Rows {
		lines = append(lines, logLine{vdiffID: id, message: row.AsString("message", "")})
	}
	return len(openFences(lines)) > 0, nil
}
