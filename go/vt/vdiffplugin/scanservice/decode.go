// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package scanservice

import (
	"time"

	"vitess.io/vitess/go/vt/vterrors"

	vtrpcpb "vitess.io/vitess/go/vt/proto/vtrpc"

	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/digest"
	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/pkrange"
	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/scan"
	vdiffscanpb "github.com/vttablet-ext/vttablet-ext/proto/vdiffscan"
)

// Limits of a request. Nothing that a vdiff asks for comes near them.
const (
	maxReads   = 10_000  // ranges in a call
	maxSums    = 1 << 17 // digests in an answer: 3 MB
	maxBuckets = 1 << 16
	maxStreams = 10_000
	maxWait    = 24 * time.Hour
)

func invalid(format string, args ...any) error {
	return vterrors.Errorf(vtrpcpb.Code_INVALID_ARGUMENT, format, args...)
}

// decodeTables returns the tables of a request.
func decodeTables(in []*vdiffscanpb.Table) ([]*scan.Table, error) {
	if len(in) > maxReads {
		return nil, invalid("%d tables in a request, more than %d", len(in), maxReads)
	}
	out := make([]*scan.Table, len(in))
	for i, p := range in {
		out[i] = decodeTable(p)
	}
	return out, nil
}

func decodeTable(p *vdiffscanpb.Table) *scan.Table {
	t := &scan.Table{Name: p.GetName(), Columns: p.GetColumns(), Index: p.GetIndex(), Where: p.GetWhere()}
	for _, k := range p.GetKey() {
		t.Key = append(t.Key, scan.KeyColumn{Name: k.GetName(), Column: int(k.GetColumn())})
	}
	if f := p.GetFilter(); f != nil {
		t.Filter = &scan.VindexFilter{Type: f.Type, Params: f.Params, Columns: decodeInts(f.Columns), KeyRange: f.KeyRange}
	}
	return t
}

func decodeInts(in []int32) []int {
	var out []int
	for _, i := range in {
		out = append(out, int(i))
	}
	return out
}

func decodeValue(p *vdiffscanpb.Value) (pkrange.Value, error) {
	switch k := p.GetKind().(type) {
	case *vdiffscanpb.Value_Int:
		return pkrange.Value{Kind: pkrange.Int, Int: k.Int}, nil
	case *vdiffscanpb.Value_Uint:
		return pkrange.Value{Kind: pkrange.Uint, Uint: k.Uint}, nil
	case *vdiffscanpb.Value_Decimal:
		return pkrange.Value{Kind: pkrange.Decimal, Bytes: k.Decimal}, nil
	case *vdiffscanpb.Value_Temporal:
		return pkrange.Value{Kind: pkrange.Temporal, Bytes: k.Temporal}, nil
	case *vdiffscanpb.Value_Bytes:
		return pkrange.Value{Kind: pkrange.Bytes, Bytes: k.Bytes}, nil
	default:
		return pkrange.Value{}, invalid("a value of no known kind")
	}
}

func decodeBound(p *vdiffscanpb.Bound, columns int) (pkrange.Bound, error) {
	values := p.GetValues()
	if len(values) > columns {
		return nil, invalid("a bound of %d values in a key of %d columns", len(values), columns)
	}
	var b pkrange.Bound
	for _, v := range values {
		value, err := decodeValue(v)
		if err != nil {
			return nil, err
		}
		b = append(b, value)
	}
	return b, nil
}

func decodeRange(p *vdiffscanpb.Range, columns int) (r pkrange.Range, err error) {
	if r.After, err = decodeBound(p.GetAfter(), columns); err != nil {
		return r, err
	}
	r.UpTo, err = decodeBound(p.GetUpTo(), columns)
	return r, err
}

