// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package scanservice

import (
	"time"

	"vitess.io/vitess/go/vt/vterrors"

	querypb "vitess.io/vitess/go/vt/proto/query"
	vtrpcpb "vitess.io/vitess/go/vt/proto/vtrpc"

	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/scan"
	vdiffscanpb "github.com/vttablet-ext/vttablet-ext/proto/vdiffscan"
)

// pieceSize is how many bytes of values a message has at most. gRPC refuses messages beyond --grpc-max-message-size
// (16 MiB), which a single row may exceed.
const pieceSize = 1 << 20

// maxRanges bounds the ranges of a RowsRequest.
const maxRanges = 200_000

func encodeRowsCall(header *vdiffscanpb.Header, call *scan.RowsCall) (*vdiffscanpb.RowsRequest, error) {
	p := &vdiffscanpb.RowsRequest{Header: header, Lock: call.Lock, LockWaitNs: int64(call.LockWait), Streams: call.Streams}
	var tables tableSet
	for i, r := range call.Reads {
		if r.Table == nil {
			return nil, invalid("read %d has no table", i)
		}
		read := &vdiffscanpb.RowsRead{Table: tables.add(r.Table)}
		for _, rg := range r.Ranges {
			read.Ranges = append(read.Ranges, encodeRange(rg))
		}
		if b := r.Buckets; b != nil {
			read.Buckets = &vdiffscanpb.BucketFilter{Seed: b.Seed, Buckets: int32(b.Buckets), BucketKey: encodeInts(b.BucketKey), Wanted: encodeInts(b.Wanted)}
		}
		p.Reads = append(p.Reads, read)
	}
	p.Tables = tables.tables
	return p, nil
}

// decodeRowsRequest returns the call of a request that may be garbage. Whether it may be answered is for
// scan.RowsCall.Check to say.
func decodeRowsRequest(p *vdiffscanpb.RowsRequest) (*scan.RowsCall, error) {
	switch {
	case len(p.GetReads()) == 0 || len(p.GetReads()) > maxReads:
		return nil, invalid("%d tables in a request, not 1 to %d", len(p.GetReads()), maxReads)
	case len(p.GetStreams()) > maxStreams:
		return nil, invalid("%d streams in a request, more than %d", len(p.GetStreams()), maxStreams)
	case p.GetLockWaitNs() < 0 || p.GetLockWaitNs() > int64(maxWait):
		return nil, invalid("a wait of %v, not 0 to %v", time.Duration(p.GetLockWaitNs()), maxWait)
	}
	tables, err := decodeTables(p.GetTables())
	if err != nil {
		return nil, err
	}
	call := &scan.RowsCall{Lock: p.Lock, LockWait: time.Duration(p.LockWaitNs), Streams: p.Streams}
	ranges := 0
	for i, r := range p.Reads {
		if int64(r.GetTable()) >= int64(len(tables)) {
			return nil, invalid("read %d of the request: table %d of %d", i, r.GetTable(), len(tables))
		}
		if ranges += len(r.GetRanges()); ranges > maxRanges {
			return nil, invalid("more than %d ranges in a request", maxRanges)
		}
		read := scan.RowsRead{Table: tables[r.GetTable()]}
		for _, q := range r.GetRanges() {
			rg, err := decodeRange(q, len(read.Table.Key))
			if err != nil {
				return nil, vterrors.Wrapf(err, "read %d of the request", i)
			}
			read.Ranges = append(read.Ranges, rg)
		}
		if b := r.GetBuckets(); b != nil {
			if b.GetBuckets() < 0 || b.GetBuckets() > maxBuckets || len(b.GetWanted()) > maxBuckets {
				return nil, invalid("read %d of the request: %d of %d buckets", i, len(b.GetWanted()), b.GetBuckets())
			}
			read.Buckets = &scan.BucketFilter{
				Seed: b.GetSeed(), Buckets: int(b.GetBuckets()), BucketKey: decodeInts(b.GetBucketKey()), Wanted: decodeInts(b.GetWanted()),
			}
		}
		call.Reads = append(call.Reads, read)
	}
	return call, nil
}

