// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package scan

import (
	"context"
	"crypto/cipher"
	"crypto/des"
	"encoding/binary"
	"os"

	"vitess.io/vitess/go/sqltypes"
	"vitess.io/vitess/go/vt/key"
	"vitess.io/vitess/go/vt/vterrors"
	"vitess.io/vitess/go/vt/vtgate/vindexes"

	topodatapb "vitess.io/vitess/go/vt/proto/topodata"
	vtrpcpb "vitess.io/vitess/go/vt/proto/vtrpc"
)

// keyRangeFilter decides whether a row is in a key range. It belongs to one goroutine.
//
// A vstreamer fails on a row that its vindex maps to nothing, a NULL under most vindexes for example: such a row was never
// copied, and nothing says where it belongs. The filter fails too.
type keyRangeFilter struct {
	vindex  vindexes.Vindex
	hashing vindexes.Hashing // set when the vindex has one column and can do without slices of results
	des     cipher.Block     // set for vindex hash: its keyspace ids are those of DES under a key of zeros
	ranges  *topodatapb.KeyRange
	columns []int

	text   []byte
	values []sqltypes.Value
	ends   []int
	block  [8]byte
}

// maxVindexFile is the size of a file with a map of regions, or numbers, that a vindex reads.
const maxVindexFile = 16 << 20

// newVindex makes the vindex of a filter, and checks what came over the network.
func newVindex(f *VindexFilter) (vindexes.Vindex, *topodatapb.KeyRange, error) {
	invalid := func(format string, args ...any) (vindexes.Vindex, *topodatapb.KeyRange, error) {
		return nil, nil, vterrors.Errorf(vtrpcpb.Code_INVALID_ARGUMENT, "filter: "+format, args...)
	}
	ranges, err := key.ParseShardingSpec(f.KeyRange)
	if err != nil || len(ranges) != 1 {
		return invalid("%q is no key range", bounded(f.KeyRange))
	}
	for _, name := range []string{"region_map", "json_path"} {
		if path, ok := f.Params[name]; ok {
			info, err := os.Stat(path)
			if err != nil || !info.Mode().IsRegular() || info.Size() > maxVindexFile {
				return invalid("the file of parameter %s cannot be read", name)
			}
		}
	}
	vindex, err := vindexes.CreateVindex(f.Type, "vdiff", f.Params)
	if err != nil {
		return invalid("vindex %q: %v", bounded(f.Type), bounded(err.Error()))
	}
	switch {
	case vindex.NeedsVCursor():
		return nil, nil, vterrors.Errorf(vtrpcpb.Code_UNIMPLEMENTED, "filter: vindex %q is not functional", bounded(f.Type))
	case !vindex.IsUnique():
		return nil, nil, vterrors.Errorf(vtrpcpb.Code_UNIMPLEMENTED, "filter: vindex %q is not unique", bounded(f.Type))
	}
	switch vindex.(type) {
	case vindexes.MultiColumn:
		if len(f.Columns) == 0 {
			return invalid("vindex %q has no columns", bounded(f.Type))
		}
	case vindexes.SingleColumn:
		if len(f.Columns) != 1 {
			return invalid("vindex %q has %d columns, where it takes one", bounded(f.Type), len(f.Columns))
		}
	default:
		return invalid("vindex %q maps no values", bounded(f.Type))
	}
	return vindex, ranges[0], nil
}

// newKeyRangeFilter makes a filter for rows of these columns. vindex and ranges are those that newVindex has made of f.
func newKeyRangeFilter(f *VindexFilter, vindex vindexes.Vindex, ranges *topodatapb.KeyRange, columns []column) (*keyRangeFilter, error) {
	k := &keyRangeFilter{
		vindex: vindex, ranges: ranges, columns: f.Columns,
		values: make([]sqltypes.Value, len(f.Columns)), ends: make([]int, len(f.Columns)),
	}
	for _, i := range f.Columns {
		if c := &columns[i]; c.class == classFloat || c.class == classDouble || c.class == classNull {
			return nil, vterrors.Errorf(vtrpcpb.Code_UNIMPLEMENTED, "filter: column %s is of type %v", c.name, c.sqlType)
		}
	}
	if _, multi := vindex.(vindexes.MultiColumn); !multi {
		k.hashing, _ = vindex.(vindexes.Hashing)
	}
	if _, ok := vindex.(*vindexes.Hash); ok && columns[f.Columns[0]].integer() {
		var err error
		if k.des, err = des.NewCipher(make([]byte, 8)); err != nil {
			return nil, vterrors.Wrap(err, "filter")
		}
	}
	return k, nil
}

// pass says whether a row is in the key range. values are the raw values of all of its columns.
func (k *keyRangeFilter) pass(columns []column, values [][]byte) (bool, error) {
	if k.des != nil {
		if raw := values[k.columns[0]]; raw != nil {
			binary.BigEndian.PutUint64(k.block[:], columns[k.columns[0]].number(raw))
			k.des.Encrypt(k.block[:], k.block[:])
			return key.KeyRangeContains(k.ranges, k.block[:]), nil
		}
	}
	k.text = k.text[:0]
	var err error
	for n, i := range k.columns {
		if values[i] != nil {
			if k.text, err = columns[i].appendText(k.text, values[i]); err != nil {
				return false, err
			}
		}
		k.ends[n] = len(k.text)
	}
	start := 0
	for n, i := range k.columns {
		k.set(n, &columns[i], values[i] == nil, k.text[start:k.ends[n]:k.ends[n]])
		start = k.ends[n]
	}
	return k.contains()
}

// passText is pass for values of the text protocol.
func (k *keyRangeFilter) passText(columns []column, values [][]byte) (bool, error) {
	for n, i := range k.columns {
		k.set(n, &columns[i], values[i] == nil, values[i])
	}
	return k.contains()
}

func (k *keyRangeFilter) set(n int, c *column, null bool, text []byte) {
	k.values[n] = sqltypes.NULL
	if !null {
		k.values[n] = sqltypes.MakeTrusted(c.sqlType, text)
	}
}

// contains decides on the values that are set.
func (k *keyRangeFilter) contains() (bool, error) {
	id, err := k.keyspaceID()
	if err != nil || len(id) == 0 {
		// What the values are is not said: errors end in logs and records.
		return false, vterrors.Errorf(vtrpcpb.Code_FAILED_PRECONDITION, "filter: vindex %s maps a row to no keyspace id", bounded(k.vindex.String()))
	}
	return key.KeyRangeContains(k.ranges, id), nil
}

func (k *keyRangeFilter) keyspaceID() ([]byte, error) {
	if k.hashing != nil {
		return k.hashing.Hash(k.values[0])
	}
	destinations, err := vindexes.Map(context.Background(), k.vindex, nil, [][]sqltypes.Value{k.values})
	if err != nil || len(destinations) != 1 {
		return nil, err
	}
	id, _ := destinations[0].(key.DestinationKeyspaceID)
	return id, nil
}

// bounded cuts a text that came over the network, or is about a row, to what may stand in an error.
func bounded(text string) string {
	const most = 64
	if len(text) > most {
		return text[:most] + "..."
	}
	return text
}
