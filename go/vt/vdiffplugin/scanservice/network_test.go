// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package scanservice

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"

	"vitess.io/vitess/go/vt/vterrors"

	topodatapb "vitess.io/vitess/go/vt/proto/topodata"
	vtrpcpb "vitess.io/vitess/go/vt/proto/vtrpc"

	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/pkrange"
	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/scan"
	vdiffscanpb "github.com/vttablet-ext/vttablet-ext/proto/vdiffscan"
)

// fullCall returns a call with something in each field.
func fullCall() *scan.Call {
	t := &scan.Table{
		Name: "t `1`", Columns: []string{"id", "cast(a as char)", "b"}, Index: "PRIMARY", Where: "b > 1",
		Key:    []scan.KeyColumn{{Name: "id", Column: 0}, {Name: "b", Column: 2}},
		Filter: &scan.VindexFilter{Type: "xxhash", Params: map[string]string{"x": "y"}, Columns: []int{0}, KeyRange: "-80"},
	}
	whole := &scan.Table{Name: "t2", Columns: []string{"id"}}
	return &scan.Call{
		Streams: []int32{3, 4}, WaitFor: "MySQL56/aaaa:1-5", WaitTimeout: time.Minute,
		Tables: []scan.DigestRequest{
			{Table: t, Seed: 1 << 63, Limit: 100, MaxBytes: 64 << 20, MaxTime: time.Second, MaxRows: 77, Range: pkrange.Range{
				After: pkrange.Bound{{Kind: pkrange.Int, Int: -1 << 63}, {Kind: pkrange.Uint, Uint: 1<<64 - 1}},
				UpTo:  pkrange.Bound{{Kind: pkrange.Decimal, Bytes: []byte("1.50")}},
			}},
			{Table: t, Range: pkrange.Range{After: pkrange.Bound{{Kind: pkrange.Temporal, Bytes: []byte("2026-01-01")}, {Kind: pkrange.Bytes, Bytes: []byte{0, 255}}}}},
			{Table: whole, Buckets: 4, BucketKey: []int{0}},
		},
	}
}

// Tests that a call and its answer arrive as they were sent, that progress comes through, that ranges of one table
// share it on the other side, and that bytes are counted.
func TestDigestOverNetwork(t *testing.T) {
	noLeaks(t)
	var got *scan.Call
	goOn := make(chan struct{})
	s := newService(t, &fakeReader{digest: func(_ context.Context, call *scan.Call, p scan.Progress) (*scan.Answer, error) {
		got = call
		p(77, "lag")
		<-goOn
		return answerFor(call), nil
	}}, Config{}, nil)
	tablet := serve(t, s.Register)
	client := newTestClient(t, ClientConfig{})
	var traffic Traffic
	ctx := WithTraffic(testContext(t), &traffic)
	r, err := client.Reader(ctx, "uuid", tablet, false)
	require.NoError(t, err)

	var once sync.Once
	answer, err := r.Digest(ctx, fullCall(), func(rows int64, waiting string) {
		if rows == 77 && waiting == "lag" {
			once.Do(func() { close(goOn) })
		}
	})
	require.NoError(t, err)
	assert.Equal(t, fullCall(), got)
	assert.Same(t, got.Tables[0].Table, got.Tables[1].Table)
	assert.Equal(t, answerFor(fullCall()), answer)
	assert.Equal(t, traffic.Sent(), client.Traffic().Sent())
	assert.Equal(t, traffic.Received(), client.Traffic().Received())
	t.Logf("%d bytes sent, %d received", traffic.Sent(), traffic.Received())
	assert.Positive(t, traffic.Sent())
	assert.Positive(t, traffic.Received())
}

// Tests that a request for another tablet is refused with the text of vttablet, and that any tablet of the right
// kind does when no alias is given.
func TestTargetIsVerified(t *testing.T) {
	noLeaks(t)
	s := newService(t, answering(), Config{}, nil)
	tablet := serve(t, s.Register)
	client := newTestClient(t, ClientConfig{})
	ctx := testContext(t)
	f := func(change func(*topodatapb.Tablet), want string) {
		t.Helper()
		other := tablet.CloneVT()
		change(other)
		r, err := client.Reader(ctx, "uuid", other, false)
		require.NoError(t, err)
		_, err = r.Digest(ctx, testCall(), nil)
		if want == "" {
			require.NoError(t, err)
			return
		}
		require.ErrorContains(t, err, want)
		assert.Equal(t, vtrpcpb.Code_FAILED_PRECONDITION, vterrors.Code(err))
		require.NotErrorIs(t, err, ErrUnsupported)
	}
	f(func(*topodatapb.Tablet) {}, "")
	f(func(t *topodatapb.Tablet) { t.Keyspace = "other" }, "invalid keyspace other does not match expected ks")
	f(func(t *topodatapb.Tablet) { t.Shard = "80-" }, "invalid shard 80- does not match expected -80")
	f(func(t *topodatapb.Tablet) { t.Type = topodatapb.TabletType_PRIMARY }, "wrong tablet type: PRIMARY, want: REPLICA")
	f(func(t *topodatapb.Tablet) { t.Alias.Uid = 101 }, "invalid tablet zone1-0000000101 does not match expected zone1-0000000100")
	f(func(t *topodatapb.Tablet) { t.Alias = nil }, "")
}