// sendBatch sends a batch in one message or several.
func sendBatch(b *scan.RowsBatch, send func(*vdiffscanpb.RowsBatch) error) error {
	p := &vdiffscanpb.RowsBatch{Read: uint32(b.Read), Range: uint32(b.Range)}
	for _, f := range b.Fields {
		encoded, err := f.MarshalVT()
		if err != nil {
			return vterrors.Wrap(err, "encoding a column")
		}
		p.Fields = append(p.Fields, encoded)
	}
	for _, r := range b.Rows {
		for _, n := range r.Lengths {
			p.Lengths = append(p.Lengths, int32(n))
		}
	}
	left := int(sizeOf(b))
	for _, r := range b.Rows {
		for values := r.Values; len(values) > 0; {
			if p.Values == nil {
				p.Values = make([]byte, 0, min(left, pieceSize)) // gRPC may still hold the last piece's
			}
			n := min(len(values), cap(p.Values)-len(p.Values))
			p.Values = append(p.Values, values[:n]...)
			values = values[n:]
			left -= n
			if len(p.Values) == cap(p.Values) && left > 0 {
				p.More = true
				if err := send(p); err != nil {
					return err
				}
				p = &vdiffscanpb.RowsBatch{Read: p.Read, Range: p.Range}
			}
		}
	}
	return send(p)
}

// assembler puts the messages of one Rows call together.
type assembler struct {
	call    *scan.RowsCall
	columns []int // of each read, 0: its fields have not arrived

	open    *scan.RowsBatch // a batch that more pieces belong to
	lengths []int32
	values  []byte
}

func newAssembler(call *scan.RowsCall) *assembler {
	return &assembler{call: call, columns: make([]int, len(call.Reads))}
}

func brokenRows(what string) error {
	return vterrors.Errorf(vtrpcpb.Code_INTERNAL, "broken rows: %s", what)
}

// add takes a message. It returns a batch when that is complete; the memory is the caller's.
func (a *assembler) add(p *vdiffscanpb.RowsBatch) (*scan.RowsBatch, error) {
	if a.open == nil {
		if err := a.begin(p); err != nil {
			return nil, err
		}
	} else {
		if len(p.GetFields()) > 0 || len(p.GetLengths()) > 0 || int(p.GetRead()) != a.open.Read || int(p.GetRange()) != a.open.Range {
			return nil, brokenRows("a batch that is not complete is followed by another")
		}
		a.values = append(a.values, p.GetValues()...)
	}
	if p.GetMore() {
		return nil, nil
	}
	b := a.open
	a.open = nil
	return b, a.cut(b)
}

func (a *assembler) begin(p *vdiffscanpb.RowsBatch) error {
	read, rg := int(p.GetRead()), int(p.GetRange())
	if read >= len(a.call.Reads) || rg >= max(1, len(a.call.Reads[read].Ranges)) {
		return brokenRows("of a range that was not asked for")
	}
	b := &scan.RowsBatch{Read: read, Range: rg}
	for _, encoded := range p.GetFields() {
		f := &querypb.Field{}
		if err := f.UnmarshalVT(encoded); err != nil {
			return brokenRows("a column that cannot be decoded")
		}
		b.Fields = append(b.Fields, f)
	}
	if len(b.Fields) > 0 {
		a.columns[read] = len(b.Fields)
	}
	a.open, a.lengths, a.values = b, p.GetLengths(), p.GetValues()
	return nil
}

// cut makes the rows of a batch.
func (a *assembler) cut(b *scan.RowsBatch) error {
	lengths, values, columns := a.lengths, a.values, a.columns[b.Read]
	a.lengths, a.values = nil, nil
	if len(lengths) == 0 && len(values) == 0 {
		return nil
	}
	if columns == 0 || len(lengths)%columns != 0 {
		return brokenRows("not whole rows")
	}
	b.Rows = make([]*querypb.Row, 0, len(lengths)/columns)
	for ; len(lengths) > 0; lengths = lengths[columns:] {
		row := &querypb.Row{Lengths: make([]int64, columns)}
		size := int64(0)
		for i, n := range lengths[:columns] {
			if n < -1 {
				return brokenRows("a negative length")
			}
			row.Lengths[i] = int64(n)
			size += max(0, int64(n))
		}
		if size > int64(len(values)) {
			return brokenRows("values are missing")
		}
		row.Values, values = values[:size:size], values[size:]
		b.Rows = append(b.Rows, row)
	}
	if len(values) > 0 {
		return brokenRows("more values than rows")
	}
	return nil
}
