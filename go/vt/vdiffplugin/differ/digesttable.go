// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package differ

import (
	"context"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"vitess.io/vitess/go/sqlescape"
	"vitess.io/vitess/go/sqltypes"
	"vitess.io/vitess/go/vt/log"
	"vitess.io/vitess/go/vt/topo/topoproto"

	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/pkrange"
	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/plan"
	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/scan"
	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/verify"

	tabletmanagerdatapb "vitess.io/vitess/go/vt/proto/tabletmanagerdata"
)

// buckets is how many digests a table has that cannot be read in ranges.
const buckets = 1024

// digestTable is a table that is being verified. Its fields belong to digests.mu, but for those that are
// never changed.
type digestTable struct {
	job            *job
	id             verify.TableID
	source, target *scan.Table
	segments       []verify.Segment // where its checkpoint left it
	min, max       *pkrange.Value   // of a key of one integer column, nil when not known
	asked          bool             // whether MySQL was asked for min and max
	last           pkrange.Bound    // the last key that was seen at the table's end, nil when not known

	rowWay    bool               // it is compared row by row
	left      []pkrange.Range    // what the machine has left for the fence
	buckets   *scan.BucketFilter // the same of a table that is not ranged
	verified  int64              // rows
	parts     int64              // ranges or buckets that are verified
	told      int64              // rows that the observer knows of
	completed bool

	saving sync.Mutex // one checkpoint at a time
	saved  time.Time  // below saving
}

// digestible returns the tables that digests can verify, and the jobs of the others.
func (r *run) digestible(ctx context.Context, jobs []*job) (tables []*digestTable, rows []*job) {
	if r.Reader == nil {
		return nil, jobs
	}
	var vs *vindexFinder
	for _, j := range jobs {
		d := j.table.Digest
		switch {
		case d == nil:
			log.Info(fmt.Sprintf("vdiff %s: table %s is compared row by row: %s", r.v.UUID, j.table.Name, j.table.NotDigestible))
			rows = append(rows, j)
			continue
		case j.limit > 0, // --limit asks for the first rows
			!d.Ranged && j.lastPK != nil: // the rest behind its lastpk cannot be said
			rows = append(rows, j)
			continue
		}
		t := &digestTable{job: j, id: verify.TableID(j.table.Name), source: scanTable(j.table, j.table.SourceName, &d.Source, d.Ranged), target: scanTable(j.table, j.table.Name, &d.Target, d.Ranged)}
		if d.Source.KeyRange != nil {
			if vs == nil {
				vs = r.newVindexFinder(ctx)
			}
			filter, err := vs.filter(j.table, d.Source.KeyRange)
			if err != nil {
				log.Info(fmt.Sprintf("vdiff %s: table %s is compared row by row: %v", r.v.UUID, j.table.Name, err))
				rows = append(rows, j)
				continue
			}
			t.source.Filter = filter
		}
		t.segments = j.segments()
		if j.stored != nil {
			t.last = j.stored.Last
		}
		for _, s := range t.segments {
			t.told += s.Rows
		}
		r.obs.TableAt(j.table.Name, j.processed()+t.told)
		t.saved = time.Now().Add(-r.CheckpointInterval * 4 / 5) // the first one comes soon
		tables = append(tables, t)
	}
	return tables, rows
}

func scanTable(t *plan.Table, name string, side *plan.DigestSide, ranged bool) *scan.Table {
	st := &scan.Table{Name: name, Columns: side.Columns, Where: side.Where}
	if ranged {
		st.Index = side.Index
		for n, i := range t.Key {
			st.Key = append(st.Key, scan.KeyColumn{Name: side.Key[n], Column: i})
		}
	}
	return st
}

// forMachine describes the table to the machine.
func (t *digestTable) forMachine() verify.Table {
	v := verify.Table{ID: t.id, Rows: t.job.rows, Segments: t.segments, Min: t.min, Max: t.max}
	if !t.job.table.Digest.Ranged {
		v.Buckets, v.Segments = buckets, nil
		v.Proof = proofs[t.job.table.Digest.Proof]
	}
	return v
}

// proofs is what plan's proofs are for the machine.
var proofs = map[plan.Proof]verify.Proof{
	plan.ProofAnyTime: verify.AnyTime, plan.ProofSamePosition: verify.SamePosition, plan.ProofAtOnce: verify.AtOnce,
}

