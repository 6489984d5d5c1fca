// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package fence

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"vitess.io/vitess/go/mysql/replication"
	"vitess.io/vitess/go/sqltypes"
	"vitess.io/vitess/go/vt/sqlparser"

	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/sidecar"

	binlogdatapb "vitess.io/vitess/go/vt/proto/binlogdata"
)

const server = "3e11fa47-71ca-11e1-9e33-c80aa9429562"

func position(n int) string { return "MySQL56/" + server + ":1-" + strconv.Itoa(n) }

// world is a tablet's streams and fence records, and a VReplication engine that moves a stream which
// runs to its stop position at once.
type world struct {
	mu      sync.Mutex
	streams []*sidecar.Stream
	fences  []*sidecar.Fence
	execs   []string
	failing func(query string) error
	stuck   bool   // streams that run do not move
	failed  string // the message of streams that are stuck, as VReplication leaves it when it tries again
	broken  string // streams that run to a position stop before it, with this message
	locks   int
	lockCtx context.Context // of the lock that was taken last
	lost    error           // what a check of the lock says
}

// Check and Unlock make the world its own lock.
func (w *world) Check(context.Context) error { return w.lost }

func (w *world) Unlock(context.Context) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.locks--
	return nil
}

func newWorld(states ...string) *world {
	w := &world{}
	for i, state := range states {
		w.streams = append(w.streams, &sidecar.Stream{
			ID: int32(i + 1), Workflow: "w", State: state, Pos: position(10), Source: &binlogdatapb.BinlogSource{Shard: strconv.Itoa(i)},
		})
	}
	return w
}

func (w *world) manager(t *testing.T) *Manager {
	t.Helper()
	return NewManager(Config{
		Store: w, VReplication: w, Keyspace: "ks", LockWait: time.Second, RestoreWait: 2 * time.Second,
		Lock: func(ctx context.Context, name, _ string) (HeldLock, error) {
			require.Equal(t, "ks/w", name)
			w.mu.Lock()
			defer w.mu.Unlock()
			w.locks++
			w.lockCtx = ctx
			return w, nil
		},
	})
}

func (w *world) states() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []string
	for _, s := range w.streams {
		out = append(out, s.State)
	}
	return strings.Join(out, ",")
}

func (w *world) Streams(_ context.Context, workflow string) ([]*sidecar.Stream, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []*sidecar.Stream
	for _, s := range w.streams {
		if s.Workflow == workflow {
			c := *s
			out = append(out, &c)
		}
	}
	return out, nil
}

func (w *world) AllStreams(ctx context.Context) ([]*sidecar.Stream, error) {
	return w.Streams(ctx, "w")
}

func (w *world) OpenFence(_ context.Context, f *sidecar.Fence) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.fences = append(w.fences, f)
	return nil
}

func (w *world) CloseFence(_ context.Context, f *sidecar.Fence) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.fences = slices.DeleteFunc(w.fences, func(o *sidecar.Fence) bool { return o.VDiffID == f.VDiffID })
	return nil
}

func (w *world) OpenFences(context.Context) ([]*sidecar.Fence, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.fences), nil
}

// Exec applies an update of vreplication by its meaning.
func (w *world) Exec(query string) (*sqltypes.Result, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.failing != nil {
		if err := w.failing(query); err != nil {
			return nil, err
		}
	}
	w.execs = append(w.execs, query)
	stmt, err := sqlparser.NewTestParser().Parse(query)
	if err != nil {
		return nil, err
	}
	update, ok := stmt.(*sqlparser.Update)
	if !ok {
		return nil, errors.New("not an update: " + query)
	}
	ids := sqlparser.String(update.Where.Expr.(*sqlparser.ComparisonExpr).Right)
	for _, s := range w.streams {
		if !slices.Contains(strings.FieldsFunc(ids, func(r rune) bool { return strings.ContainsRune("(, )", r) }), strconv.Itoa(int(s.ID))) {
			continue
		}
		for _, e := range update.Exprs {
			value := e.Expr.(*sqlparser.Literal).Val
			switch e.Name.Name.String() {
			case "state":
				s.State = value
			case "message":
				s.Message = value
			case "stop_pos":
				s.StopPos = value
			}
		}
		w.move(s)
	}
	return &sqltypes.Result{}, nil
}

func (w *world) move(s *sidecar.Stream) {
	if s.State != stateRunning || s.StopPos == "" {
		return
	}
	if w.stuck {
		if w.failed != "" {
			s.Message = w.failed
		}
		return
	}
	if w.broken != "" {
		s.State, s.Message = stateStopped, w.broken
		return
	}
	at, _ := replication.DecodePosition(s.Pos)
	stop, _ := replication.DecodePosition(s.StopPos)
	if !at.AtLeast(stop) {
		s.Pos = s.StopPos
	}
	s.State, s.Message = stateStopped, "Stopped at position "+s.StopPos
}
