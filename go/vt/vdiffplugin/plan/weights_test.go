// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package plan

import (
	"context"
	"errors"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"vitess.io/vitess/go/sqltypes"

	querypb "vitess.io/vitess/go/vt/proto/query"
	tabletmanagerdatapb "vitess.io/vitess/go/vt/proto/tabletmanagerdata"
	topodatapb "vitess.io/vitess/go/vt/proto/topodata"
)

// weighing answers with the texts that it is asked for, as they are written there; ff is not valid.
type weighing struct {
	fakeTablet
	queries []string
}

var hexText = regexp.MustCompile(`if\(length\(.*?x'([0-9a-f]*)'`)

func (w *weighing) ExecuteFetchAsApp(_ context.Context, _ *topodatapb.Tablet, _ bool, req *tabletmanagerdatapb.ExecuteFetchAsAppRequest) (*querypb.QueryResult, error) {
	w.queries = append(w.queries, string(req.Query))
	result := &sqltypes.Result{}
	row := []sqltypes.Value{}
	for _, m := range hexText.FindAllStringSubmatch(string(req.Query), -1) {
		value := sqltypes.NewVarChar(m[1])
		if m[1] == "ff" {
			value = sqltypes.NULL
		}
		row = append(row, value)
		result.Fields = append(result.Fields, &querypb.Field{Type: sqltypes.VarChar})
	}
	result.Rows = [][]sqltypes.Value{row}
	return sqltypes.ResultToProto3(result), w.err
}

// Tests the queries for weights: the form of one, that many texts are asked for in several, in order, and that nothing but
// names of charsets and collations is written into one.
func TestWeights(t *testing.T) {
	gbk := StoredText{Charset: "gbk", Collation: "gbk_chinese_ci"}
	server := &weighing{}
	got, err := Weights(t.Context(), server, testTablet, "gbk", gbk, []string{"a'", "", "\xff"})
	require.NoError(t, err)
	require.Equal(t, []string{"w6127", "w", "\x00\xff"}, got)
	require.Equal(t, []string{"select if(length(convert(x'6127' using gbk)) = 2, hex(weight_string(convert(x'6127' using gbk) collate gbk_chinese_ci)), null) as w0, " +
		"if(length(convert(x'' using gbk)) = 0, hex(weight_string(convert(x'' using gbk) collate gbk_chinese_ci)), null) as w1, " +
		"if(length(convert(x'ff' using gbk)) = 1, hex(weight_string(convert(x'ff' using gbk) collate gbk_chinese_ci)), null) as w2, " +
		"if(length(convert(x'20' using utf8mb4)) = 1, hex(weight_string(convert(convert(x'20' using utf8mb4) using gbk) collate gbk_chinese_ci)), null) as space"}, server.queries)

	server = &weighing{}
	_, err = Weights(t.Context(), server, testTablet, "utf8mb4", StoredText{Charset: "utf16", Collation: "utf16_0900_new_ci"}, []string{"a"})
	require.NoError(t, err)
	require.Equal(t, []string{"select if(length(convert(x'61' using utf8mb4)) = 1, hex(weight_string(convert(convert(x'61' using utf8mb4) using utf16) collate utf16_0900_new_ci)), null) as w0, " +
		"if(length(convert(x'20' using utf8mb4)) = 1, hex(weight_string(convert(convert(x'20' using utf8mb4) using utf16) collate utf16_0900_new_ci)), null) as space"}, server.queries)

	server = &weighing{}
	texts := []string{strings.Repeat("l", maxWeightBytes), "b"}
	for range maxWeights + 1 {
		texts = append(texts, "c")
	}
	got, err = Weights(t.Context(), server, testTablet, "gbk", gbk, texts)
	require.NoError(t, err)
	require.Len(t, got, len(texts))
	require.Equal(t, "w62", got[1])
	require.Len(t, server.queries, 3)

	_, err = Weights(t.Context(), server, testTablet, "gbk", StoredText{Charset: "gbk", Collation: "x) or (1"}, []string{"a"})
	require.ErrorContains(t, err, "is not the name")
	server.err = errors.New("no database (errno 1053) during query: select x'61'")
	_, err = Weights(t.Context(), server, testTablet, "gbk", gbk, []string{"a"})
	require.ErrorContains(t, err, "no database (errno 1053)")
	require.NotContains(t, err.Error(), "x'61'", "texts are data")
}

// Tests how the ends of texts are weighed: the weights of spaces are taken off where the collation pads, from the weights or, where
// these have levels, from the text; and zero bytes are told from DEL where weight_string ends at them, and characters from each other that
// share a weight.
func TestWeightsOfSpaces(t *testing.T) {
	f := func(charset, collation string, texts, want []string, expr string) {
		t.Helper()
		server := &weighing{}
		got, err := Weights(t.Context(), server, testTablet, charset, StoredText{Charset: charset, Collation: collation}, texts)
		require.NoError(t, err)
		require.Equal(t, want, got)
		require.Contains(t, server.queries[0], expr)
	}
	f("gbk", "gbk_chinese_ci", []string{"a  ", "a", " ", " a"}, []string{"w61", "w61", "w", "w2061"}, "weight_string(convert(x'612020' using gbk) collate")
	f("utf8mb4", "utf8mb4_0900_new_ci", []string{"a ", "a"}, []string{"w6120", "w61"}, "weight_string(convert(x'6120' using utf8mb4) collate")
	f("latin2", "latin2_czech_cs", []string{"a "}, []string{"w6120"}, "weight_string(trim(trailing ' ' from convert(x'6120' using latin2)) collate")
	f("tis620", "tis620_thai_ci", []string{"a\x00", "a\x7fb\x00 ", "\xe8 "}, []string{"w6100\x00", "w617f6200\x7f\x00", "we8"},
		"weight_string(replace(convert(x'6100' using tis620), _tis620 x'00', _tis620 x'7f') collate")
	f("big5", "big5_chinese_ci", []string{"A\xa2\x41b ", "Ab"}, []string{"w41a24162\x00\xa2\x41", "w4162\x00"}, "weight_string(convert(x'41a2416220' using big5) collate")
	f("utf8mb4", "big5_chinese_ci", []string{"A\u4e00b"}, []string{"w41e4b88062\x00\u4e00"}, "weight_string(convert(x'41e4b88062'")
}