// reached notes the last key at the table's end: no row is counted behind it.
func (t *digestTable) reached(task verify.Task, answer *scan.Digest) {
	if len(task.Range.UpTo) > 0 {
		return
	}
	if t.last = answer.Last; len(answer.Last) == 0 {
		t.last = task.Range.After
	}
}

// lastKey returns the last key of a table whose ranges are compared in a fence, where last is the last row of that; nil when it
// is not known. Nothing that is counted is behind it.
func (t *digestTable) lastKey(last scan.Row) pkrange.Bound {
	switch n := len(t.left); {
	case n == 0 || len(t.left[n-1].UpTo) > 0:
		return t.last // the end is verified
	case n > 1:
		return nil // the last row may be one of another range
	case last.Lengths == nil:
		return t.left[0].After
	}
	bound, err := keyBound(t.job.table, last.SQLValues(targetTypes(t.job.table)))
	if err != nil {
		return nil
	}
	return bound
}

// laned says whether a table can be cut into lanes: by integers.
func (t *digestTable) laned() bool {
	return len(t.target.Key) == 1 && sqltypes.IsIntegral(t.job.table.Columns[t.job.table.Key[0]].Target.Type)
}

// setBounds finds the smallest and the largest key of tables that are large by what the statistics say, to cut them into lanes.
func (r *run) setBounds(ctx context.Context, rs *readers, tables []*digestTable) {
	var g errgroup.Group
	g.SetLimit(r.Concurrency)
	for _, t := range tables {
		if t.job.rows < 4*10_000 || !t.laned() {
			continue
		}
		t.asked = true
		g.Go(contained(func() error {
			var err error
			t.min, t.max, err = r.bounds(ctx, rs, t)
			if err != nil {
				log.Warn(fmt.Sprintf("vdiff %s: table %s is read in one lane: %v", r.v.UUID, t.job.table.Name, err))
			}
			return nil
		}))
	}
	_ = g.Wait() // no error is returned
}

// learnBounds is setBounds for a table that has turned out to be larger than the statistics say: MySQL keeps them for a day, and
// they may be those of the empty table.
func (d *digests) learnBounds(ctx context.Context, rs *readers, task verify.Task, walked *scan.Digest) {
	t := d.table(task)
	d.mu.Lock()
	ask := !t.asked && task.Limit > 0 && len(walked.UpTo) > 0 && t.laned()
	t.asked = t.asked || ask
	d.mu.Unlock()
	if !ask {
		return
	}
	smallest, largest, err := d.r.bounds(ctx, rs, t)
	if err != nil {
		log.Warn(fmt.Sprintf("vdiff %s: table %s is read in one lane: %v", d.r.v.UUID, t.job.table.Name, err))
	}
	if err != nil || smallest == nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.machine.SetBounds(t.id, smallest, largest)
	d.wakeLocked()
}

// bounds asks for the smallest and the largest value of a key of one integer column.
func (r *run) bounds(ctx context.Context, rs *readers, t *digestTable) (smallest, largest *pkrange.Value, err error) {
	// The connections that a tablet lends have no database on all tablets.
	column, table := sqlescape.EscapeID(t.target.Key[0].Name), sqlescape.EscapeID(topoproto.TabletDbName(rs.picked.target))+"."+sqlescape.EscapeID(t.target.Name)
	result, err := r.tmc.ExecuteFetchAsApp(ctx, rs.picked.target, false, &tabletmanagerdatapb.ExecuteFetchAsAppRequest{
		Query: fmt.Appendf(nil, "select min(%s), max(%s) from %s", column, column, table), MaxRows: 1,
	})
	if err != nil {
		return nil, nil, err
	}
	rows := sqltypes.Proto3ToResult(result).Rows
	if len(rows) != 1 || len(rows[0]) != 2 || rows[0][0].IsNull() || rows[0][1].IsNull() {
		return nil, nil, nil
	}
	if smallest, err = keyValue(rows[0][0]); err != nil {
		return nil, nil, err
	}
	largest, err = keyValue(rows[0][1])
	return smallest, largest, err
}

func keyValue(v sqltypes.Value) (*pkrange.Value, error) {
	if v.IsUnsigned() {
		n, err := v.ToUint64()
		return &pkrange.Value{Kind: pkrange.Uint, Uint: n}, err
	}
	n, err := v.ToInt64()
	return &pkrange.Value{Kind: pkrange.Int, Int: n}, err
}