// decodeDigestRequest returns the call of a request that may be garbage. It checks what this room relies on, and the
// size of the answer; whether the call may be answered is for scan.Call.Check to say.
func decodeDigestRequest(p *vdiffscanpb.DigestRequest) (*scan.Call, error) {
	switch {
	case len(p.GetReads()) == 0 || len(p.GetReads()) > maxReads:
		return nil, invalid("%d ranges in a request, not 1 to %d", len(p.GetReads()), maxReads)
	case len(p.GetStreams()) > maxStreams:
		return nil, invalid("%d streams in a request, more than %d", len(p.GetStreams()), maxStreams)
	case p.GetWaitTimeoutNs() < 0 || p.GetWaitTimeoutNs() > int64(maxWait):
		return nil, invalid("a wait of %v, not 0 to %v", time.Duration(p.GetWaitTimeoutNs()), maxWait)
	}
	tables, err := decodeTables(p.GetTables())
	if err != nil {
		return nil, err
	}
	call := &scan.Call{Streams: p.Streams, WaitFor: p.WaitFor, WaitTimeout: time.Duration(p.WaitTimeoutNs)}
	sums := 0
	for i, r := range p.Reads {
		request, err := decodeDigestRead(r, tables)
		if err != nil {
			return nil, vterrors.Wrapf(err, "range %d of the request", i)
		}
		if sums += max(1, request.Buckets); sums > maxSums {
			return nil, invalid("more than %d digests in a request", maxSums)
		}
		call.Tables = append(call.Tables, request)
	}
	return call, nil
}

func decodeDigestRead(p *vdiffscanpb.DigestRead, tables []*scan.Table) (r scan.DigestRequest, err error) {
	if int64(p.GetTable()) >= int64(len(tables)) {
		return r, invalid("table %d of %d", p.GetTable(), len(tables))
	}
	table := tables[p.GetTable()]
	r = scan.DigestRequest{
		Table: table, Limit: p.GetLimit(), MaxBytes: p.GetMaxBytes(), MaxTime: time.Duration(p.GetMaxTimeNs()), MaxRows: p.GetMaxRows(),
		Seed: p.GetSeed(), Buckets: int(p.GetBuckets()), BucketKey: decodeInts(p.GetBucketKey()),
	}
	if r.Range, err = decodeRange(p.GetRange(), len(table.Key)); err != nil {
		return r, err
	}
	if r.Buckets < 0 || r.Buckets > maxBuckets {
		return r, invalid("%d buckets, not 0 to %d", r.Buckets, maxBuckets)
	}
	return r, nil
}

// decodeAnswer returns the answer to a call.
func decodeAnswer(p *vdiffscanpb.DigestAnswer, call *scan.Call) (*scan.Answer, error) {
	broken := func(what string) error {
		return vterrors.Errorf(vtrpcpb.Code_INTERNAL, "broken answer: %s", what)
	}
	if len(p.GetDigests()) != len(call.Tables) {
		return nil, broken("it is not for every range")
	}
	for _, id := range call.Streams {
		if _, ok := p.Positions[id]; !ok {
			return nil, broken("the position of a stream is missing")
		}
	}
	a := &scan.Answer{Positions: p.Positions, Executed: p.Executed, ReadView: time.Duration(p.ReadViewNs)}
	for i, d := range p.Digests {
		n := max(1, call.Tables[i].Buckets)
		if len(d.GetRows()) != n || len(d.GetHi()) != n || len(d.GetLo()) != n {
			return nil, broken("not one digest for each bucket")
		}
		out := scan.Digest{Sums: make([]digest.Sum, n), Form: d.Form, Read: d.Read, Bytes: d.Bytes}
		for b := range out.Sums {
			out.Sums[b] = digest.Sum{Rows: d.Rows[b], Hi: d.Hi[b], Lo: d.Lo[b]}
		}
		var err error
		if out.UpTo, err = decodeBound(d.UpTo, len(call.Tables[i].Table.Key)); err != nil {
			return nil, vterrors.Wrap(err, "broken answer")
		}
		if out.Last, err = decodeBound(d.Last, len(call.Tables[i].Table.Key)); err != nil {
			return nil, vterrors.Wrap(err, "broken answer")
		}
		a.Digests = append(a.Digests, out)
	}
	return a, nil
}
