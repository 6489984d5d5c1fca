// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package scanservice

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"vitess.io/vitess/go/vt/vterrors"
	"vitess.io/vitess/go/vt/vttablet/tabletserver/throttle"

	querypb "vitess.io/vitess/go/vt/proto/query"
	tabletmanagerdatapb "vitess.io/vitess/go/vt/proto/tabletmanagerdata"
	vtrpcpb "vitess.io/vitess/go/vt/proto/vtrpc"

	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/scan"
)

// Tests that no more calls read at a time than the limit says, that those behind it are told so while they wait,
// and that more than may wait are refused.
func TestConcurrencyLimit(t *testing.T) {
	noLeaks(t)
	reader, running, release := blocking()
	s := newService(t, reader, Config{MaxConcurrent: 2, MaxWaiting: 3}, nil)
	ctx := testContext(t)

	var wg sync.WaitGroup
	var told atomic.Int64
	for range 5 {
		wg.Go(func() {
			var once sync.Once
			_, err := s.Digest(ctx, testCall(), func(_ int64, waiting string) {
				if waiting == waitingForReader {
					once.Do(func() { told.Add(1) })
				}
			})
			assert.NoError(t, err)
		})
	}
	eventually(t, "two run and three wait", func() bool { return running.Load() == 2 && told.Load() == 3 })
	_, err := s.Digest(ctx, testCall(), nil)
	require.ErrorContains(t, err, "the tablet serves 2 vdiff reads and 3 wait")
	assert.Equal(t, vtrpcpb.Code_RESOURCE_EXHAUSTED, vterrors.Code(err))
	assert.EqualValues(t, 2, running.Load())
	close(release)
	wg.Wait()
	assert.Zero(t, metrics.waiting.Get())
}

// Tests that a call that waits for its turn ends when its context does, and gives its place in the queue up.
func TestWaitingIsCancelled(t *testing.T) {
	noLeaks(t)
	reader, running, release := blocking()
	s := newService(t, reader, Config{MaxConcurrent: 1, MaxWaiting: 1}, nil)
	ctx := testContext(t)
	var wg sync.WaitGroup
	wg.Go(func() { _, _ = s.Digest(ctx, testCall(), nil) })
	eventually(t, "one runs", func() bool { return running.Load() == 1 })
	for range 3 {
		waiting, cancel := context.WithCancel(ctx)
		_, err := s.Digest(waiting, testCall(), func(int64, string) { cancel() })
		require.ErrorIs(t, err, context.Canceled)
	}
	close(release)
	wg.Wait()
}

// Tests that the throttler holds a call up, with its reason as progress, until it lets it pass; that it is asked before
// each group of ranges and not in a read view; and that a call may be cancelled while it is throttled.
func TestThrottle(t *testing.T) {
	noLeaks(t)
	var asked atomic.Int64
	refuse := int64(2)
	throttled := func(context.Context) (string, bool) {
		if n := asked.Add(1); n <= refuse {
			return fmt.Sprintf("lag %d", n), false
		}
		return "", true
	}
	s := newService(t, answering(), Config{Throttle: throttled}, nil)
	ctx := testContext(t)
	var reasons []string
	before := metrics.throttled.Get()
	answer, err := s.Digest(ctx, testCall(), func(_ int64, why string) { reasons = append(reasons, why) })
	require.NoError(t, err)
	assert.Equal(t, []string{"lag 1", "lag 2"}, reasons)
	assert.Len(t, answer.Digests, 1)
	assert.Greater(t, metrics.throttled.Get()-before, throttleInterval)

	many := testCall()
	for range 2 * readsPerCheck {
		many.Tables = append(many.Tables, many.Tables[0])
	}
	asked.Store(refuse)
	_, err = s.Digest(ctx, many, nil)
	require.NoError(t, err)
	assert.EqualValues(t, 3, asked.Load()-refuse, "one question for each group")
	asked.Store(refuse)
	many.Streams = []int32{1}
	_, err = s.Digest(ctx, many, nil)
	require.NoError(t, err)
	assert.EqualValues(t, 1, asked.Load()-refuse, "one question for a read view")

	asked.Store(-1000)
	throttledCtx, cancel := context.WithCancel(ctx)
	_, err = s.Digest(throttledCtx, testCall(), func(int64, string) { cancel() })
	require.ErrorIs(t, err, context.Canceled)
}

