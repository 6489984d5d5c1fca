// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package scanservice

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"google.golang.org/grpc"

	"vitess.io/vitess/go/vt/log"
	"vitess.io/vitess/go/vt/servenv"
	"vitess.io/vitess/go/vt/vterrors"

	topodatapb "vitess.io/vitess/go/vt/proto/topodata"
	vtrpcpb "vitess.io/vitess/go/vt/proto/vtrpc"

	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/scan"
	vdiffscanpb "github.com/vttablet-ext/vttablet-ext/proto/vdiffscan"
)

// serviceName is the service's name in --service-map, behind "grpc-".
const serviceName = "vdiffscan"

// The service is on unless --service-map has -grpc-vdiffscan. It has to be on by default: the flags that
// operators have today name the services of Vitess.
func init() {
	servenv.InitServiceMap("grpc", serviceName)
}

// Reader is what the service gives access to.
type Reader interface {
	scan.Digester
	scan.RowReader
}

// Config says what a Service is made of.
type Config struct {
	// Tablet returns the tablet's record as it is now.
	Tablet func() *topodatapb.Tablet
	// Throttle, when set, is asked before each range or small group of ranges.
	Throttle Throttle
	// MaxConcurrent is how many calls of Digest read at a time, MaxWaiting how many more may wait. 0 is the default.
	MaxConcurrent, MaxWaiting int
	// MaxRows is how many calls of Rows there may be at a time, each of which holds a read view open. 0 is the default.
	MaxRows int
}

// Defaults of Config.
const (
	DefaultMaxConcurrent = 8
	DefaultMaxWaiting    = 256
	DefaultMaxRows       = 64
)

// defaultInterval is the time between two progress messages.
const defaultInterval = time.Second

// Service serves the reads of vdiffs on this tablet, whoever asks for them: other tablets through the gRPC server
// that it is registered in, this tablet's own vdiffs by calling it. It is safe for concurrent use.
type Service struct {
	config   Config
	digests  *limiter
	rows     *limiter
	versions versions
	interval time.Duration

	mu      sync.Mutex
	reader  Reader // nil before Bind
	closed  bool
	running sync.WaitGroup // Add under mu and only while not closed
	ending  context.Context
	end     context.CancelFunc
}

// New makes a Service. It answers UNAVAILABLE until Bind is called.
func New(c Config) *Service {
	if c.MaxConcurrent <= 0 {
		c.MaxConcurrent = DefaultMaxConcurrent
	}
	if c.MaxWaiting <= 0 {
		c.MaxWaiting = DefaultMaxWaiting
	}
	if c.MaxRows <= 0 {
		c.MaxRows = DefaultMaxRows
	}
	s := &Service{config: c, versions: ourVersions(), interval: defaultInterval}
	s.digests = newLimiter(c.MaxConcurrent, c.MaxWaiting, s.interval)
	s.rows = newLimiter(c.MaxRows, 0, s.interval)
	s.ending, s.end = context.WithCancel(context.Background())
	return s
}

// MaxReads is how many calls a reader may be asked to work on at a time. A reader that lets fewer in would make calls
// wait that hold read views elsewhere.
func (s *Service) MaxReads() int { return s.config.MaxConcurrent + s.config.MaxRows }

// Bind gives the service its reader, which needs a database configuration that is complete only while the tablet
// starts, and after the gRPC server may have been set up.
func (s *Service) Bind(r Reader) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reader = r
}

// RegisterOnRun adds the service to the tablet's gRPC server when that exists. It serves on tablets of every type:
// sources are replicas more often than not.
func (s *Service) RegisterOnRun() {
	servenv.OnRun(func() {
		if servenv.GRPCCheckServiceMap(serviceName) {
			s.Register(servenv.GRPCServer)
		}
	})
}

// Register adds the service to a gRPC server that is not serving yet.
func (s *Service) Register(server *grpc.Server) {
	vdiffscanpb.RegisterVDiffScanServer(server, &grpcServer{service: s})
}

// Close cancels the calls that are running and waits for them, or for ctx. Later calls are refused. It is for the end
// of the process, where gRPC would wait for calls to end by themselves.
func (s *Service) Close(ctx context.Context) error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.end()
	ended := make(chan struct{})
	go func() {
		s.running.Wait()
		close(ended)
	}()
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func errClosing() error {
	return vterrors.New(vtrpcpb.Code_UNAVAILABLE, "the tablet is shutting down")
}

// serve runs a call: f gets a context that ends with the service, too. Errors are counted, panics are errors.
func (s *Service) serve(ctx context.Context, method string, f func(context.Context, Reader) error) (err error) {
	s.mu.Lock()
	reader, closed := s.reader, s.closed
	if !closed {
		s.running.Add(1)
	}
	s.mu.Unlock()
	if closed {
		return errClosing()
	}
	defer s.running.Done()

	metrics.calls.Add(method, 1)
	metrics.running.Add(1)
	defer metrics.running.Add(-1)
	defer func() {
		if err != nil {
			metrics.errors.Add(method, 1)
		}
	}()
	if reader == nil {
		return vterrors.New(vtrpcpb.Code_UNAVAILABLE, "the tablet is starting")
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := context.AfterFunc(s.ending, cancel)
	defer stop()
	defer contain(ctx, method, &err)
	if err := f(ctx, reader); err != nil {
		if s.ending.Err() != nil {
			return errClosing()
		}
		return err
	}
	return nil
}

type vdiffKey struct{}

// withVDiff notes for which vdiff a call is, for logs.
func withVDiff(ctx context.Context, uuid string) context.Context {
	return context.WithValue(ctx, vdiffKey{}, uuid)
}

// contain makes a panic an error. It is deferred.
func contain(ctx context.Context, method string, err *error) {
	if x := recover(); x != nil {
		metrics.panics.Add(1)
		uuid, _ := ctx.Value(vdiffKey{}).(string)
		log.Error(fmt.Sprintf("VDiff plug-in: panic in %s of the scan service, vdiff %.40q: %v\n%s", method, uuid, x, debug.Stack()))
		*err = vterrors.Errorf(vtrpcpb.Code_INTERNAL, "panic in %s of the scan service, see the tablet's log", method)
	}
}
