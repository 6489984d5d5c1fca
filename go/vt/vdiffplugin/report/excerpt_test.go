// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package report

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"vitess.io/vitess/go/sqltypes"

	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/plan"

	querypb "vitess.io/vitess/go/vt/proto/query"
)

// TestExcerpts tests that long values of a mismatch are shown where they differ.
func TestExcerpts(t *testing.T) {
	f := func(typ querypb.Type, charset, source, target, wantSource, wantTarget string) {
		t.Helper()
		table := &plan.Table{Name: "t", SourceName: "t", Key: []int{0}, Columns: []plan.Column{columnOf("id", "id", sqltypes.Int64, ""), columnOf("v", "v", typ, charset)}}
		options := everything
		options.TruncateAt = 20
		b := NewBuilder(table, nil, options)
		b.AddMismatch([]sqltypes.Value{sqltypes.NewInt64(1), sqltypes.MakeTrusted(typ, []byte(source))}, []sqltypes.Value{sqltypes.NewInt64(1), sqltypes.MakeTrusted(typ, []byte(target))})
		sample := b.Report().MismatchedRowsDiffs[0]
		assert.Equal(t, wantSource, sample.Source.Row["v"])
		assert.Equal(t, wantTarget, sample.Target.Row["v"])
		assert.Equal(t, !strings.Contains(wantSource, cutMark) && !strings.Contains(wantSource, cutFront), sample.Source.LosslessValues)
	}
	text, bytes := sqltypes.VarChar, sqltypes.Blob
	x := func(n int) string { return strings.Repeat("x", n) }
	e := func(n int) string { return strings.Repeat("é", n) }

	// What differs is at the beginning, at the limit, behind it, and at the end.
	f(text, "utf8mb4", "a"+x(100), "b"+x(100), "a"+x(19)+cutMark, "b"+x(19)+cutMark)
	f(text, "utf8mb4", x(15)+"a"+x(100), x(15)+"b"+x(100), x(15)+"a"+x(4)+cutMark, x(15)+"b"+x(4)+cutMark)
	f(text, "utf8mb4", x(20)+"a"+x(100), x(20)+"b"+x(100), cutFront+x(5)+"a"+x(14)+cutMark, cutFront+x(5)+"b"+x(14)+cutMark)
	f(text, "utf8mb4", x(1000)+"a", x(1000)+"b", cutFront+x(5)+"a", cutFront+x(5)+"b")
	// One is the beginning of the other, or is not long enough to be cut.
	f(text, "utf8mb4", x(1000), x(1000)+"b", cutFront+x(5), cutFront+x(5)+"b")
	f(text, "utf8mb4", x(30), x(1000), x(30), x(20)+cutMark)
	// Characters stay whole, also one that the limit would divide; those of other charsets are counted in UTF-8.
	f(text, "utf8mb4", "xx"+e(9)+"ä"+e(100), "xx"+e(9)+"ö"+e(100), cutFront+e(2)+"ä"+e(7)+cutMark, cutFront+e(2)+"ö"+e(7)+cutMark)
	f(text, "latin1", strings.Repeat("\xe9", 100)+"a", strings.Repeat("\xe9", 100)+"b", cutFront+e(3)+"a", cutFront+e(3)+"b")
	f(bytes, "", x(1000)+"a", x(1000)+"b", cutFront+"0x787878787861", cutFront+"0x787878787862")
	// Text on one side only, and equal values.
	f(text, "utf8mb4", x(1000)+"a", x(1000)+"\xff", x(20)+cutMark, "0x"+strings.Repeat("78", 20)+cutMark)
	f(text, "utf8mb4", x(1000), x(1000), x(20)+cutMark, x(20)+cutMark)
}

// TestSmallExcerpts tests every pair of a few long values with limits that are smaller than a character: none panics, and values whose
// differing character there is room for are shown as different.
func TestSmallExcerpts(t *testing.T) {
	long := strings.Repeat("x", 100)
	values := []string{"a" + long, "b" + long, long, long + "b", long + "é", "é" + long, strings.Repeat("é", 60), strings.Repeat("é", 60) + "ö", strings.Repeat("😀", 60)}
	table := &plan.Table{Name: "t", SourceName: "t", Key: []int{0}, Columns: []plan.Column{columnOf("id", "id", sqltypes.Int64, ""), columnOf("v", "v", sqltypes.VarChar, "utf8mb4")}}
	for limit := 1; limit <= 40; limit++ {
		options := everything
		options.TruncateAt = limit
		for _, source := range values {
			for _, target := range values {
				b := NewBuilder(table, nil, options)
				b.AddMismatch([]sqltypes.Value{sqltypes.NewInt64(1), sqltypes.NewVarChar(source)}, []sqltypes.Value{sqltypes.NewInt64(1), sqltypes.NewVarChar(target)})
				sample := b.Report().MismatchedRowsDiffs[0]
				if source != target && limit >= 12 {
					assert.NotEqual(t, sample.Source.Row["v"], sample.Target.Row["v"], "%d: %q and %q", limit, source, target)
				}
			}
		}
	}
}