// Tests what is made of the results of the tablet throttler, and under which name it is asked.
func TestTabletThrottle(t *testing.T) {
	var result *throttle.CheckResult
	ask := TabletThrottle(func(_ context.Context, app string, flags *throttle.CheckFlags) *throttle.CheckResult {
		assert.Equal(t, "vdiff", app)
		assert.NotNil(t, flags)
		return result
	})
	f := func(r *throttle.CheckResult, want string, wantOK bool) {
		t.Helper()
		result = r
		reason, ok := ask(context.Background())
		assert.Equal(t, want, reason)
		assert.Equal(t, wantOK, ok)
	}
	okCode, exceeded := tabletmanagerdatapb.CheckThrottlerResponseCode_OK, tabletmanagerdatapb.CheckThrottlerResponseCode_THRESHOLD_EXCEEDED
	f(nil, "", true)
	f(throttle.NewCheckResult(okCode, 0, 0, "", nil), "", true)
	f(throttle.NewCheckResult(tabletmanagerdatapb.CheckThrottlerResponseCode_APP_DENIED, 0, 0, "vdiff", nil), "vdiff is explicitly denied access", false)
	r := throttle.NewCheckResult(okCode, 0, 0, "vdiff", nil)
	r.Metrics = map[string]*throttle.MetricResult{"lag": {ResponseCode: okCode}}
	f(r, "", true)
	r.Metrics["loadavg"] = &throttle.MetricResult{ResponseCode: exceeded, Scope: "self", Message: "threshold exceeded"}
	f(r, "vdiff is denied access due to self/loadavg: threshold exceeded", false)
}

// Tests how a call is cut for the throttler: the answers are put together in order, the position is waited for once,
// and progress counts on.
func TestCallIsCut(t *testing.T) {
	var got []*scan.Call
	reader := &fakeReader{digest: func(_ context.Context, call *scan.Call, p scan.Progress) (*scan.Answer, error) {
		got = append(got, call)
		p(1, "")
		a := answerFor(call)
		a.Executed = fmt.Sprint(len(got))
		a.ReadView = time.Duration(100 - len(got))
		return a, nil
	}}
	s := newService(t, reader, Config{}, nil)
	call := &scan.Call{WaitFor: "pos", WaitTimeout: time.Minute}
	for i := range readsPerCheck + 3 {
		call.Tables = append(call.Tables, scan.DigestRequest{Table: testTable(), Seed: uint64(i)})
	}
	var rows []int64
	answer, err := s.Digest(testContext(t), call, func(n int64, _ string) { rows = append(rows, n) })
	require.NoError(t, err)
	require.Len(t, got, 2)
	assert.Equal(t, "pos", got[0].WaitFor)
	assert.Equal(t, time.Minute, got[0].WaitTimeout)
	assert.Empty(t, got[1].WaitFor)
	assert.Equal(t, []int64{1, 10*readsPerCheck + 1}, rows)
	assert.Equal(t, "2", answer.Executed)
	assert.Equal(t, time.Duration(99), answer.ReadView)
	require.Len(t, answer.Digests, len(call.Tables))
	for i, d := range answer.Digests {
		assert.EqualValues(t, 1<<63+uint64(i), d.Sums[0].Hi)
	}
}

// Tests that a panic of the reader is an error, and that the service and its limits are as before afterwards.
func TestPanic(t *testing.T) {
	noLeaks(t)
	reader := &fakeReader{
		digest: func(context.Context, *scan.Call, scan.Progress) (*scan.Answer, error) { panic("digest went wrong") },
		rows: func(context.Context, *scan.RowsCall, func(*scan.RowsStart) error, func(*scan.RowsBatch) error, scan.Progress) error {
			panic("rows went wrong")
		},
	}
	s := newService(t, reader, Config{MaxConcurrent: 1, MaxRows: 1}, nil)
	for range 3 {
		_, err := s.Digest(testContext(t), testCall(), nil)
		require.EqualError(t, err, "panic in Digest of the scan service, see the tablet's log")
		assert.Equal(t, vtrpcpb.Code_INTERNAL, vterrors.Code(err))
		err = s.Rows(testContext(t), &scan.RowsCall{}, nil, nil, nil)
		require.EqualError(t, err, "panic in Rows of the scan service, see the tablet's log")
	}
	assert.Zero(t, metrics.running.Get())
}

// Tests that a reader that does not answer for every range is found out.
func TestReaderForgetsARange(t *testing.T) {
	reader := &fakeReader{digest: func(context.Context, *scan.Call, scan.Progress) (*scan.Answer, error) { return &scan.Answer{}, nil }}
	s := newService(t, reader, Config{}, nil)
	_, err := s.Digest(testContext(t), testCall(), nil)
	require.EqualError(t, err, "the reader did not answer for every range")
}

