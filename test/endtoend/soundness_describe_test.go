// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package endtoend

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vttablet-ext/vttablet-ext/test/endtoend/cluster"
)

// describe logs what a round that failed leaves behind: what streams and mysqlds are doing, and how the rows really differ when
// nobody writes any more. The faults are among the differences.
func (d *round) describe(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	show := func(tablet *cluster.Tablet, query string) {
		result, err := tablet.Query(ctx, query)
		if err != nil {
			t.Logf("%s: %s: %v", tablet.Alias, query, err)
			return
		}
		for _, row := range result.Rows {
			t.Logf("%s: %v", tablet.Alias, row)
		}
	}
	sources := []*cluster.Tablet{d.p.source()}
	if !d.f.unsharded {
		sources = []*cluster.Tablet{d.p.c.Primary("sdst", "-80"), d.p.c.Primary("sdst", "80-")}
	}
	for _, target := range d.f.w.Primaries() {
		show(target, "select id, workflow, state, message, stop_pos, pos from _vt.vreplication")
	}
	for _, source := range sources {
		show(source, "select @@global.gtid_executed")
	}
	for _, tablet := range d.p.c.Tablets() {
		show(tablet, "select id, command, time, state, left(info, 200) from performance_schema.processlist where command not in ('Sleep', 'Daemon')")
	}
	for _, s := range d.f.subjects {
		last := ""
		err := cluster.WaitFor(ctx, "the rows to stay as they are", 2*time.Second, func(ctx context.Context) (bool, error) {
			text, err := differing(ctx, s.name, sources, d.f.w.Primaries())
			if err != nil || text != last {
				last = text
				return false, err
			}
			return true, nil
		})
		t.Logf("%s differs in %s (%v)", s.name, last, err)
	}
}

// differing are the rows of a table that one side has more often than the other.
func differing(ctx context.Context, table string, sources, targets []*cluster.Tablet) (string, error) {
	counts := map[string]int{}
	add := func(tablets []*cluster.Tablet, n int) error {
		for _, tablet := range tablets {
			result, err := tablet.Query(ctx, "select * from "+table)
			if err != nil {
				return err
			}
			for _, row := range result.Rows {
				var values []string
				for i, f := range result.Fields {
					values = append(values, fmt.Sprintf("%s=%.60q", f.Name, row[i].ToString()))
				}
				slices.Sort(values)
				counts[strings.Join(values, " ")] += n
			}
		}
		return nil
	}
	if err := add(sources, 1); err != nil {
		return "", err
	}
	if err := add(targets, -1); err != nil {
		return "", err
	}
	var list []string
	for row, n := range counts {
		if n != 0 {
			list = append(list, fmt.Sprintf("%+d %s", n, row))
		}
	}
	slices.Sort(list)
	const most = 20
	return fmt.Sprintf("%d rows:\n%s", len(list), strings.Join(list[:min(len(list), most)], "\n")), nil
}
