// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package rowdiff

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/plan"
)

// Tests text that arrives in two charsets: equal bytes are not equal text, and text is compared where a charset is known, if only
// by another of its collations. Of a charset that is not known ASCII is.
func TestTextOfTwoCharsets(t *testing.T) {
	const utf8 = "utf8mb4_0900_ai_ci"
	czech, gbk := textColumn("v", utf8, utf8, plan.OrderNone), textColumn("v", utf8, utf8, plan.OrderNone)
	czech.Source.Charset, czech.Source.Collation = "latin2", 0
	gbk.Source.Charset, gbk.Source.Collation = "gbk", 0
	for _, tt := range []struct {
		name           string
		column         plan.Column
		source, target string
		equal          bool
	}{
		{"one charset", textColumn("v", "latin1_bin", "latin1_swedish_ci", plan.OrderNone), "\xc3\xa9", "\xc3\xa9", true},
		{"converted", textColumn("v", "latin1_bin", utf8, plan.OrderNone), "\xe9", "\xc3\xa9", true},
		{"copied as bytes", textColumn("v", "latin1_bin", utf8, plan.OrderNone), "\xc3\xa9", "\xc3\xa9", false},
		{"of two bytes, converted", textColumn("v", "utf16_bin", utf8, plan.OrderNone), "\x00s", "s", true},
		{"of two bytes, copied as bytes", textColumn("v", "utf16_bin", utf8, plan.OrderNone), "\x00s", "\x00s", false},
		{"bytes that are no text", textColumn("v", "sjis_bin", utf8, plan.OrderNone), "\xff\xff", "\xff\xff", false},
		{"both to be converted", textColumn("v", "latin1_bin", "latin2_general_ci", plan.OrderNone), "\xa3", "\xa3", false},
		{"both to be converted and equal", textColumn("v", "latin1_bin", "latin2_general_ci", plan.OrderNone), "\xe9", "\xe9", true},
		{"ASCII", textColumn("v", utf8, "latin1_bin", plan.OrderNone), "a", "a", true},
		{"unknown collation", czech, "\xb3", "\xc5\x82", true},
		{"unknown collation, copied as bytes", czech, "\xc5\x82", "\xc5\x82", false},
		{"unknown charset", gbk, "\xc3\xa9", "\xc3\xa9", false},
		{"unknown charset, ASCII", gbk, "a", "a", true},
	} {
		want := &verdicts{matches: 1}
		if !tt.equal {
			want = &verdicts{lines: []string{"mismatch |1|" + tt.source + " |1|" + tt.target}}
		}
		for _, merge := range []bool{true, false} {
			v, _, err := compare(t, idTable(tt.column), merge, [][][]string{{{"1", tt.source}}}, [][]string{{"1", tt.target}}, Options{})
			require.NoError(t, err)
			assert.Equal(t, want, v, tt.name)
		}
	}
}
