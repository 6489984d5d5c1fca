// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package scanservice

import (
	"vitess.io/vitess/go/vt/vterrors"

	vtrpcpb "vitess.io/vitess/go/vt/proto/vtrpc"

	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/pkrange"
	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/scan"
	vdiffscanpb "github.com/vttablet-ext/vttablet-ext/proto/vdiffscan"
)

// tableSet numbers tables. Ranges of one table share it, so it crosses the network once.
type tableSet struct {
	index  map[*scan.Table]uint32
	tables []*vdiffscanpb.Table
}

func (s *tableSet) add(t *scan.Table) uint32 {
	if i, ok := s.index[t]; ok {
		return i
	}
	if s.index == nil {
		s.index = make(map[*scan.Table]uint32)
	}
	i := uint32(len(s.tables))
	s.index[t] = i
	s.tables = append(s.tables, encodeTable(t))
	return i
}

func encodeTable(t *scan.Table) *vdiffscanpb.Table {
	p := &vdiffscanpb.Table{Name: t.Name, Columns: t.Columns, Index: t.Index, Where: t.Where}
	for _, k := range t.Key {
		p.Key = append(p.Key, &vdiffscanpb.KeyColumn{Name: k.Name, Column: int32(k.Column)})
	}
	if f := t.Filter; f != nil {
		p.Filter = &vdiffscanpb.VindexFilter{Type: f.Type, Params: f.Params, Columns: encodeInts(f.Columns), KeyRange: f.KeyRange}
	}
	return p
}

func encodeInts(in []int) []int32 {
	var out []int32
	for _, i := range in {
		out = append(out, int32(i))
	}
	return out
}

func encodeValue(v pkrange.Value) *vdiffscanpb.Value {
	switch v.Kind {
	case pkrange.Int:
		return &vdiffscanpb.Value{Kind: &vdiffscanpb.Value_Int{Int: v.Int}}
	case pkrange.Uint:
		return &vdiffscanpb.Value{Kind: &vdiffscanpb.Value_Uint{Uint: v.Uint}}
	case pkrange.Decimal:
		return &vdiffscanpb.Value{Kind: &vdiffscanpb.Value_Decimal{Decimal: v.Bytes}}
	case pkrange.Temporal:
		return &vdiffscanpb.Value{Kind: &vdiffscanpb.Value_Temporal{Temporal: v.Bytes}}
	case pkrange.Bytes:
		return &vdiffscanpb.Value{Kind: &vdiffscanpb.Value_Bytes{Bytes: v.Bytes}}
	default:
		return &vdiffscanpb.Value{} // is refused
	}
}

func encodeBound(b pkrange.Bound) *vdiffscanpb.Bound {
	if len(b) == 0 {
		return nil
	}
	p := &vdiffscanpb.Bound{}
	for _, v := range b {
		p.Values = append(p.Values, encodeValue(v))
	}
	return p
}

func encodeRange(r pkrange.Range) *vdiffscanpb.Range {
	return &vdiffscanpb.Range{After: encodeBound(r.After), UpTo: encodeBound(r.UpTo)}
}

func encodeCall(header *vdiffscanpb.Header, call *scan.Call) *vdiffscanpb.DigestRequest {
	p := &vdiffscanpb.DigestRequest{
		Header: header, Streams: call.Streams, WaitFor: call.WaitFor, WaitTimeoutNs: int64(call.WaitTimeout),
	}
	var tables tableSet
	for i := range call.Tables {
		r := &call.Tables[i]
		p.Reads = append(p.Reads, &vdiffscanpb.DigestRead{
			Table: tables.add(r.Table), Range: encodeRange(r.Range),
			Limit: r.Limit, MaxBytes: r.MaxBytes, MaxTimeNs: int64(r.MaxTime), MaxRows: r.MaxRows,
			Seed: r.Seed, Buckets: int32(r.Buckets), BucketKey: encodeInts(r.BucketKey),
		})
	}
	p.Tables = tables.tables
	return p
}

// checkTables returns an error if a call cannot be encoded.
func checkTables(call *scan.Call) error {
	for i := range call.Tables {
		if call.Tables[i].Table == nil {
			return vterrors.Errorf(vtrpcpb.Code_INVALID_ARGUMENT, "range %d has no table", i)
		}
	}
	return nil
}

func encodeAnswer(a *scan.Answer) *vdiffscanpb.DigestAnswer {
	p := &vdiffscanpb.DigestAnswer{Positions: a.Positions, Executed: a.Executed, ReadViewNs: int64(a.ReadView)}
	for _, d := range a.Digests {
		q := &vdiffscanpb.Digest{UpTo: encodeBound(d.UpTo), Last: encodeBound(d.Last), Form: d.Form, Read: d.Read, Bytes: d.Bytes}
		q.Rows, q.Hi, q.Lo = make([]uint64, len(d.Sums)), make([]uint64, len(d.Sums)), make([]uint64, len(d.Sums))
		for i, s := range d.Sums {
			q.Rows[i], q.Hi[i], q.Lo[i] = s.Rows, s.Hi, s.Lo
		}
		p.Digests = append(p.Digests, q)
	}
	return p
}
