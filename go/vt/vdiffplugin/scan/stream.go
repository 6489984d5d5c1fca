// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package scan

import (
	"context"
	"fmt"
	"io"
	"maps"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"vitess.io/vitess/go/vt/log"
	"vitess.io/vitess/go/vt/topo/topoproto"
	"vitess.io/vitess/go/vt/vterrors"
	"vitess.io/vitess/go/vt/vttablet/queryservice"
	"vitess.io/vitess/go/vt/vttablet/tabletconn"

	binlogdatapb "vitess.io/vitess/go/vt/proto/binlogdata"
	querypb "vitess.io/vitess/go/vt/proto/query"
	topodatapb "vitess.io/vitess/go/vt/proto/topodata"
	vtrpcpb "vitess.io/vitess/go/vt/proto/vtrpc"
)

// streamDepth is how many packets a stream reads ahead of its consumer.
const streamDepth = 2

// Dialer opens streams. The zero value reads every tablet over gRPC.
type Dialer struct {
	// Local and LocalService, when set, are the tablet of this process and its query service.
	Local        *topodatapb.TabletAlias
	LocalService queryservice.QueryService

	mu sync.Mutex
	// abandoned has a channel for each stream whose opening was given up and that has not ended yet; it is closed when it has. All vdiffs
	// share it: while one waits, others give up theirs, which a WaitGroup does not allow.
	abandoned map[chan struct{}]struct{}
}

// Wait waits, for at most d, until the streams whose opening was given up have ended: the tablet
// notices only when its lock wait, or the sort of a query, is over.
func (d *Dialer) Wait(most time.Duration) {
	d.mu.Lock()
	waitFor := slices.Collect(maps.Keys(d.abandoned))
	d.mu.Unlock()
	timer := time.NewTimer(most)
	defer timer.Stop()
	for _, ended := range waitFor {
		select {
		case <-ended:
		case <-timer.C:
			return
		}
	}
}

// Request says what to read and where.
type Request struct {
	Tablet *topodatapb.Tablet
	// OtherCluster says that the tablet is of a mounted cluster, where aliases are not this cluster's.
	OtherCluster bool
	Query        string
	// LastPK, when set, makes the stream start behind that key: one row with the columns of the
	// table's key.
	LastPK *querypb.QueryResult
	// OpenTimeout bounds the time until the read view exists (table lock included); 0 is no bound.
	OpenTimeout time.Duration
	// Throttled, when set, is called now and then while the tablet's throttler holds the stream back.
	Throttled func(reason string)
}

// Stream is a running VStreamRows call. Close it in any case. It has one consumer.
type Stream struct {
	tablet   *topodatapb.Tablet
	position string
	fields   []*querypb.Field
	cancel   context.CancelFunc
	batches  chan *Batch
	err      error // set before ended and batches are closed
	ended    chan struct{}
	wg       sync.WaitGroup
}

// Open starts a stream and returns when its read view exists. ctx bounds the whole stream.
func (d *Dialer) Open(ctx context.Context, req Request) (*Stream, error) {
	ctx, cancel := context.WithCancel(ctx)
	s := &Stream{tablet: req.Tablet, cancel: cancel, batches: make(chan *Batch, streamDepth), ended: make(chan struct{})}
	opened := make(chan struct{})
	s.wg.Go(func() {
		defer close(s.batches)
		defer close(s.ended)
		// A service in this process is not behind the gRPC server, which contains panics of its own.
		defer func() {
			if p := recover(); p != nil {
				log.Error(fmt.Sprintf("panic in a row stream: %v\n%s", p, debug.Stack()))
				s.err = vterrors.Errorf(vtrpcpb.Code_INTERNAL, "panic in a row stream: %v", p)
			}
		}()
		s.err = d.run(ctx, s, req, opened)
	})

	var timeout <-chan time.Time
	if req.OpenTimeout > 0 {
		timer := time.NewTimer(req.OpenTimeout)
		defer timer.Stop()
		timeout = timer.C
	}
	where := topoproto.TabletAliasString(req.Tablet.Alias)
	select {
	case <-opened:
		return s, nil
	case <-timeout:
		d.abandon(s)
		return nil, vterrors.Errorf(vtrpcpb.Code_DEADLINE_EXCEEDED,
			"tablet %s: no read view within %v: a lock on the table, or a source that is too far behind (history length, replication lag), holds it back", where, req.OpenTimeout)
	case <-ctx.Done():
		d.abandon(s)
		return nil, vterrors.Wrapf(ctx.Err(), "tablet %s: opening a read view", where)
	case <-s.ended:
		select {
		case <-opened: // a short table: it was read whole already
			return s, nil
		default:
		}
		err := s.err
		s.Close()
		if err == nil {
			err = vterrors.Errorf(vtrpcpb.Code_INTERNAL, "the stream told no position")
		}
		return nil, vterrors.Wrapf(err, "tablet %s: opening a read view", where)
	}
}