// Tests that a service answers UNAVAILABLE before it has a reader, that Close ends what runs, and that nothing is
// served afterwards.
func TestBindAndClose(t *testing.T) {
	noLeaks(t)
	s := New(Config{Tablet: testTablet})
	ctx := testContext(t)
	_, err := s.Digest(ctx, testCall(), nil)
	require.EqualError(t, err, "the tablet is starting")
	assert.Equal(t, vtrpcpb.Code_UNAVAILABLE, vterrors.Code(err))

	reader, running, _ := blocking()
	s.Bind(reader)
	var wg sync.WaitGroup
	wg.Go(func() {
		_, err := s.Digest(ctx, testCall(), nil)
		assert.EqualError(t, err, "the tablet is shutting down")
		assert.Equal(t, vtrpcpb.Code_UNAVAILABLE, vterrors.Code(err))
	})
	eventually(t, "it runs", func() bool { return running.Load() == 1 })
	require.NoError(t, s.Close(ctx))
	assert.Zero(t, running.Load())
	wg.Wait()
	_, err = s.Digest(ctx, testCall(), nil)
	require.EqualError(t, err, "the tablet is shutting down")
	require.NoError(t, s.Close(ctx))
}

// Tests that Rows does not wait for its turn, and that the throttler holds up its rows but not its start.
func TestRowsLimitAndThrottle(t *testing.T) {
	noLeaks(t)
	var refused atomic.Int64
	var open atomic.Bool
	throttled := func(context.Context) (string, bool) {
		assert.True(t, open.Load(), "asked before the read view is open")
		return "lag", refused.Add(1) > 2
	}
	hold := make(chan struct{})
	reader := &fakeReader{rows: func(ctx context.Context, call *scan.RowsCall, start func(*scan.RowsStart) error, send func(*scan.RowsBatch) error, _ scan.Progress) error {
		if err := start(&scan.RowsStart{Position: "p"}); err != nil {
			return err
		}
		<-hold
		return send(&scan.RowsBatch{Rows: []*querypb.Row{{Lengths: []int64{1}, Values: []byte("x")}}})
	}}
	s := newService(t, reader, Config{MaxRows: 1, Throttle: throttled}, nil)
	ctx := testContext(t)
	var wg sync.WaitGroup
	var reasons []string
	got := 0
	wg.Go(func() {
		assert.NoError(t, s.Rows(ctx, &scan.RowsCall{},
			func(*scan.RowsStart) error { open.Store(true); return nil },
			func(b *scan.RowsBatch) error { got += len(b.Rows); return nil },
			func(_ int64, why string) { reasons = append(reasons, why) }))
	})
	eventually(t, "it is open", open.Load)
	err := s.Rows(ctx, &scan.RowsCall{}, nil, nil, nil)
	assert.Equal(t, vtrpcpb.Code_RESOURCE_EXHAUSTED, vterrors.Code(err))
	close(hold)
	wg.Wait()
	assert.Equal(t, 1, got)
	assert.Equal(t, []string{"lag", "lag", ""}, reasons)
}

// Tests that reads of rows with positions of streams take their turn among the digests, and say what they wait for, while those of a fence do not.
func TestRowsTakeTheirTurn(t *testing.T) {
	hold := make(chan struct{})
	reader := &fakeReader{rows: func(ctx context.Context, call *scan.RowsCall, start func(*scan.RowsStart) error, _ func(*scan.RowsBatch) error, _ scan.Progress) error {
		if err := start(&scan.RowsStart{}); err != nil || len(call.Streams) == 0 {
			return err
		}
		select {
		case <-hold:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}}
	s := newService(t, reader, Config{MaxConcurrent: 1, MaxRows: 1}, nil)
	ctx := testContext(t)
	var wg sync.WaitGroup
	var opened, waited atomic.Int64
	for range 2 {
		wg.Go(func() {
			assert.NoError(t, s.Rows(ctx, &scan.RowsCall{Streams: []int32{1}}, func(*scan.RowsStart) error { opened.Add(1); return nil },
				func(*scan.RowsBatch) error { return nil }, func(_ int64, why string) {
					if why == waitingForReader {
						waited.Add(1)
					}
				}))
		})
	}
	eventually(t, "one reads and the other waits", func() bool { return opened.Load() == 1 && waited.Load() > 0 })
	require.NoError(t, s.Rows(ctx, &scan.RowsCall{Lock: true}, func(*scan.RowsStart) error { return nil }, nil, nil))
	assert.EqualValues(t, 1, opened.Load())
	close(hold)
	wg.Wait()
	assert.EqualValues(t, 2, opened.Load())
}
