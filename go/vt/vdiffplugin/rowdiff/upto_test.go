// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package rowdiff

import (
	"fmt"
	"math/rand/v2"
	"sort"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/plan"
	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/scan"

	querypb "vitess.io/vitess/go/vt/proto/query"
)

// Tests that a merge up to a key is that of the rows up to it, whatever lies behind on either side and wherever batches end, for keys
// of numbers and of text, and that it goes on from one bound to the next with the verdicts of the whole.
func TestUpTo(t *testing.T) {
	word := func(n int) string { return fmt.Sprintf("k%03d", n) }
	texts := idTable()
	texts.Columns[0] = textColumn("id", "utf8mb4_general_ci", "utf8mb4_general_ci", plan.OrderCollation)
	for seed := range uint64(200) {
		rnd := rand.New(rand.NewPCG(seed, 2))
		table, name := idTable(), strconv.Itoa
		if seed%2 == 1 {
			table, name = texts, word
		}
		sources, target, all := make([][][]string, 1+rnd.IntN(2)), [][]string(nil), 1+rnd.IntN(40)
		for n := range all {
			if rnd.IntN(5) > 0 {
				i := rnd.IntN(len(sources))
				sources[i] = append(sources[i], []string{name(n)})
			}
			if rnd.IntN(5) > 0 {
				target = append(target, []string{name(n)})
			}
		}
		behind := func(rows [][]string, after int) (list [][]string) {
			for _, r := range rows {
				if n, err := strconv.Atoi(strings.TrimLeft(r[0], "k")); err == nil && n > after { // what is behind upTo arrives too
					list = append(list, r)
				}
			}
			return list
		}
		got := &verdicts{}
		for after := -1; after < all; {
			upTo := after + 1 + rnd.IntN(8)
			var parts [][][]string
			for _, rows := range sources {
				parts = append(parts, behind(rows, after))
			}
			opts := Options{UpTo: scan.NewBatch(1, []*querypb.Row{protoRow([]string{name(upTo)})}).Row(0)}
			part, r, err := compare(t, table, true, parts, behind(target, after), opts)
			require.NoError(t, err, "seed %d", seed)
			require.False(t, r.Stopped)
			got.matches += part.matches
			got.lines = append(got.lines, part.lines...)
			after = upTo
		}
		sort.Strings(got.lines)
		want, _, err := compare(t, table, true, sources, target, Options{})
		require.NoError(t, err)
		require.Equal(t, want, got, "seed %d", seed)
	}
}