// Tests that unlike versions are refused, on both sides, as FAILED_PRECONDITION and ErrUnsupported, also where they were
// alike when the connection was made; and that ranges that overlap agree on the newest version of both.
func TestVersions(t *testing.T) {
	noLeaks(t)
	f := func(name string, server, client versions, want uint32) {
		t.Run(name, func(t *testing.T) {
			s := newService(t, answering(), Config{}, func(s *Service) { s.versions = server })
			tablet := serve(t, s.Register)
			c := newTestClient(t, ClientConfig{})
			c.versions = client
			_, err := c.Reader(testContext(t), "uuid", tablet, false)
			if want > 0 {
				require.NoError(t, err)
				assert.Equal(t, want, c.conns[addressOf(tablet)].protocol)
				return
			}
			require.ErrorIs(t, err, ErrUnsupported)
			require.ErrorContains(t, err, "unlike versions")
			assert.Equal(t, vtrpcpb.Code_FAILED_PRECONDITION, vterrors.Code(err))
		})
	}
	f("equal", versions{1, 1, 1}, versions{1, 1, 1}, 1)
	f("server newer", versions{1, 3, 1}, versions{1, 2, 1}, 2)
	f("client newer", versions{1, 2, 1}, versions{2, 3, 1}, 2)
	f("server too new", versions{2, 3, 1}, versions{1, 1, 1}, 0)
	f("client too new", versions{1, 1, 1}, versions{2, 3, 1}, 0)
	f("digest older", versions{1, 1, 1}, versions{1, 1, 2}, 0)
	f("digest newer", versions{1, 1, 2}, versions{1, 1, 1}, 0)

	t.Run("replaced", func(t *testing.T) {
		s := newService(t, answering(), Config{}, nil)
		tablet := serve(t, s.Register)
		c := newTestClient(t, ClientConfig{})
		r, err := c.Reader(testContext(t), "uuid", tablet, false)
		require.NoError(t, err)
		c.versions.digest++ // as if another process had come behind the connection
		for range 2 {
			_, err = r.Digest(testContext(t), testCall(), nil)
			require.ErrorIs(t, err, ErrUnsupported)
		}
		assert.Equal(t, vtrpcpb.Code_FAILED_PRECONDITION, vterrors.Code(err))
	})
}

// countingServer is a server whose Hello is whatever the test wants it to be.
type countingServer struct {
	vdiffscanpb.UnimplementedVDiffScanServer
	hellos atomic.Int64
	hello  func() (*vdiffscanpb.HelloResponse, error)
	digest func() error
}

func (s *countingServer) Hello(context.Context, *vdiffscanpb.HelloRequest) (*vdiffscanpb.HelloResponse, error) {
	s.hellos.Add(1)
	return s.hello()
}

func (s *countingServer) Digest(*vdiffscanpb.DigestRequest, grpc.ServerStreamingServer[vdiffscanpb.DigestResponse]) error {
	return s.digest()
}

func (s *countingServer) register(server *grpc.Server) {
	vdiffscanpb.RegisterVDiffScanServer(server, s)
}

// Tests that a tablet without the service is ErrUnsupported, that it is not asked again for a while, and that it is
// after that.
func TestUnimplementedIsRemembered(t *testing.T) {
	noLeaks(t)
	tablet := serve(t, func(*grpc.Server) {})
	client := newTestClient(t, ClientConfig{})
	_, err := client.Reader(testContext(t), "uuid", tablet, false)
	require.ErrorIs(t, err, ErrUnsupported)
	assert.Equal(t, vtrpcpb.Code_UNIMPLEMENTED, vterrors.Code(err))

	old := &countingServer{hello: func() (*vdiffscanpb.HelloResponse, error) {
		return vdiffscanpb.UnimplementedVDiffScanServer{}.Hello(context.Background(), nil)
	}}
	tablet = serve(t, old.register)
	for range 3 {
		_, err := client.Reader(testContext(t), "uuid", tablet, false)
		require.ErrorIs(t, err, ErrUnsupported)
	}
	assert.EqualValues(t, 1, old.hellos.Load())
	client.mu.Lock()
	m := client.unsupported[addressOf(tablet)]
	m.until = time.Now()
	client.unsupported[addressOf(tablet)] = m
	client.mu.Unlock()
	_, err = client.Reader(testContext(t), "uuid", tablet, false)
	require.ErrorIs(t, err, ErrUnsupported)
	assert.EqualValues(t, 2, old.hellos.Load())
}

