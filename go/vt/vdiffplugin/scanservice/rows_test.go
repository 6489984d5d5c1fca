// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package scanservice

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"vitess.io/vitess/go/vt/vterrors"

	querypb "vitess.io/vitess/go/vt/proto/query"
	vtrpcpb "vitess.io/vitess/go/vt/proto/vtrpc"

	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/pkrange"
	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/scan"
)

func rowsCall() *scan.RowsCall {
	return &scan.RowsCall{
		Lock: true, LockWait: time.Second, Streams: []int32{7},
		Reads: []scan.RowsRead{
			{Table: testTable(), Ranges: []pkrange.Range{{}, {After: pkrange.Bound{{Kind: pkrange.Int, Int: 5}}}}},
			{Table: &scan.Table{Name: "t2", Columns: []string{"a"}}, Ranges: []pkrange.Range{{}}},
			{Table: &scan.Table{Name: "t3", Columns: []string{"a", "b"}}, Buckets: &scan.BucketFilter{Seed: 1<<63 + 5, Buckets: 16, BucketKey: []int{1}, Wanted: []int{0, 15}}},
		},
	}
}

func testFields(n int) []*querypb.Field {
	var fields []*querypb.Field
	for i := range n {
		fields = append(fields, &querypb.Field{Name: fmt.Sprintf("c%d", i), Type: querypb.Type_VARBINARY, Charset: 63, Flags: 128})
	}
	return fields
}

// testBatches are batches with NULLs, empty values, no rows, and a row that is larger than a message of gRPC may be.
func testBatches() []*scan.RowsBatch {
	huge := bytes.Repeat([]byte("0123456789abcdef"), 17<<20/16)
	return []*scan.RowsBatch{
		{Read: 0, Range: 0, Fields: testFields(2)},
		{Read: 0, Range: 0, Rows: []*querypb.Row{
			{Lengths: []int64{1, -1}, Values: []byte("x")},
			{Lengths: []int64{0, 0}, Values: []byte{}},
			{Lengths: []int64{2, 3}, Values: []byte("abcde")},
		}},
		{Read: 0, Range: 1, Rows: []*querypb.Row{
			{Lengths: []int64{int64(len(huge)), 1}, Values: append(huge, 'y')},
			{Lengths: []int64{1, 0}, Values: []byte("z")},
		}},
		{Read: 1, Range: 0, Fields: testFields(1), Rows: []*querypb.Row{{Lengths: []int64{-1}, Values: []byte{}}}},
	}
}

func cloneBatch(b *scan.RowsBatch) *scan.RowsBatch {
	c := &scan.RowsBatch{Read: b.Read, Range: b.Range}
	for _, f := range b.Fields {
		c.Fields = append(c.Fields, f.CloneVT())
	}
	for _, r := range b.Rows {
		c.Rows = append(c.Rows, &querypb.Row{Lengths: append([]int64{}, r.Lengths...), Values: append([]byte{}, r.Values...)})
	}
	return c
}

// sending is a reader that sends batches.
func sending(got **scan.RowsCall, batches []*scan.RowsBatch) *fakeReader {
	return &fakeReader{rows: func(ctx context.Context, call *scan.RowsCall, start func(*scan.RowsStart) error, send func(*scan.RowsBatch) error, _ scan.Progress) error {
		*got = call
		if err := start(&scan.RowsStart{Position: "pos", Positions: map[int32]string{7: "p7"}}); err != nil {
			return err
		}
		for _, b := range batches {
			if err := send(b); err != nil {
				return err
			}
		}
		return nil
	}}
}

// Tests that rows arrive as they were read, whatever their size, after the start that says where.
func TestRowsOverNetwork(t *testing.T) {
	noLeaks(t)
	var got *scan.RowsCall
	s := newService(t, sending(&got, testBatches()), Config{}, nil)
	tablet := serve(t, s.Register)
	r, err := newTestClient(t, ClientConfig{}).Reader(testContext(t), "uuid", tablet, false)
	require.NoError(t, err)
	var (
		started *scan.RowsStart
		batches []*scan.RowsBatch
	)
	err = r.Rows(testContext(t), rowsCall(),
		func(s *scan.RowsStart) error { started = s; return nil },
		func(b *scan.RowsBatch) error {
			assert.NotNil(t, started)
			batches = append(batches, cloneBatch(b))
			return nil
		}, nil)
	require.NoError(t, err)
	assert.Equal(t, rowsCall(), got)
	assert.Equal(t, &scan.RowsStart{Position: "pos", Positions: map[int32]string{7: "p7"}}, started)
	want := testBatches()
	require.Len(t, batches, len(want))
	for i := range want {
		require.Len(t, batches[i].Rows, len(want[i].Rows))
		assert.Len(t, batches[i].Fields, len(want[i].Fields))
		for j, f := range want[i].Fields {
			assert.Equal(t, f.String(), batches[i].Fields[j].String())
		}
		for j, row := range want[i].Rows {
			assert.Equal(t, row.Lengths, batches[i].Rows[j].Lengths)
			assert.True(t, bytes.Equal(row.Values, batches[i].Rows[j].Values))
		}
	}
}

