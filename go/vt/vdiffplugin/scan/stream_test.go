// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package scan

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"vitess.io/vitess/go/sqltypes"
	"vitess.io/vitess/go/vt/grpcclient"
	"vitess.io/vitess/go/vt/vterrors"
	"vitess.io/vitess/go/vt/vttablet/queryservice"
	"vitess.io/vitess/go/vt/vttablet/tabletconn"

	binlogdatapb "vitess.io/vitess/go/vt/proto/binlogdata"
	querypb "vitess.io/vitess/go/vt/proto/query"
	topodatapb "vitess.io/vitess/go/vt/proto/topodata"
	vtrpcpb "vitess.io/vitess/go/vt/proto/vtrpc"
)

// service is a tablet's query service with a VStreamRows of the test's own.
type service struct {
	queryservice.QueryService
	stream func(ctx context.Context, req *binlogdatapb.VStreamRowsRequest, send func(*binlogdatapb.VStreamRowsResponse) error) error
}

func (s *service) VStreamRows(ctx context.Context, req *binlogdatapb.VStreamRowsRequest, send func(*binlogdatapb.VStreamRowsResponse) error) error {
	return s.stream(ctx, req, send)
}

var tablet = &topodatapb.Tablet{Alias: &topodatapb.TabletAlias{Cell: "zone1", Uid: 7}, Keyspace: "ks", Shard: "0", Type: topodatapb.TabletType_PRIMARY}

func dialer(stream func(ctx context.Context, req *binlogdatapb.VStreamRowsRequest, send func(*binlogdatapb.VStreamRowsResponse) error) error) *Dialer {
	return &Dialer{Local: tablet.Alias, LocalService: &service{stream: stream}}
}

var fields = []*querypb.Field{{Name: "id", Type: sqltypes.Int64}, {Name: "v", Type: sqltypes.VarChar}}

func row(id int, v string) *querypb.Row {
	text := fmt.Sprint(id)
	return &querypb.Row{Lengths: []int64{int64(len(text)), int64(len(v))}, Values: []byte(text + v)}
}

// Tests a stream from its position to its end. The sender uses the memory of a response again, as a
// tablet does: rows that were received must not change.
func TestStream(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	d := dialer(func(_ context.Context, req *binlogdatapb.VStreamRowsRequest, send func(*binlogdatapb.VStreamRowsResponse) error) error {
		assert.Equal(t, "select 1", req.Query)
		assert.Equal(t, "ks", req.Target.Keyspace)
		assert.True(t, req.Options.NoTimeouts)
		resp := &binlogdatapb.VStreamRowsResponse{Fields: fields, Gtid: "MySQL56/x:1-5"}
		if err := send(resp); err != nil {
			return err
		}
		resp.Fields = nil
		r := row(0, "value")
		for i := range 10 {
			copy(r.Values, row(i, "value").Values)
			resp.Rows = []*querypb.Row{r}
			if err := send(resp); err != nil {
				return err
			}
		}
		return send(&binlogdatapb.VStreamRowsResponse{Heartbeat: true})
	})
	s, err := d.Open(t.Context(), Request{Tablet: tablet, Query: "select 1", OpenTimeout: 10 * time.Second})
	require.NoError(t, err)
	defer s.Close()
	assert.Equal(t, "MySQL56/x:1-5", s.Position())
	assert.Len(t, s.Fields(), 2)
	var got []string
	for {
		b, err := s.Next(t.Context())
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		for i := range b.Len() {
			values := b.Row(i).SQLValues([]querypb.Type{sqltypes.Int64, sqltypes.VarChar})
			got = append(got, values[0].ToString()+values[1].ToString())
		}
		b.Release()
	}
	assert.Equal(t, "0value 1value 2value 3value 4value 5value 6value 7value 8value 9value", strings.Join(got, " "))
}

// Tests the ways in which a stream fails to open or breaks, a panic of the service among them, and that
// none leaves a goroutine behind.
func TestStreamFails(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	type send = func(*binlogdatapb.VStreamRowsResponse) error
	f := func(want string, stream func(ctx context.Context, send send) error) {
		t.Helper()
		d := dialer(func(ctx context.Context, _ *binlogdatapb.VStreamRowsRequest, send func(*binlogdatapb.VStreamRowsResponse) error) error {
			return stream(ctx, send)
		})
		s, err := d.Open(t.Context(), Request{Tablet: tablet})
		if err == nil {
			defer s.Close()
			for err == nil {
				var b *Batch
				if b, err = s.Next(t.Context()); err == nil {
					b.Release()
				}
			}
		}
		require.ErrorContains(t, err, want)
		assert.Contains(t, err.Error(), "zone1-0000000007")
	}
	f("no such table", func(context.Context, send) error { return errors.New("no such table") })
	f("told no position", func(context.Context, send) error { return nil })
	f("before their fields", func(_ context.Context, send send) error {
		return send(&binlogdatapb.VStreamRowsResponse{Rows: []*querypb.Row{row(1, "")}})
	})
	f("panic in a row stream: oops", func(context.Context, send) error { panic("oops") })
	f("panic in a row stream: later", func(_ context.Context, send send) error {
		if err := send(&binlogdatapb.VStreamRowsResponse{Fields: fields, Gtid: "x"}); err != nil {
			return err
		}
		panic("later")
	})
	f("connection lost", func(_ context.Context, send send) error {
		if err := send(&binlogdatapb.VStreamRowsResponse{Fields: fields, Gtid: "x", Rows: []*querypb.Row{row(1, "a")}}); err != nil {
			return err
		}
		return errors.New("connection lost")
	})
}

