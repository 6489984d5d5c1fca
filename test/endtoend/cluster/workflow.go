// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"vitess.io/vitess/go/vt/vtctl/workflow"
	"vitess.io/vitess/go/vt/vttablet/tabletmanager/vdiff"
)

// Workflow is a VReplication workflow, by its target keyspace and name.
type Workflow struct {
	c        *Cluster
	Keyspace string
	Name     string
}

// Workflow names a workflow; it need not exist.
func (c *Cluster) Workflow(keyspace, name string) *Workflow {
	return &Workflow{c: c, Keyspace: keyspace, Name: name}
}

// MoveTables creates the workflow with the given arguments of its create command (such as
// --source-keyspace src --all-tables) and waits until it has copied everything.
func (w *Workflow) MoveTables(ctx context.Context, args ...string) error {
	return w.create(ctx, "MoveTables", args)
}

// Reshard creates the workflow with --source-shards and --target-shards and waits until it has copied
// everything.
func (w *Workflow) Reshard(ctx context.Context, args ...string) error {
	return w.create(ctx, "Reshard", args)
}

func (w *Workflow) create(ctx context.Context, command string, args []string) error {
	all := append([]string{command, "--workflow", w.Name, "--target-keyspace", w.Keyspace, "create"}, args...)
	if _, err := w.c.Vtctl(ctx, all...); err != nil {
		return err
	}
	return w.WaitRunning(ctx)
}

// Cancel ends a workflow made by command ("MoveTables", ...) and removes what it copied.
func (w *Workflow) Cancel(ctx context.Context, command string) error {
	_, err := w.c.Vtctl(ctx, command, "--workflow", w.Name, "--target-keyspace", w.Keyspace, "cancel")
	return err
}

// Stream is a stream of a workflow as _vt.vreplication has it.
type Stream struct {
	Tablet  string // alias of the target primary
	ID      string
	State   string
	Message string
	StopPos string
	Pos     string
	Copying bool
}

// Streams reads the streams from the primaries of the target keyspace.
func (w *Workflow) Streams(ctx context.Context) ([]Stream, error) {
	var streams []Stream
	for _, t := range w.Primaries() {
		result, err := t.Query(ctx, fmt.Sprintf(`select id, state, message, stop_pos, pos,
			(select count(*) from _vt.copy_state where vrepl_id = id) as copying
			from _vt.vreplication where workflow = '%s' and db_name = '%s' order by id`, w.Name, t.DBName()))
		if err != nil {
			return nil, err
		}
		for _, row := range result.Rows {
			streams = append(streams, Stream{
				Tablet: t.Alias, ID: row[0].ToString(), State: row[1].ToString(), Message: row[2].ToString(),
				StopPos: row[3].ToString(), Pos: row[4].ToString(), Copying: row[5].ToString() != "0",
			})
		}
	}
	return streams, nil
}

// Primaries returns the primaries of the target keyspace, by shard.
func (w *Workflow) Primaries() []*Tablet {
	var primaries []*Tablet
	seen := make(map[string]bool)
	for _, t := range w.c.Tablets() {
		if t.Keyspace == w.Keyspace && !seen[t.Shard] {
			seen[t.Shard] = true
			if p := w.c.Primary(t.Keyspace, t.Shard); p != nil {
				primaries = append(primaries, p)
			}
		}
	}
	return primaries
}

// WaitRunning waits until every stream runs and none copies any more.
func (w *Workflow) WaitRunning(ctx context.Context) error {
	return w.WaitStreams(ctx, "Running")
}

// WaitStreams waits until every stream is in a state, and untouched by any vdiff: without a message
// and without a stop position.
func (w *Workflow) WaitStreams(ctx context.Context, state string) error {
	var last []Stream
	err := WaitFor(ctx, "streams of "+w.Name+" to be "+state, 50*time.Millisecond, func(ctx context.Context) (bool, error) {
		streams, err := w.Streams(ctx)
		if err != nil {
			return false, nil
		}
		last = streams
		for _, s := range streams {
			// A stream that has not begun to copy yet is Running, too, but has no position.
			if s.State != state || s.Copying || s.Pos == "" || s.StopPos != "" {
				return false, nil
			}
		}
		return len(streams) > 0, nil
	})
	if err != nil {
		return fmt.Errorf("%w: streams are %+v", err, last)
	}
	return nil
}