// Tests that an error of a callback ends the call on both sides and comes back as it is, that a consumer which takes
// its time is not taken for a dead tablet, and that the tablet's own error arrives after the rows before it.
func TestRowsCallbacks(t *testing.T) {
	noLeaks(t)
	mine := errors.New("mine")
	batch := testBatches()[0]
	ended := make(chan error, 1)
	reader := &fakeReader{rows: func(ctx context.Context, _ *scan.RowsCall, start func(*scan.RowsStart) error, send func(*scan.RowsBatch) error, _ scan.Progress) error {
		err := start(&scan.RowsStart{})
		for err == nil {
			err = send(batch)
		}
		ended <- err
		return err
	}}
	s := newService(t, reader, Config{}, nil)
	tablet := serve(t, s.Register)
	client := newTestClient(t, ClientConfig{})
	r, err := client.Reader(testContext(t), "uuid", tablet, false)
	require.NoError(t, err)
	hearNothingFor(client, 2*time.Second)
	n := 0
	slow := time.NewTimer(2500 * time.Millisecond)
	err = r.Rows(testContext(t), rowsCall(), func(*scan.RowsStart) error { return nil }, func(*scan.RowsBatch) error {
		if n++; n == 1 {
			<-slow.C
		}
		if n == 3 {
			return mine
		}
		return nil
	}, nil)
	assert.Same(t, mine, err)
	require.Error(t, <-ended)

	err = r.Rows(testContext(t), rowsCall(), func(*scan.RowsStart) error { return mine }, nil, nil)
	assert.Same(t, mine, err)
	require.Error(t, <-ended)

	s.Bind(&fakeReader{rows: func(_ context.Context, _ *scan.RowsCall, start func(*scan.RowsStart) error, send func(*scan.RowsBatch) error, _ scan.Progress) error {
		_, _ = start(&scan.RowsStart{}), send(batch)
		return vterrors.New(vtrpcpb.Code_DEADLINE_EXCEEDED, "lock wait")
	}})
	n = 0
	err = r.Rows(testContext(t), rowsCall(), func(*scan.RowsStart) error { return nil }, func(*scan.RowsBatch) error { n++; return nil }, nil)
	require.ErrorContains(t, err, "lock wait")
	assert.Equal(t, vtrpcpb.Code_DEADLINE_EXCEEDED, vterrors.Code(err))
	assert.Equal(t, 1, n)
}

// TestCloseWithSlowClient tests that the service ends while a client, which is alive, takes no rows.
func TestCloseWithSlowClient(t *testing.T) {
	offered := make(chan struct{}, 1)
	s := New(Config{Tablet: testTablet})
	s.Bind(&fakeReader{rows: func(ctx context.Context, _ *scan.RowsCall, start func(*scan.RowsStart) error, send func(*scan.RowsBatch) error, _ scan.Progress) error {
		if err := start(&scan.RowsStart{Position: "p"}); err != nil {
			return err
		}
		b := &scan.RowsBatch{Fields: testFields(1)}
		for range 64 { // more than any window takes
			b.Rows = append(b.Rows, &querypb.Row{Lengths: []int64{1 << 20}, Values: make([]byte, 1<<20)})
		}
		offered <- struct{}{}
		for ctx.Err() == nil {
			if err := send(b); err != nil {
				return err
			}
		}
		return ctx.Err()
	}})
	r, err := newTestClient(t, ClientConfig{}).Reader(testContext(t), "uuid", serve(t, s.Register), false)
	require.NoError(t, err)
	slow, cancel := context.WithCancel(t.Context())
	called := make(chan error, 1)
	go func() {
		call := &scan.RowsCall{Reads: []scan.RowsRead{{Table: testTable()}}}
		called <- r.Rows(slow, call, func(*scan.RowsStart) error { return nil }, func(*scan.RowsBatch) error { <-slow.Done(); return slow.Err() }, nil)
	}()
	<-offered
	ctx, stop := context.WithTimeout(testContext(t), 8*time.Second)
	defer stop()
	require.NoError(t, s.Close(ctx))
	cancel()
	require.Error(t, <-called)
}
