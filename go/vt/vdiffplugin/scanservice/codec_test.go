// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package scanservice

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"vitess.io/vitess/go/vt/vterrors"

	vtrpcpb "vitess.io/vitess/go/vt/proto/vtrpc"

	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/pkrange"
	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/scan"
	vdiffscanpb "github.com/vttablet-ext/vttablet-ext/proto/vdiffscan"
)

// validCall is a call that every check lets pass.
func validCall() *scan.Call {
	call := fullCall()
	for i := range call.Tables {
		t := call.Tables[i].Table
		t.Name, t.Columns = "t1", []string{"id", "a", "b"}
	}
	return call
}

// Tests that requests which no client sends are refused as INVALID_ARGUMENT.
func TestGarbageRequests(t *testing.T) {
	f := func(change func(*vdiffscanpb.DigestRequest), want string) {
		t.Helper()
		p := encodeCall(nil, validCall())
		change(p)
		call, err := decodeDigestRequest(p)
		if err == nil {
			err = call.Check()
		}
		if want == "" {
			require.NoError(t, err)
			return
		}
		require.ErrorContains(t, err, want)
		assert.Equal(t, vtrpcpb.Code_INVALID_ARGUMENT, vterrors.Code(err))
	}
	f(func(*vdiffscanpb.DigestRequest) {}, "")
	f(func(p *vdiffscanpb.DigestRequest) { p.Reads = nil }, "0 ranges in a request")
	f(func(p *vdiffscanpb.DigestRequest) { p.Reads = make([]*vdiffscanpb.DigestRead, maxReads+1) }, "10001 ranges in a request")
	f(func(p *vdiffscanpb.DigestRequest) { p.Tables = make([]*vdiffscanpb.Table, maxReads+1) }, "10001 tables in a request")
	f(func(p *vdiffscanpb.DigestRequest) { p.Streams = make([]int32, maxStreams+1) }, "10001 streams in a request")
	f(func(p *vdiffscanpb.DigestRequest) { p.WaitTimeoutNs = -1 }, "a wait of -1ns")
	f(func(p *vdiffscanpb.DigestRequest) { p.WaitTimeoutNs = int64(maxWait) + 1 }, "a wait of 24h")
	f(func(p *vdiffscanpb.DigestRequest) { p.Reads[0].Table = 2 }, "table 2 of 2")
	f(func(p *vdiffscanpb.DigestRequest) { p.Reads[0].Table = 1 << 31 }, "table 2147483648 of 2")
	f(func(p *vdiffscanpb.DigestRequest) { p.Reads[0].Limit = -1 }, "a negative limit")
	f(func(p *vdiffscanpb.DigestRequest) { p.Reads[2].Limit = 1 }, "a limit needs a key")
	f(func(p *vdiffscanpb.DigestRequest) { p.Reads[2].Buckets = 3 }, "3 buckets")
	f(func(p *vdiffscanpb.DigestRequest) { p.Reads[2].Buckets = -4 }, "-4 buckets")
	f(func(p *vdiffscanpb.DigestRequest) { p.Reads[2].Buckets = maxBuckets * 2 }, "131072 buckets")
	f(func(p *vdiffscanpb.DigestRequest) { p.Reads[2].BucketKey = []int32{3} }, "column 3 of 3")
	f(func(p *vdiffscanpb.DigestRequest) { p.Reads[2].BucketKey = []int32{-1} }, "column -1 of 3")
	f(func(p *vdiffscanpb.DigestRequest) { p.Reads[0].Range.After.Values[0] = nil }, "a value of no known kind")
	f(func(p *vdiffscanpb.DigestRequest) { p.Reads[2].Range.After = p.Reads[0].Range.After }, "a bound of 2 values in a key of 0 columns")
	f(func(p *vdiffscanpb.DigestRequest) {
		p.Reads[2].Buckets = maxBuckets
		p.Reads = append(p.Reads, p.Reads[2], p.Reads[2])
	}, "more than 131072 digests")
	_, err := decodeDigestRequest(nil)
	require.Error(t, err)
	_, err = decodeRowsRequest(nil)
	require.Error(t, err)
}

// Tests that answers which do not fit their call are errors.
func TestGarbageAnswers(t *testing.T) {
	call := validCall()
	f := func(change func(*vdiffscanpb.DigestAnswer), want string) {
		t.Helper()
		p := encodeAnswer(answerFor(call))
		change(p)
		_, err := decodeAnswer(p, call)
		if want == "" {
			require.NoError(t, err)
			return
		}
		require.ErrorContains(t, err, want)
	}
	f(func(*vdiffscanpb.DigestAnswer) {}, "")
	f(func(p *vdiffscanpb.DigestAnswer) { p.Digests = p.Digests[1:] }, "not for every range")
	f(func(p *vdiffscanpb.DigestAnswer) { delete(p.Positions, 3) }, "the position of a stream is missing")
	f(func(p *vdiffscanpb.DigestAnswer) { p.Digests[2].Hi = nil }, "not one digest for each bucket")
	f(func(p *vdiffscanpb.DigestAnswer) { p.Digests[0] = nil }, "not one digest for each bucket")
	f(func(p *vdiffscanpb.DigestAnswer) { p.Digests[2].UpTo = encodeBound(pkrange.Bound{{}}) }, "a bound of 1 values in a key of 0 columns")
	_, err := decodeAnswer(nil, call)
	require.Error(t, err)
}

