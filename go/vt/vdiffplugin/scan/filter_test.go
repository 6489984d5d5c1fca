// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package scan

import (
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"vitess.io/vitess/go/mysql/binlog"
	"vitess.io/vitess/go/sqltypes"
	"vitess.io/vitess/go/vt/key"
	"vitess.io/vitess/go/vt/vterrors"
	"vitess.io/vitess/go/vt/vtgate/vindexes"

	vtrpcpb "vitess.io/vitess/go/vt/proto/vtrpc"
)

// verdict is what a vstreamer decides about a row: the vindex's map, a keyspace id, and whether the range has it.
func verdict(t *testing.T, f *VindexFilter, vindex vindexes.Vindex, values []sqltypes.Value) (bool, error) {
	t.Helper()
	ranges, err := key.ParseShardingSpec(f.KeyRange)
	require.NoError(t, err)
	destinations, err := vindexes.Map(context.Background(), vindex, nil, [][]sqltypes.Value{values})
	if err != nil {
		return false, err
	}
	id, ok := destinations[0].(key.DestinationKeyspaceID)
	if len(destinations) != 1 || !ok || len(id) == 0 {
		return false, fmt.Errorf("no keyspace id")
	}
	return key.KeyRangeContains(ranges[0], id), nil
}

func newFilter(f *VindexFilter, columns []column) (*keyRangeFilter, error) {
	vindex, ranges, err := newVindex(f)
	if err != nil {
		return nil, err
	}
	return newKeyRangeFilter(f, vindex, ranges, columns)
}

// Tests that each functional vindex of Vitess passes the rows that a vstreamer passes, and fails where one fails, for
// integers of every width, text and NULL, read from the binary protocol and from the text protocol.
func TestFilterLikeVStreamer(t *testing.T) {
	regions := filepath.Join(t.TempDir(), "regions.json")
	require.NoError(t, os.WriteFile(regions, []byte(`{"5": 1, "us": 200}`), 0o600))
	type test struct {
		kind    string
		params  map[string]string
		columns int
	}
	inputs := []column{
		define("c0", binlog.TypeLongLong, 0, binaryCollation), define("c1", binlog.TypeLongLong, flagUnsigned, binaryCollation),
		define("c2", binlog.TypeLong, 0, binaryCollation), define("c3", binlog.TypeShort, flagUnsigned, binaryCollation), define("c4", binlog.TypeTiny, 0, binaryCollation),
		textColumn("c5"), define("c6", binlog.TypeBlob, flagBinary, binaryCollation), define("c7", binlog.TypeNewDecimal, 0, binaryCollation),
	}
	numbers := []int64{0, 1, 5, -1, 127, -128, 300, 1 << 20, -(1 << 40), 1<<63 - 1}
	texts := []string{"", "a", "A", "é", "us", "5", "12345678", "a longer text, of more than twenty bytes", "\xff\xfe"}
	passed, failed := 0, 0
	for _, tt := range []test{
		{"hash", nil, 1}, {"binary", nil, 1}, {"binary_md5", nil, 1}, {"xxhash", nil, 1}, {"unicode_loose_md5", nil, 1}, {"unicode_loose_xxhash", nil, 1},
		{"numeric", nil, 1}, {"numeric_static_map", map[string]string{"json": `{"1": 9223372036854775809}`, "fallback_type": "xxhash"}, 1}, {"reverse_bits", nil, 1},
		{"null", nil, 1}, {"cfc", nil, 1}, {"cfc", map[string]string{"hash": "md5", "offsets": "[1,2]"}, 1},
		{"multicol", map[string]string{"column_count": "2", "column_vindex": "hash,xxhash", "column_bytes": "1,7"}, 2},
		{"region_experimental", map[string]string{"region_bytes": "1"}, 2}, {"region_json", map[string]string{"region_bytes": "2", "region_map": regions}, 2},
	} {
		vindex, err := vindexes.CreateVindex(tt.kind, "v", tt.params)
		require.NoError(t, err)
		for first := range inputs {
			for second := range inputs {
				if tt.columns == 1 && second > 0 {
					break
				}
				columns := []column{inputs[first], inputs[second]}
				f := &VindexFilter{Type: tt.kind, Params: tt.params, Columns: []int{0, 1}[:tt.columns], KeyRange: "40-a0"}
				filter, err := newFilter(f, columns)
				require.NoError(t, err, tt.kind)
				for i := range 12 {
					raw, text := make([][]byte, 2), make([][]byte, 2)
					values := make([]sqltypes.Value, 2)
					for n := range columns {
						raw[n], text[n], values[n] = input(&columns[n], numbers, texts, i+n)
					}
					want, wantErr := verdict(t, f, vindex, values[:tt.columns])
					got, gotErr := filter.pass(columns, raw)
					require.Equal(t, wantErr != nil, gotErr != nil, "%s of %v: %v, %v", tt.kind, values, wantErr, gotErr)
					require.Equal(t, want, got, "%s of %v", tt.kind, values)
					got, gotErr = filter.passText(columns, text)
					require.Equal(t, wantErr != nil, gotErr != nil, "%s of %v: %v, %v", tt.kind, values, wantErr, gotErr)
					require.Equal(t, want, got, "%s of %v", tt.kind, values)
					if got {
						passed++
					}
					if gotErr != nil {
						failed++
						require.Equal(t, vtrpcpb.Code_FAILED_PRECONDITION, vterrors.Code(gotErr))
					}
				}
			}
		}
	}
	assert.Greater(t, passed, 300)
	assert.Greater(t, failed, 300)
}

