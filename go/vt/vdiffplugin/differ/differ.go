// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package differ

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	"vitess.io/vitess/go/vt/log"
	"vitess.io/vitess/go/vt/topo"
	"vitess.io/vitess/go/vt/vtenv"
	"vitess.io/vitess/go/vt/vterrors"
	"vitess.io/vitess/go/vt/vttablet/tmclient"

	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/fence"
	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/report"
	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/scan"
	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/sidecar"

	binlogdatapb "vitess.io/vitess/go/vt/proto/binlogdata"
	topodatapb "vitess.io/vitess/go/vt/proto/topodata"
	vtrpcpb "vitess.io/vitess/go/vt/proto/vtrpc"
)

// Config is what a Differ works with. All fields are required unless they say otherwise.
type Config struct {
	// Tablet returns this tablet, the target's primary.
	Tablet     func() *topodatapb.Tablet
	TopoServer *topo.Server
	// NewTMClient makes a client for the tablet manager RPCs of one run.
	NewTMClient func() tmclient.TabletManagerClient
	Dialer      *scan.Dialer
	Fences      *fence.Manager
	Store       Store
	Env         *vtenv.Environment
	// Reader returns what reads beside the MySQL of a tablet on behalf of a vdiff, or scan.ErrUnsupported. Tablets of another
	// cluster may have the aliases of this one's. nil: every row is compared by VStreamRows.
	Reader func(ctx context.Context, uuid string, tablet *topodatapb.Tablet, otherCluster bool) (Reader, error)

	// ReadersIdle is called at the end of a run: connections that no reader uses may be closed. It may be nil.
	ReadersIdle func()

	// Concurrency is how many large tables are compared at a time.
	Concurrency int
	// MaxSnapshotAge is how long a read view may live before its table gets another one.
	MaxSnapshotAge time.Duration
	// RetryInterval is the time between runs of a vdiff that errs. Tries within a run come sooner.
	RetryInterval time.Duration
	// LockWait bounds the opening of a read view while the streams are stopped.
	LockWait time.Duration
	// MemoryLimit bounds the rows of one table that wait in memory for their partner, in bytes.
	MemoryLimit int64
	// CheckpointInterval is the time between two checkpoints of a table; 0 means half a second.
	CheckpointInterval time.Duration
}

// Store is what a run reads and writes in _vt.
type Store interface {
	sidecar.TableStore
	// MaxStatement is the length of the longest statement that the server takes, in bytes.
	MaxStatement(ctx context.Context) (int, error)
}

// Differ runs vdiffs. It may run several at a time.
type Differ struct {
	cfg Config
}

var _ Runner = (*Differ)(nil)

// New returns a Differ.
func New(cfg Config) *Differ {
	if cfg.RetryInterval == 0 {
		cfg.RetryInterval = 30 * time.Second
	}
	if cfg.CheckpointInterval == 0 {
		cfg.CheckpointInterval = 500 * time.Millisecond
	}
	return &Differ{cfg: cfg}
}

// run is one vdiff that is being run.
type run struct {
	Config
	v   *sidecar.VDiff
	obs Observer
	tmc tmclient.TabletManagerClient

	// maxReport bounds the JSON of one table's report, so that writing it cannot fail.
	maxReport int

	// What all streams of the workflow have in common.
	sourceKeyspace string
	filter         *binlogdatapb.Filter
	sourceTZ       string
	targetTZ       string
	workflowType   binlogdatapb.VReplicationWorkflowType
	shards         []source

	sourceTopo *topo.Server
}

// source is one source shard, with the stream that reads from it.
type source struct {
	streamID int32
	shard    string
}

// Run compares the tables of v that are not completed. See Runner.
func (d *Differ) Run(ctx context.Context, v *sidecar.VDiff, obs Observer) error {
	if v.OptionsErr != nil {
		return sidecar.AsPermanent(vterrors.Wrapf(v.OptionsErr, "the stored options of the vdiff cannot be read, delete it and create it anew"))
	}
	r := &run{Config: d.cfg, v: v, obs: obs, tmc: d.cfg.NewTMClient()}
	defer r.tmc.Close()
	if r.ReadersIdle != nil {
		defer r.ReadersIdle()
	}
	defer r.Dialer.Wait(abandonedWait)
	maxStatement, err := r.Store.MaxStatement(ctx)
	if err != nil {
		return err
	}
	r.maxReport = report.Bound(maxStatement)
	streams, err := r.waitForCopy(ctx)
	if err != nil {
		return err
	}
	if err := r.readStreams(streams); err != nil {
		return err
	}
	closeTopo, err := r.openSourceTopo(ctx, streams[0].Source.ExternalCluster)
	if err != nil {
		return err
	}
	defer closeTopo()

	jobs, failed, err := r.plan(ctx)
	if err != nil {
		return err
	}
	return r.untilUnaltered(ctx, jobs, failed, r.compare)
}