// Tests that batches which do not fit together are errors.
func TestGarbageBatches(t *testing.T) {
	fields := func() [][]byte {
		var out [][]byte
		for _, f := range testFields(2) {
			b, err := f.MarshalVT()
			require.NoError(t, err)
			out = append(out, b)
		}
		return out
	}()
	f := func(want string, messages ...*vdiffscanpb.RowsBatch) {
		t.Helper()
		a := newAssembler(rowsCall())
		var err error
		for _, m := range messages {
			require.NoError(t, err)
			_, err = a.add(m)
		}
		require.ErrorContains(t, err, want)
	}
	f("not asked for", &vdiffscanpb.RowsBatch{Read: 3})
	f("not asked for", &vdiffscanpb.RowsBatch{Read: 1, Range: 1})
	f("cannot be decoded", &vdiffscanpb.RowsBatch{Fields: [][]byte{{1}}})
	f("not whole rows", &vdiffscanpb.RowsBatch{Lengths: []int32{0}})
	f("not whole rows", &vdiffscanpb.RowsBatch{Fields: fields, Lengths: []int32{0, 0, 0}})
	f("a negative length", &vdiffscanpb.RowsBatch{Fields: fields, Lengths: []int32{0, -2}})
	f("values are missing", &vdiffscanpb.RowsBatch{Fields: fields, Lengths: []int32{1<<31 - 1, 1<<31 - 1}, Values: []byte("x")})
	f("more values than rows", &vdiffscanpb.RowsBatch{Fields: fields, Lengths: []int32{1, 0}, Values: []byte("xy")})
	f("not complete", &vdiffscanpb.RowsBatch{Fields: fields, Lengths: []int32{1, 0}, More: true}, &vdiffscanpb.RowsBatch{Range: 1})
	f("not complete", &vdiffscanpb.RowsBatch{Fields: fields, Lengths: []int32{1, 0}, More: true}, &vdiffscanpb.RowsBatch{Lengths: []int32{0}})
}

// Fuzzes the conversion of requests: whatever arrives is refused or becomes a call that encodes to what was
// understood of it. It never panics.
func FuzzRequests(f *testing.F) {
	for _, m := range []proto.Message{
		encodeCall(&vdiffscanpb.Header{Protocol: 1}, validCall()),
		&vdiffscanpb.DigestRequest{Reads: []*vdiffscanpb.DigestRead{{Table: 1}}},
	} {
		b, err := proto.Marshal(m)
		require.NoError(f, err)
		f.Add(b)
	}
	rows, err := encodeRowsCall(nil, rowsCall())
	require.NoError(f, err)
	b, err := proto.Marshal(rows)
	require.NoError(f, err)
	f.Add(b)
	s := New(Config{Tablet: testTablet})
	f.Fuzz(func(t *testing.T, data []byte) {
		var d vdiffscanpb.DigestRequest
		if proto.Unmarshal(data, &d) == nil {
			_ = (&grpcServer{service: s}).admit(d.GetHeader())
			if call, err := decodeDigestRequest(&d); err == nil {
				_ = call.Check()
				again, err := decodeDigestRequest(encodeCall(d.Header, call))
				require.NoError(t, err)
				assert.Equal(t, call, again)
			}
		}
		var r vdiffscanpb.RowsRequest
		if proto.Unmarshal(data, &r) == nil {
			if call, err := decodeRowsRequest(&r); err == nil {
				_ = call.Check()
				p, err := encodeRowsCall(r.Header, call)
				require.NoError(t, err)
				again, err := decodeRowsRequest(p)
				require.NoError(t, err)
				assert.Equal(t, call, again)
			}
		}
	})
}

// Fuzzes what comes back: garbage from a tablet is an error or rows that fit together. It never panics.
func FuzzResponses(f *testing.F) {
	b, err := proto.Marshal(encodeAnswer(answerFor(validCall())))
	require.NoError(f, err)
	f.Add(b)
	var message []byte
	for _, batch := range testBatches()[:2] {
		require.NoError(f, sendBatch(batch, func(p *vdiffscanpb.RowsBatch) error {
			message, err = proto.Marshal(p)
			return err
		}))
		f.Add(bytes.Clone(message))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var a vdiffscanpb.DigestAnswer
		if proto.Unmarshal(data, &a) == nil {
			_, _ = decodeAnswer(&a, validCall())
		}
		var p vdiffscanpb.RowsBatch
		if proto.Unmarshal(data, &p) == nil {
			rows := newAssembler(rowsCall())
			for range 2 {
				batch, err := rows.add(&p)
				if err != nil || batch == nil {
					continue
				}
				for _, r := range batch.Rows {
					assert.Len(t, r.Lengths, rows.columns[batch.Read])
				}
			}
		}
	})
}