// input is value i of a column, in both protocols and as a vstreamer has it; the last ones are NULL.
func input(c *column, numbers []int64, texts []string, i int) (raw, text []byte, value sqltypes.Value) {
	if i >= len(numbers) || !c.integer() && i >= len(texts) {
		return nil, nil, sqltypes.NULL
	}
	if !c.integer() {
		raw = append([]byte{}, texts[i]...)
		return raw, raw, sqltypes.MakeTrusted(c.sqlType, raw)
	}
	raw = binary.LittleEndian.AppendUint64(nil, uint64(numbers[i]))[:width[c.class]]
	if c.unsigned() {
		text = strconv.AppendUint(nil, c.number(raw), 10)
	} else {
		text = strconv.AppendInt(nil, int64(c.number(raw)), 10)
	}
	return raw, text, sqltypes.MakeTrusted(c.sqlType, text)
}

// Tests what is no filter that could be used.
func TestFilterRefused(t *testing.T) {
	columns := []column{intColumn("a"), define("f", binlog.TypeDouble, 0, binaryCollation)}
	f := func(code vtrpcpb.Code, filter VindexFilter) {
		t.Helper()
		_, err := newFilter(&filter, columns)
		assert.Equal(t, code, vterrors.Code(err), "%v", err)
	}
	const invalid, unimplemented = vtrpcpb.Code_INVALID_ARGUMENT, vtrpcpb.Code_UNIMPLEMENTED
	f(invalid, VindexFilter{Type: "nosuch", Columns: []int{0}, KeyRange: "-80"})
	f(invalid, VindexFilter{Type: "hash", Columns: []int{0}, KeyRange: "x"})
	f(invalid, VindexFilter{Type: "hash", Columns: []int{0}, KeyRange: "-40-80"})
	f(invalid, VindexFilter{Type: "hash", Columns: []int{0, 1}, KeyRange: "-80"})
	f(invalid, VindexFilter{Type: "hash", KeyRange: "-80"})
	f(invalid, VindexFilter{Type: "multicol", KeyRange: "-80", Params: map[string]string{"column_count": "1"}})
	f(invalid, VindexFilter{Type: "region_json", Columns: []int{0, 0}, KeyRange: "-80", Params: map[string]string{"region_bytes": "1", "region_map": "/dev/zero"}})
	f(invalid, VindexFilter{Type: "numeric_static_map", Columns: []int{0}, KeyRange: "-80", Params: map[string]string{"json_path": "/nosuch"}})
	f(unimplemented, VindexFilter{Type: "lookup_unique", Columns: []int{0}, KeyRange: "-80", Params: map[string]string{"table": "t", "from": "a", "to": "b"}})
	f(unimplemented, VindexFilter{Type: "hash", Columns: []int{1}, KeyRange: "-80"})
}