// VDiff runs a VDiff command of vtctldclient on the workflow and returns what it printed.
func (w *Workflow) VDiff(ctx context.Context, args ...string) (string, error) {
	return w.c.Vtctl(ctx, append([]string{"VDiff", "--workflow", w.Name, "--target-keyspace", w.Keyspace}, args...)...)
}

// VDiffCreate creates a vdiff with the given flags and returns its UUID. vtctld refuses one while it
// takes a stream for lagging, as a stream that has just been started may be: that is waited for.
func (w *Workflow) VDiffCreate(ctx context.Context, flags ...string) (string, error) {
	var out string
	err := WaitFor(ctx, "vtctld to take the streams of "+w.Name+" for running", 100*time.Millisecond, func(ctx context.Context) (bool, error) {
		var err error
		out, err = w.VDiff(ctx, append([]string{"create", "--format", "json"}, flags...)...)
		if err != nil && strings.Contains(err.Error(), "not all streams are running") {
			return false, nil
		}
		return true, err
	})
	if err != nil {
		return "", err
	}
	var created struct{ UUID string }
	if err := json.Unmarshal([]byte(out), &created); err != nil {
		return "", fmt.Errorf("VDiff create printed %q: %w", out, err)
	}
	return created.UUID, nil
}

// VDiffShow returns the summary of a vdiff, as vtctldclient shows it with --verbose.
func (w *Workflow) VDiffShow(ctx context.Context, uuid string) (*workflow.Summary, error) {
	out, err := w.VDiff(ctx, "show", uuid, "--format", "json", "--verbose")
	if err != nil {
		return nil, err
	}
	s := &workflow.Summary{}
	if err := json.Unmarshal([]byte(out), s); err != nil {
		return nil, fmt.Errorf("VDiff show printed %q: %w", out, err)
	}
	return s, nil
}

// WaitVDiff waits until the vdiff is in one of the states and returns its summary. A vdiff that is in
// error fails the wait, unless that is what is waited for.
func (w *Workflow) WaitVDiff(ctx context.Context, uuid string, states ...vdiff.VDiffState) (*workflow.Summary, error) {
	var last *workflow.Summary
	var lastErr error
	err := WaitFor(ctx, fmt.Sprintf("vdiff %s to be %v", uuid, states), 100*time.Millisecond, func(ctx context.Context) (bool, error) {
		s, err := w.VDiffShow(ctx, uuid)
		if err != nil {
			lastErr = err
			return false, nil // a tablet may be down at the moment
		}
		last, lastErr = s, nil
		for _, state := range states {
			if s.State == state {
				return true, nil
			}
		}
		return false, nil
	})
	if err != nil {
		if last != nil {
			return last, fmt.Errorf("%w: it is %s, errors %v, %s", err, last.State, last.Errors, tables(last))
		}
		return nil, fmt.Errorf("%w: %w", err, lastErr)
	}
	return last, nil
}

// Diff creates a vdiff, waits until it is completed and returns its summary.
func (w *Workflow) Diff(ctx context.Context, flags ...string) (*workflow.Summary, error) {
	uuid, err := w.VDiffCreate(ctx, flags...)
	if err != nil {
		return nil, err
	}
	return w.WaitVDiff(ctx, uuid, vdiff.CompletedState)
}

func tables(s *workflow.Summary) string {
	var out []string
	for name, t := range s.TableSummaryMap {
		out = append(out, fmt.Sprintf("%s: %s %d rows", name, t.State, t.RowsCompared))
	}
	return strings.Join(out, ", ")
}
