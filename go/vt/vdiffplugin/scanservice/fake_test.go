// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package scanservice

import (
	"context"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	topodatapb "vitess.io/vitess/go/vt/proto/topodata"

	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/digest"
	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/pkrange"
	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/scan"
)

// waitTime bounds every wait of a test.
const waitTime = time.Minute

// fakeReader is a Reader made of functions.
type fakeReader struct {
	digest func(context.Context, *scan.Call, scan.Progress) (*scan.Answer, error)
	rows   func(context.Context, *scan.RowsCall, func(*scan.RowsStart) error, func(*scan.RowsBatch) error, scan.Progress) error
}

func (f *fakeReader) Digest(ctx context.Context, call *scan.Call, p scan.Progress) (*scan.Answer, error) {
	return f.digest(ctx, call, p)
}

func (f *fakeReader) Rows(ctx context.Context, call *scan.RowsCall, start func(*scan.RowsStart) error, send func(*scan.RowsBatch) error, p scan.Progress) error {
	return f.rows(ctx, call, start, send, p)
}

// answerFor returns an answer that has something in each field.
func answerFor(call *scan.Call) *scan.Answer {
	a := &scan.Answer{Executed: "MySQL56/aaaa:1-9", ReadView: 3 * time.Millisecond}
	for _, id := range call.Streams {
		if a.Positions == nil {
			a.Positions = make(map[int32]string)
		}
		a.Positions[id] = "MySQL56/bbbb:1-7"
	}
	for i, r := range call.Tables {
		d := scan.Digest{Form: 1<<63 + uint64(i), Read: 10, Bytes: 1000}
		for b := range max(1, r.Buckets) {
			d.Sums = append(d.Sums, digest.Sum{Rows: uint64(i + b), Hi: 1<<63 + r.Seed, Lo: uint64(b)})
		}
		if r.Limit > 0 {
			d.UpTo = pkrange.Bound{{Kind: pkrange.Int, Int: -r.Limit}}
		}
		a.Digests = append(a.Digests, d)
	}
	return a
}

// answering is a reader that answers at once.
func answering() *fakeReader {
	return &fakeReader{digest: func(_ context.Context, call *scan.Call, _ scan.Progress) (*scan.Answer, error) {
		return answerFor(call), nil
	}}
}

// blocking is a reader whose Digest says that it runs and then waits for release or the end of its context.
func blocking() (r *fakeReader, running *atomic.Int64, release chan struct{}) {
	running, release = new(atomic.Int64), make(chan struct{})
	return &fakeReader{digest: func(ctx context.Context, call *scan.Call, _ scan.Progress) (*scan.Answer, error) {
		running.Add(1)
		defer running.Add(-1)
		select {
		case <-release:
			return answerFor(call), nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}}, running, release
}

func testTablet() *topodatapb.Tablet {
	return &topodatapb.Tablet{
		Alias: &topodatapb.TabletAlias{Cell: "zone1", Uid: 100}, Keyspace: "ks", Shard: "-80", Type: topodatapb.TabletType_REPLICA,
		Hostname: "127.0.0.1",
	}
}

func testTable() *scan.Table {
	return &scan.Table{Name: "t1", Columns: []string{"id", "name"}, Key: []scan.KeyColumn{{Name: "id", Column: 0}}, Index: "PRIMARY"}
}

func testCall() *scan.Call {
	return &scan.Call{Tables: []scan.DigestRequest{{Table: testTable(), Seed: 5}}}
}

// newService returns a service of a reader; change, when set, is called before anything uses it. It is closed, and
// nothing of it may be left, when the test ends.
func newService(t *testing.T, r Reader, c Config, change func(*Service)) *Service {
	t.Helper()
	if c.Tablet == nil {
		c.Tablet = testTablet
	}
	s := New(c)
	s.interval, s.digests.progressIn = 10*time.Millisecond, 10*time.Millisecond
	if change != nil {
		change(s)
	}
	s.Bind(r)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), waitTime)
		defer cancel()
		require.NoError(t, s.Close(ctx))
	})
	return s
}

// serve serves on a free port and returns the record of the tablet that is found there.
func serve(t *testing.T, register func(*grpc.Server), opts ...grpc.ServerOption) *topodatapb.Tablet {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	server := grpc.NewServer(opts...)
	register(server)
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	t.Cleanup(func() {
		server.Stop()
		require.NoError(t, <-ended)
	})
	tablet := testTablet()
	tablet.PortMap = map[string]int32{"grpc": int32(listener.Addr().(*net.TCPAddr).Port)}
	return tablet
}

func insecurely() (grpc.DialOption, error) {
	return grpc.WithTransportCredentials(insecure.NewCredentials()), nil
}

func newTestClient(t *testing.T, c ClientConfig) *Client {
	t.Helper()
	if c.Secure == nil {
		c.Secure = insecurely
	}
	client := NewClient(c)
	t.Cleanup(client.Close)
	return client
}

// noLeaks fails the test if a goroutine is left that was not there before. It has to be called first.
func noLeaks(t *testing.T) {
	before := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, before) })
}

// hearNothingFor makes a client less patient than it was when its connection was made: a busy machine may take its time
// for that. No call may be running.
func hearNothingFor(c *Client, d time.Duration) { c.config.Silence = d }

func testContext(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), waitTime)
	t.Cleanup(cancel)
	return ctx
}

func eventually(t *testing.T, what string, f func() bool) {
	t.Helper()
	require.Eventually(t, f, waitTime, time.Millisecond, what)
}