// compare compares tables and returns those that failed.
func (r *run) compare(ctx context.Context, jobs []*job) ([]tableError, error) {
	ranges, jobs, err := r.verify(ctx, jobs)
	if err != nil {
		return nil, err
	}
	rows, err := r.compareRanges(ctx, ranges)
	if err != nil {
		return nil, err
	}
	s := newScheduler(r, append(jobs, rows...))
	if err := s.run(ctx); err != nil {
		return nil, err
	}
	return s.failed, nil
}

// abandonedWait is how long the end of a run waits for streams whose opening it gave up.
const abandonedWait = 5 * time.Second

// waitForCopy returns the streams of the workflow when none of them is copying any more.
func (r *run) waitForCopy(ctx context.Context) ([]*sidecar.Stream, error) {
	defer r.obs.Waiting("")
	for {
		streams, err := r.Store.Streams(ctx, r.v.Workflow)
		if err != nil {
			return nil, err
		}
		copying := slices.IndexFunc(streams, func(s *sidecar.Stream) bool { return s.Copying })
		broken := slices.ContainsFunc(streams, func(s *sidecar.Stream) bool { return s.State == stateError })
		if copying < 0 || broken {
			return streams, fence.Check(r.v.Workflow, streams)
		}
		r.obs.Waiting(fmt.Sprintf("the copy phase of workflow %s (stream %d is %s)", r.v.Workflow, streams[copying].ID, streams[copying].State))
		if err := sleep(ctx, 2*time.Second); err != nil {
			return nil, err
		}
	}
}

// readStreams takes from the streams what the whole workflow shares.
func (r *run) readStreams(streams []*sidecar.Stream) error {
	first := streams[0]
	for _, s := range streams {
		if s.Source == nil || s.Source.Filter == nil {
			return sidecar.AsPermanent(vterrors.Errorf(vtrpcpb.Code_INVALID_ARGUMENT,
				"stream %d of workflow %s has no filter in its source: it cannot be compared", s.ID, r.v.Workflow))
		}
		if !proto.Equal(s.Source.Filter, first.Source.Filter) || s.Source.Keyspace != first.Source.Keyspace {
			return sidecar.AsPermanent(vterrors.Errorf(vtrpcpb.Code_UNIMPLEMENTED,
				"streams %d and %d of workflow %s have unlike filters or keyspaces: diff them as workflows of their own", first.ID, s.ID, r.v.Workflow))
		}
		r.shards = append(r.shards, source{streamID: s.ID, shard: s.Source.Shard})
	}
	r.sourceKeyspace = first.Source.Keyspace
	r.filter = first.Source.Filter
	r.sourceTZ, r.targetTZ = first.Source.SourceTimeZone, first.Source.TargetTimeZone
	r.workflowType = first.Type
	return nil
}

// openSourceTopo sets the topo server of the source: that of a mounted cluster for Migrate.
func (r *run) openSourceTopo(ctx context.Context, externalCluster string) (func(), error) {
	if externalCluster == "" {
		r.sourceTopo = r.TopoServer
		return func() {}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, topo.RemoteOperationTimeout)
	defer cancel()
	ts, err := r.TopoServer.OpenExternalVitessClusterServer(ctx, externalCluster)
	if err != nil {
		return nil, vterrors.Wrapf(err, "opening the topo of the mounted cluster %s", externalCluster)
	}
	r.sourceTopo = ts
	return ts.Close, nil
}

// tableError is the error of one table.
type tableError struct {
	table string
	err   error
}

// summary makes one error of those of the tables, to be recorded as theirs: permanent when all of them are.
func summary(failed []tableError) error {
	if len(failed) == 0 {
		return nil
	}
	var tables, texts []string
	permanent := true
	for _, f := range failed {
		class, ok := sidecar.ClassOf(f.err)
		permanent = permanent && ok && class == sidecar.Permanent
		text := f.err.Error()
		if name := "table " + f.table + ": "; !strings.HasPrefix(text, name) { // plans name their table
			text = name + text
		}
		tables, texts = append(tables, f.table), append(texts, text)
	}
	err := vterrors.New(vterrors.Code(failed[0].err), strings.Join(texts, "; "))
	if permanent {
		return sidecar.OfTables(sidecar.AsPermanent(err), tables)
	}
	return sidecar.OfTables(sidecar.AsTransient(err), tables)
}

// failTable logs the error of a table; the other tables go on.
func (r *run) failTable(ctx context.Context, table string, err error) tableError {
	log.Error(fmt.Sprintf("vdiff %s: table %s: %v", r.v.UUID, table, err))
	if logErr := r.Store.Log(ctx, r.v.ID, fmt.Sprintf("table %s: %v", table, err)); logErr != nil {
		log.Error(fmt.Sprintf("vdiff %s: table %s: recording its error: %v", r.v.UUID, table, logErr))
	}
	return tableError{table: table, err: err}
}

var (
	stateError   = binlogdatapb.VReplicationWorkflowState_Error.String()
	stateStopped = binlogdatapb.VReplicationWorkflowState_Stopped.String()
)

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
