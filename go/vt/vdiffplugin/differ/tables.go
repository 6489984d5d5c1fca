// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package differ

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"vitess.io/vitess/go/vt/log"
	"vitess.io/vitess/go/vt/vterrors"
	"vitess.io/vitess/go/vt/vtgate/vindexes"
	"vitess.io/vitess/go/vt/vttablet/tabletmanager/vdiff"

	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/plan"
	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/report"
	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/sidecar"

	vtrpcpb "vitess.io/vitess/go/vt/proto/vtrpc"
)

// planned is a table of the workflow, with its record and its plan, or why it has none.
type planned struct {
	name   string
	record *sidecar.Table
	table  *plan.Table
	gone   bool // no shard of the source has it
	err    error
}

// tables makes the plans of the selected tables of the workflow by the schemas as they are now. missing are those of its tables that the
// target does not have.
func (r *run) tables(ctx context.Context) (list []planned, missing []string, err error) {
	r.obs.Waiting("the schemas of both sides")
	defer r.obs.Waiting("")
	selected, missing, err := r.selectTables(ctx)
	if err != nil {
		return nil, nil, err
	}
	list, err = r.plansOf(ctx, selected)
	return list, missing, err
}

// plansOf makes the plans of tables.
func (r *run) plansOf(ctx context.Context, selected []plan.Selection) ([]planned, error) {
	source, err := r.sourceSchemas(ctx, selected)
	if err != nil {
		return nil, err
	}
	references, err := r.referenceTables(ctx)
	if err != nil {
		return nil, err
	}
	list := make([]planned, len(selected))
	for i, s := range selected {
		p := planned{name: s.Target.Name, gone: !source.has(s.SourceName)}
		if p.err = source.unlike(s.SourceName); p.err == nil {
			p.table, p.err = plan.Build(plan.Input{
				Rule: s.Rule, Target: s.Target, Source: source.shards[0].Tables[s.SourceName],
				SourceTimeZone: r.sourceTZ, TargetTimeZone: r.targetTZ,
				Reference: references[s.SourceName], SourceShards: len(r.shards), PartialJSON: source.partialJSON(s.SourceName),
				Parser: r.Env.Parser(), Collations: r.Env.CollationEnv(),
			})
		}
		list[i] = p
	}
	return list, nil
}

// records returns the records of the tables by their names.
func (r *run) records(ctx context.Context) (map[string]*sidecar.Table, error) {
	list, err := r.Store.Tables(ctx, r.v.ID)
	if err != nil {
		return nil, vterrors.Wrap(err, "reading the records of the tables")
	}
	records := make(map[string]*sidecar.Table, len(list))
	for _, record := range list {
		records[record.Name] = record
	}
	return records, nil
}

// plan makes a job for every table of the workflow that is not completed. Tables that cannot be
// compared are recorded and returned as failed.
func (r *run) plan(ctx context.Context) (jobs []*job, failed []tableError, err error) {
	list, missing, unsure, err := r.settledTables(ctx)
	if err != nil {
		return nil, nil, err
	}
	names := make([]string, len(list))
	for i := range list {
		names[i] = list[i].name
	}
	if err := r.Store.EnsureTables(ctx, r.v.ID, names, r.v.Options.CoreOptions.UpdateTableStats); err != nil {
		return nil, nil, vterrors.Wrap(err, "recording the tables")
	}
	if len(missing) > 0 {
		if err := r.Store.EnsureTables(ctx, r.v.ID, missing, false); err != nil {
			return nil, nil, vterrors.Wrap(err, "recording the tables that are missing")
		}
	}
	records, err := r.records(ctx)
	if err != nil {
		return nil, nil, err
	}
	list = append(list, absent(list, missing, records)...)
	for i := range list {
		p := &list[i]
		if p.record = records[p.name]; p.record == nil {
			return nil, nil, vterrors.Errorf(vtrpcpb.Code_INTERNAL, "table %s has no record", p.name)
		}
		// What could be compared once, or may be soon: a change may be on its way from one side to the other.
		if p.err != nil && (unsure[p.name] || planOf(p.record) != "") {
			p.err = sidecar.AsTransient(p.err)
		}
	}
	return r.start(ctx, slices.DeleteFunc(list, func(p planned) bool { return p.record.State == vdiff.CompletedState }))
}

// absent returns the tables that cannot be compared since the target does not have them: those that are missing, and those of the records
// that are not completed and that the workflow fills no more. What was said of a completed one was true.
func absent(list []planned, missing []string, records map[string]*sidecar.Table) (absent []planned) {
	for _, name := range missing {
		absent = append(absent, planned{name: name, err: sidecar.AsPermanent(vterrors.Errorf(vtrpcpb.Code_FAILED_PRECONDITION,
			"it is a table of the workflow, and the target does not have it: none of its rows are there. Copy it, or name the other tables with --tables"))})
	}
	for _, name := range slices.Sorted(maps.Keys(records)) {
		is := func(p planned) bool { return p.name == name }
		if records[name].State != vdiff.CompletedState && !slices.ContainsFunc(list, is) && !slices.Contains(missing, name) {
			absent = append(absent, planned{name: name, err: sidecar.AsPermanent(vterrors.Errorf(vtrpcpb.Code_FAILED_PRECONDITION,
				"it was a table of the workflow when the vdiff began, and the target does not have it any more: copy it again, or create another vdiff"))})
		}
	}
	return absent
}

// planOf is the fingerprint of the plan under which a table was compared; "" where nothing, or only the stock engine, says so.
func planOf(record *sidecar.Table) string {
	done, err := report.Unmarshal(record.Report)
	if err != nil {
		return ""
	}
	return done.Plan
}

