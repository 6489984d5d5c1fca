// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package plan

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/sidecar"

	binlogdatapb "vitess.io/vitess/go/vt/proto/binlogdata"
)

const (
	shadowTable = "_vt_vrp_6ace8bcef73211ea87e9f875a4d24e90_20200915120410_"
	purgedTable = "_vt_prg_6ace8bcef73211ea87e9f875a4d24e90_20200915120410_"
)

func schemaOf(names ...string) *Schema {
	s := &Schema{Tables: make(map[string]*TableSchema)}
	for _, name := range names {
		s.Tables[name] = &TableSchema{Name: name}
	}
	return s
}

func filterOf(rules ...string) *binlogdatapb.Filter {
	filter := &binlogdatapb.Filter{}
	for i := 0; i < len(rules); i += 2 {
		filter.Rules = append(filter.Rules, &binlogdatapb.Rule{Match: rules[i], Filter: rules[i+1]})
	}
	return filter
}

// TestSelect tests which tables a workflow has, and which source table fills each.
func TestSelect(t *testing.T) {
	target := schemaOf("t1", "t2", "s1", shadowTable, purgedTable)
	f := func(filter *binlogdatapb.Filter, tables string, want ...string) {
		t.Helper()
		selected, err := Select(filter, target, strings.Split(tables, ","), testParser)
		require.NoError(t, err)
		var got []string
		for _, s := range selected {
			got = append(got, s.Target.Name+"<"+s.SourceName)
		}
		require.Equal(t, want, got)
	}
	f(filterOf("t1", ""), "", "t1<t1")
	f(filterOf("t2", "-80", "t1", "select id from x where in_keyrange('-80')"), "", "t1<x", "t2<t2")
	f(filterOf("/t.*", ""), "", shadowTable+"<"+shadowTable, "t1<t1", "t2<t2")
	f(filterOf("/^t.*", ""), "", "t1<t1", "t2<t2")
	f(filterOf("/.*", ""), "", shadowTable+"<"+shadowTable, "s1<s1", "t1<t1", "t2<t2")
	// The first rule wins.
	f(filterOf("t1", "exclude", "/.*1$", ""), "", "s1<s1")
	f(filterOf("t1", "select * from a", "t1", "select * from b"), "", "t1<a")
	// Online DDL.
	f(filterOf(shadowTable, "select id as id from t1"), "", shadowTable+"<t1")
	// Named tables, with blanks and twice.
	f(filterOf("/.*", ""), "t2", "t2<t2")
	f(filterOf("/.*", ""), " t2 , s1,t2,", "s1<s1", "t2<t2")
	f(filterOf("x", ""), "")
	// A rule that cannot be read is Build's to complain of, for its table only.
	f(filterOf("t1", "select", "t2", ""), "", "t1<", "t2<t2")
}

// TestSelectErrors tests that a request which cannot be met is refused for good, and that all names
// which are wrong are told at once.
func TestSelectErrors(t *testing.T) {
	target := schemaOf("t1", "t2", purgedTable)
	f := func(filter *binlogdatapb.Filter, tables, want string) {
		t.Helper()
		_, err := Select(filter, target, strings.Split(tables, ","), testParser)
		require.ErrorContains(t, err, want)
		class, ok := sidecar.ClassOf(err)
		require.True(t, ok)
		require.Equal(t, sidecar.Permanent, class)
	}
	f(filterOf("/.*", ""), "t1,t9,t8", "no such tables on this shard: t8, t9")
	f(filterOf("t1", ""), "t1,t2", ": t2")
	f(filterOf("t2", "exclude", "/.*", ""), "t2", ": t2")
	f(filterOf("/.*", ""), purgedTable, purgedTable)
	f(filterOf("/(", ""), "", "bad regular expression")
}

// TestMissing tests which tables of a workflow the target does not have: those that a rule names, unless one before excludes them,
// and those of the source that a pattern matches; of these none that Vitess has made.
func TestMissing(t *testing.T) {
	var source []string
	f := func(filter *binlogdatapb.Filter, want ...string) {
		t.Helper()
		missing, err := Missing(filter, schemaOf("t1", "t2"), source)
		require.NoError(t, err)
		require.Equal(t, want, missing)
	}
	f(nil)
	f(filterOf("t1", "", "t2", ""))
	f(filterOf("t9", "", "t1", "", "t8", "select * from t1", "t9", ""), "t8", "t9")
	f(filterOf("t9", "exclude", "t1", ""))
	f(filterOf("/t9", "exclude", "t9", "", "t8", ""), "t8")
	f(filterOf("/t.*", ""))
	source = []string{"t1", "t2", "t7", "other", "_vt_hld_6ace8bcef73211ea87e9f875a4d24e90_20200915120410_", "_4e5dcf80_354b_11eb_82cd_f875a4d24e90_20201203114014_vrepl"}
	f(filterOf("/^t.*", ""), "t7")
	f(filterOf("/.*", "-80"), "other", "t7")
	f(filterOf("other", "exclude", "/.*t.*", "-80", "t9", ""), "t7", "t9")
	f(filterOf("t7", "exclude", "/t7", ""))
	f(filterOf("t1", ""))
	_, err := Missing(filterOf("/(", "", "t9", ""), schemaOf("t1"), nil)
	require.ErrorContains(t, err, "bad regular expression")
}