// Tests that a reader that cannot do something is not mistaken for a tablet without the service.
func TestReaderUnimplemented(t *testing.T) {
	noLeaks(t)
	s := newService(t, &fakeReader{digest: func(context.Context, *scan.Call, scan.Progress) (*scan.Answer, error) {
		return nil, vterrors.New(vtrpcpb.Code_UNIMPLEMENTED, "no such vindex")
	}}, Config{}, nil)
	tablet := serve(t, s.Register)
	client := newTestClient(t, ClientConfig{})
	r, err := client.Reader(testContext(t), "uuid", tablet, false)
	require.NoError(t, err)
	_, err = r.Digest(testContext(t), testCall(), nil)
	require.EqualError(t, err, "Digest of tablet zone1-0000000100 through the scan service: no such vindex")
	require.NotErrorIs(t, err, ErrUnsupported)
	assert.Equal(t, vtrpcpb.Code_UNIMPLEMENTED, vterrors.Code(err))
}

// Tests that hello is said once per connection, by many calls at a time, and again after the idle connection was
// closed; and that a connection in use is not closed as idle.
func TestOneConnection(t *testing.T) {
	noLeaks(t)
	reader, running, release := blocking()
	s := newService(t, reader, Config{}, nil)
	count := &countingServer{hello: func() (*vdiffscanpb.HelloResponse, error) {
		return &vdiffscanpb.HelloResponse{Versions: ourVersions().proto(), Protocol: ProtocolVersion}, nil
	}}
	tablet := serve(t, func(server *grpc.Server) {
		vdiffscanpb.RegisterVDiffScanServer(server, &helloCounter{grpcServer: &grpcServer{service: s}, count: count})
	})
	client := newTestClient(t, ClientConfig{})
	ctx := testContext(t)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			r, err := client.Reader(ctx, "uuid", tablet, false)
			if assert.NoError(t, err) {
				_, err = r.Digest(ctx, testCall(), nil)
				assert.NoError(t, err)
			}
		})
	}
	eventually(t, "all run", func() bool { return running.Load() == 4 })
	client.CloseIdle()
	close(release)
	wg.Wait()
	assert.EqualValues(t, 1, count.hellos.Load())
	client.CloseIdle()
	assert.Empty(t, client.conns)
	r, err := client.Reader(ctx, "uuid", tablet, false)
	require.NoError(t, err)
	client.CloseIdle()
	_, err = r.Digest(ctx, testCall(), nil)
	require.NoError(t, err)
	assert.EqualValues(t, 3, count.hellos.Load())
	client.Close()
	_, err = r.Digest(ctx, testCall(), nil)
	require.ErrorContains(t, err, "closed")
}

// helloCounter counts the hellos of a service.
type helloCounter struct {
	*grpcServer
	count *countingServer
}

func (h *helloCounter) Hello(ctx context.Context, req *vdiffscanpb.HelloRequest) (*vdiffscanpb.HelloResponse, error) {
	return h.count.Hello(ctx, req)
}

// Tests that a cancelled call returns at once, ends on the tablet too, and leaves nothing behind; and that a
// deadline is told from a cancellation.
func TestCancel(t *testing.T) {
	noLeaks(t)
	reader, running, _ := blocking()
	s := newService(t, reader, Config{}, nil)
	tablet := serve(t, s.Register)
	client := newTestClient(t, ClientConfig{})
	r, err := client.Reader(testContext(t), "uuid", tablet, false)
	require.NoError(t, err)

	ctx, cancel := context.WithCancel(testContext(t))
	var wg sync.WaitGroup
	wg.Go(func() {
		_, err := r.Digest(ctx, testCall(), nil)
		assert.ErrorIs(t, err, context.Canceled)
		assert.Equal(t, vtrpcpb.Code_CANCELED, vterrors.Code(err))
	})
	eventually(t, "it runs", func() bool { return running.Load() == 1 })
	cancel()
	wg.Wait()
	eventually(t, "it ends on the tablet", func() bool { return running.Load() == 0 })

	ctx, cancel = context.WithTimeout(testContext(t), 20*time.Millisecond)
	defer cancel()
	_, err = r.Digest(ctx, testCall(), nil)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	assert.Equal(t, vtrpcpb.Code_DEADLINE_EXCEEDED, vterrors.Code(err))
}

// Tests that a call that is slow is waited for as long as progress arrives.
func TestSlowIsNotDead(t *testing.T) {
	noLeaks(t)
	reader, _, release := blocking()
	s := newService(t, reader, Config{}, nil)
	tablet := serve(t, s.Register)
	client := newTestClient(t, ClientConfig{})
	r, err := client.Reader(testContext(t), "uuid", tablet, false)
	require.NoError(t, err)
	hearNothingFor(client, 2*time.Second)
	began := time.Now()
	_, err = r.Digest(testContext(t), testCall(), func(int64, string) {
		if time.Since(began) > 2500*time.Millisecond && release != nil {
			close(release)
			release = nil
		}
	})
	require.NoError(t, err)
}