// start makes the jobs of tables.
func (r *run) start(ctx context.Context, list []planned) (jobs []*job, failed []tableError, err error) {
	var names []string
	var anew []sidecar.TableProgress
	for _, p := range list {
		if p.err != nil {
			failed = append(failed, r.failTable(ctx, p.name, p.err))
			continue
		}
		j := r.newJob(p.table, p.record)
		jobs, names = append(jobs, j), append(names, p.name)
		if j.lastPK == nil && j.stored == nil && (p.record.LastPK != nil || p.record.Report != nil) {
			// Whoever goes on after a crash must not take up what does not hold any more.
			doc, err := j.report.Marshal()
			if err != nil {
				return nil, nil, err
			}
			// The state goes with it: a table that stayed completed, with a report of the new plan, would never be compared.
			anew = append(anew, sidecar.TableProgress{Table: p.name, Progress: &sidecar.Progress{Report: doc, State: vdiff.StartedState}})
		}
	}
	if len(anew) > 0 {
		if err := r.Store.SaveProgressOf(ctx, r.v.ID, anew); err != nil {
			return nil, nil, vterrors.Wrap(err, "starting tables anew")
		}
	}
	if err := r.Store.StartTables(ctx, r.v.ID, names); err != nil {
		return nil, nil, vterrors.Wrap(err, "starting the tables")
	}
	return jobs, failed, nil
}

func (r *run) selectTables(ctx context.Context) (selected []plan.Selection, missing []string, err error) {
	target, err := plan.LoadSchema(ctx, r.tmc, r.Env.CollationEnv(), r.Tablet(), nil)
	if err != nil {
		return nil, nil, vterrors.Wrap(err, "target")
	}
	if list := strings.TrimSpace(r.v.Options.CoreOptions.Tables); list != "" {
		selected, err = plan.Select(r.filter, target, strings.Split(list, ","), r.Env.Parser())
		return selected, nil, err // it names what is missing of these
	}
	var source []string
	if plan.HasPattern(r.filter) {
		if source, err = r.sourceTables(ctx); err != nil {
			return nil, nil, err
		}
	}
	if missing, err = plan.Missing(r.filter, target, source); err != nil {
		return nil, nil, err
	}
	selected, err = plan.Select(r.filter, target, nil, r.Env.Parser())
	if err == nil && len(selected)+len(missing) == 0 {
		err = sidecar.AsPermanent(vterrors.New(vtrpcpb.Code_FAILED_PRECONDITION, "the workflow has no tables on this shard: nothing to compare"))
	}
	return selected, missing, err
}

// referenceTables returns the tables of which every source shard holds a copy. One shard holds no
// copies.
func (r *run) referenceTables(ctx context.Context) (map[string]bool, error) {
	references := make(map[string]bool)
	if len(r.shards) < 2 {
		return references, nil
	}
	vschema, err := r.sourceTopo.GetVSchema(ctx, r.sourceKeyspace)
	if err != nil {
		return nil, vterrors.Wrapf(err, "vschema of the source keyspace %s", r.sourceKeyspace)
	}
	for name, table := range vschema.Tables {
		if table.Type == vindexes.TypeReference {
			references[name] = true
		}
	}
	return references, nil
}

// newJob makes the job of a table, at the checkpoint of its record.
func (r *run) newJob(t *plan.Table, record *sidecar.Table) *job {
	j := &job{r: r, table: t, rows: record.TableRows, merge: true}
	j.restart()
	if err := j.load(record); err != nil {
		log.Warn(fmt.Sprintf("vdiff %s: table %s: its record cannot be continued, comparing it from the first row: %v", r.v.UUID, t.Name, err))
		j.restart()
	}
	// The default is the largest number there is: no limit.
	if limit := r.v.Options.CoreOptions.MaxRows; limit > 0 && limit < math.MaxInt64 {
		// A run that was completed compares as many rows again; one that died goes on to where its part would have ended.
		j.limit = limit + j.processed()
		if record.State == vdiff.StartedState {
			j.limit -= j.processed() % limit
		}
		if j.limit < limit {
			j.limit = 0 // more rows than can be counted
		}
	}
	return j
}

// load sets the job to the checkpoint of its record, if it has one that was made under the same plan: under another one
// other columns were compared, or, where a key has got another collation, other rows are behind lastpk.
func (j *job) load(record *sidecar.Table) error {
	if !j.checkpoints() {
		return nil
	}
	prior, err := report.Unmarshal(record.Report)
	if err != nil {
		return err
	}
	if len(record.LastPK) == 0 && len(prior.Checkpoint) == 0 {
		return nil
	}
	switch same, known := j.table.HasFingerprint(prior.Plan); {
	case same:
	case !known:
		return errors.New("it does not say under which schema and filter its rows were compared: the stock engine wrote it, or another version of ours")
	default:
		return errors.New("the schema of a side or the filter has changed since its rows were compared")
	}
	if len(record.LastPK) > 0 {
		source, target, err := plan.DecodeLastPK(j.table, record.LastPK)
		if err != nil {
			return err
		}
		after, err := rowOfKey(j.table, target)
		if err != nil {
			return err
		}
		j.report = report.NewBuilder(j.table, prior, j.r.reportOptions())
		j.lastPK, j.sourcePK, j.targetPK, j.after = record.LastPK, source, target, after
		j.saved = record.Report
	}
	return j.loadCheckpoint(prior)
}

// rewind sets the job back to its last checkpoint, for what was counted since is not to be counted
// twice.
func (j *job) rewind() error {
	if j.lastPK == nil || !j.checkpoints() {
		j.restart()
		return nil
	}
	prior, err := report.Unmarshal(j.saved)
	if err != nil {
		return err
	}
	j.report, j.stored = report.NewBuilder(j.table, prior, j.r.reportOptions()), nil
	return nil
}