// Tests that opening is bounded and follows its context, that a tablet which does not notice is not
// waited for, and that Wait waits for it.
func TestOpenIsBounded(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	release := make(chan struct{})
	d := dialer(func(context.Context, *binlogdatapb.VStreamRowsRequest, func(*binlogdatapb.VStreamRowsResponse) error) error {
		<-release // a lock wait in MySQL takes no notice of the context
		return errors.New("too late")
	})
	_, err := d.Open(t.Context(), Request{Tablet: tablet, OpenTimeout: 20 * time.Millisecond})
	require.ErrorContains(t, err, "no read view within 20ms")
	assert.Equal(t, vtrpcpb.Code_DEADLINE_EXCEEDED, vterrors.Code(err))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = d.Open(ctx, Request{Tablet: tablet})
	require.ErrorContains(t, err, context.Canceled.Error())
	started := time.Now()
	d.Wait(20 * time.Millisecond)
	assert.Less(t, time.Since(started), 10*time.Second)
	close(release)
	d.Wait(10 * time.Second)
}

// Tests that a stream can be closed, and its reader cancelled, while the tablet has more to send.
func TestCloseEarly(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	d := dialer(func(_ context.Context, _ *binlogdatapb.VStreamRowsRequest, send func(*binlogdatapb.VStreamRowsResponse) error) error {
		resp := &binlogdatapb.VStreamRowsResponse{Fields: fields, Gtid: "x"}
		for {
			if err := send(resp); err != nil {
				return err
			}
			resp = &binlogdatapb.VStreamRowsResponse{Rows: []*querypb.Row{row(1, "a")}}
		}
	})
	s, err := d.Open(t.Context(), Request{Tablet: tablet})
	require.NoError(t, err)
	b, err := s.Next(t.Context())
	require.NoError(t, err)
	b.Release()
	s.Close()
	s.Close()
}

// Tests that a tablet of another cluster is not taken for this one because it has the same alias.
func TestOtherCluster(t *testing.T) {
	d := dialer(func(context.Context, *binlogdatapb.VStreamRowsRequest, func(*binlogdatapb.VStreamRowsResponse) error) error {
		t.Error("the local service was asked")
		return nil
	})
	tabletconn.RegisterDialer("grpc", func(context.Context, *topodatapb.Tablet, grpcclient.FailFast) (queryservice.QueryService, error) {
		return nil, errors.New("asked over the network")
	})
	_, err := d.Open(t.Context(), Request{Tablet: tablet, OtherCluster: true})
	require.ErrorContains(t, err, "asked over the network")
}

// Tests rows: NULLs, empty values, equality, clones and sizes.
func TestRow(t *testing.T) {
	b := NewBatch(3, []*querypb.Row{
		{Lengths: []int64{1, -1, 0}, Values: []byte("a")},
		{Lengths: []int64{1, 0, -1}, Values: []byte("a")},
		{Lengths: []int64{0, 2, 1}, Values: []byte("bcd")},
	})
	require.Equal(t, 3, b.Len())
	value := func(r Row, i int) string {
		v, ok := r.Value(i)
		if !ok {
			return "NULL"
		}
		return string(v)
	}
	assert.Equal(t, []string{"a", "NULL", ""}, []string{value(b.Row(0), 0), value(b.Row(0), 1), value(b.Row(0), 2)})
	assert.Equal(t, []string{"", "bc", "d"}, []string{value(b.Row(2), 0), value(b.Row(2), 1), value(b.Row(2), 2)})
	assert.False(t, b.Row(0).Equal(b.Row(1)), "NULL and empty differ")
	c := b.Row(2).Clone()
	var d Row
	b.Row(2).CopyTo(&d)
	b.Release()
	NewBatch(1, []*querypb.Row{{Lengths: []int64{3}, Values: []byte("xyz")}})
	assert.Equal(t, "bc", value(c, 1), "a clone has memory of its own")
	assert.True(t, c.Equal(d))
}

// Tests that a vdiff which ends and waits for the streams that were given up does not meet others that give up theirs, through the same
// dialer: all of them are waited for, as far as they were there.
func TestWaitWhileOthersGiveUp(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	d := dialer(func(ctx context.Context, _ *binlogdatapb.VStreamRowsRequest, _ func(*binlogdatapb.VStreamRowsResponse) error) error {
		<-ctx.Done()
		return ctx.Err()
	})
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	var openings, waits sync.WaitGroup
	for range 4 {
		openings.Go(func() {
			for range 500 {
				_, err := d.Open(gone, Request{Tablet: tablet})
				assert.Error(t, err)
			}
		})
	}
	ended := make(chan struct{})
	for range 2 {
		waits.Go(func() {
			for {
				select {
				case <-ended:
					return
				default:
					d.Wait(time.Minute)
				}
			}
		})
	}
	openings.Wait()
	close(ended)
	waits.Wait()
	d.Wait(time.Minute)
	assert.Empty(t, d.abandoned)
}
