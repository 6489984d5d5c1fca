// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package differ

import (
	"context"
	"fmt"
	"slices"

	"vitess.io/vitess/go/vt/log"
	"vitess.io/vitess/go/vt/vterrors"
	"vitess.io/vitess/go/vt/vttablet/tabletmanager/vdiff"

	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/plan"
	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/sidecar"

	vtrpcpb "vitess.io/vitess/go/vt/proto/vtrpc"
)

// maxAltered is how often in a run a table is compared again because its schema has changed.
const maxAltered = 3

// untilUnaltered compares tables, and again those whose schema has changed meanwhile: of a column that is new, or of rows that
// another collation puts behind the last key, nothing is known. failed are tables that have failed already; compare returns more of them.
func (r *run) untilUnaltered(ctx context.Context, jobs []*job, failed []tableError, compare func(context.Context, []*job) ([]tableError, error)) error {
	again := make(map[string]int)
	for {
		more, err := compare(ctx, jobs)
		if err != nil {
			return err
		}
		failed = append(failed, more...)
		if jobs, more, err = r.altered(ctx, failed); err != nil {
			if failure := summary(failed); failure != nil {
				return failure // the schemas are looked at when it is resumed
			}
			return vterrors.Wrap(err, "looking whether a schema has changed")
		}
		failed = append(failed, more...)
		jobs = slices.DeleteFunc(jobs, func(j *job) bool {
			name := j.table.Name
			if again[name]++; again[name] <= maxAltered {
				return false
			}
			failed = append(failed, r.failTable(ctx, name, sidecar.AsTransient(vterrors.Errorf(vtrpcpb.Code_ABORTED,
				"its schema changed each of the %d times that it was compared; it is compared again at the next try", again[name]))))
			return true
		})
		if len(jobs) == 0 {
			return summary(failed)
		}
	}
}

// altered makes a job for every completed table whose schema is no longer the one under which it was compared. Tables of known, which
// failed, are left out, and so are tables that are gone: what was said of them was true.
func (r *run) altered(ctx context.Context, known []tableError) (jobs []*job, failed []tableError, err error) {
	r.obs.Waiting("the schemas of both sides")
	defer r.obs.Waiting("")
	records, err := r.records(ctx)
	if err != nil {
		return nil, nil, err
	}
	var names []string
	prints := make(map[string]string)
	for name, record := range records {
		if record.State != vdiff.CompletedState || slices.ContainsFunc(known, func(f tableError) bool { return f.table == name }) {
			continue
		}
		if print := planOf(record); print != "" { // the stock engine says nothing of the schema
			prints[name], names = print, append(names, name)
		}
	}
	if len(names) == 0 {
		return nil, nil, nil
	}
	target, err := plan.LoadSchema(ctx, r.tmc, r.Env.CollationEnv(), r.Tablet(), names)
	if err != nil {
		return nil, nil, vterrors.Wrap(err, "target")
	}
	here := &plan.Schema{Tables: make(map[string]*plan.TableSchema)}
	for _, name := range names {
		if table := target.Tables[name]; table != nil {
			here.Tables[name] = table
		}
	}
	if len(here.Tables) == 0 {
		return nil, nil, nil
	}
	selected, err := plan.Select(r.filter, here, nil, r.Env.Parser())
	if err != nil {
		return nil, nil, err
	}
	list, err := r.plansOf(ctx, selected)
	if err != nil {
		return nil, nil, err
	}
	for i := range list {
		list[i].record = records[list[i].name]
		if list[i].err != nil { // the change may be on its way from one side to the other
			list[i].err = sidecar.AsTransient(list[i].err)
		}
	}
	return r.start(ctx, slices.DeleteFunc(list, func(p planned) bool {
		if p.err != nil {
			return p.gone
		}
		same, sameVersion := p.table.HasFingerprint(prints[p.name])
		if sameVersion && !same {
			log.Warn(fmt.Sprintf("vdiff %s: table %s: its schema has changed since it was compared, comparing it again", r.v.UUID, p.name))
		}
		return same || !sameVersion
	}))
}