// abandon cancels a stream that is not open yet without waiting for its end.
func (d *Dialer) abandon(s *Stream) {
	s.cancel()
	ended := make(chan struct{})
	d.mu.Lock()
	if d.abandoned == nil {
		d.abandoned = make(map[chan struct{}]struct{})
	}
	d.abandoned[ended] = struct{}{}
	d.mu.Unlock()
	go func() {
		s.Close()
		d.mu.Lock()
		delete(d.abandoned, ended)
		d.mu.Unlock()
		close(ended)
	}()
}

func (d *Dialer) run(ctx context.Context, s *Stream, req Request, opened chan<- struct{}) error {
	service, done, err := d.dial(ctx, req)
	if err != nil {
		return err
	}
	defer done()
	call := &binlogdatapb.VStreamRowsRequest{
		Target:  &querypb.Target{Keyspace: req.Tablet.Keyspace, Shard: req.Tablet.Shard, TabletType: req.Tablet.Type},
		Query:   req.Query,
		Lastpk:  req.LastPK,
		Options: &binlogdatapb.VStreamOptions{NoTimeouts: true},
	}
	return service.VStreamRows(ctx, call, func(resp *binlogdatapb.VStreamRowsResponse) error {
		if resp.Throttled && req.Throttled != nil {
			req.Throttled(resp.ThrottledReason)
		}
		if len(resp.Fields) > 0 && s.fields == nil {
			for _, f := range resp.Fields {
				s.fields = append(s.fields, f.CloneVT())
			}
			s.position = resp.Gtid
			close(opened)
		}
		if len(resp.Rows) == 0 {
			return nil
		}
		if s.fields == nil {
			return vterrors.Errorf(vtrpcpb.Code_INTERNAL, "rows arrived before their fields")
		}
		b := NewBatch(len(s.fields), resp.Rows)
		select {
		case s.batches <- b:
			return nil
		case <-ctx.Done():
			b.Release()
			return ctx.Err()
		}
	})
}

func (d *Dialer) dial(ctx context.Context, req Request) (queryservice.QueryService, func(), error) {
	if d.LocalService != nil && !req.OtherCluster && topoproto.TabletAliasEqual(req.Tablet.Alias, d.Local) {
		return d.LocalService, func() {}, nil
	}
	conn, err := tabletconn.GetDialer()(ctx, req.Tablet, false)
	if err != nil {
		return nil, nil, err
	}
	return conn, func() { _ = conn.Close(context.WithoutCancel(ctx)) }, nil
}

// Tablet is where the rows come from.
func (s *Stream) Tablet() *topodatapb.Tablet { return s.tablet }

// Position is the GTID position of the read view, encoded as Vitess does ("MySQL56/...").
func (s *Stream) Position() string { return s.position }

// Fields describes the columns of the rows.
func (s *Stream) Fields() []*querypb.Field { return s.fields }

// Next returns the next rows, at least one, or io.EOF when there are no more. The caller releases
// the batch.
func (s *Stream) Next(ctx context.Context) (*Batch, error) {
	select {
	case b, ok := <-s.batches:
		if ok {
			return b, nil
		}
		if s.err != nil {
			return nil, vterrors.Wrapf(s.err, "reading from tablet %s", topoproto.TabletAliasString(s.tablet.Alias))
		}
		return nil, io.EOF
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Close ends the stream and waits for its goroutine.
func (s *Stream) Close() {
	s.cancel()
	for b := range s.batches {
		b.Release()
	}
	s.wg.Wait()
}
