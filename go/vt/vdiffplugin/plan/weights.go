// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package plan

import (
	"context"
	"fmt"
	"regexp"
	"strings"

	"vitess.io/vitess/go/sqltypes"
	"vitess.io/vitess/go/vt/topo/topoproto"
	"vitess.io/vitess/go/vt/vterrors"

	tabletmanagerdatapb "vitess.io/vitess/go/vt/proto/tabletmanagerdata"
	topodatapb "vitess.io/vitess/go/vt/proto/topodata"
	vtrpcpb "vitess.io/vitess/go/vt/proto/vtrpc"
)

const (
	// One query asks for at most so many weights, and has at most about so many bytes of text, so that it stays far below
	// max_allowed_packet even at 1 MB and its answer below the limit of a gRPC message.
	maxWeights     = 500
	maxWeightBytes = 64 << 10
)

var plainName = regexp.MustCompile(`^[a-z0-9_]+$`)

// Weights asks a tablet's MySQL how it sees texts under a collation, in particular one that Vitess does not know. The results,
// one per text, are equal for texts that are equal in a unique index of a column stored as as, and for no others as far as
// MySQL's weights agree with its own comparison. charset is that of the texts' bytes. Spaces at the end do not count where the
// collation pads. It makes one request for some hundred texts. Errors are those of the requests, without the texts; a charset or
// collation that is no name of one is INVALID_ARGUMENT.
func Weights(ctx context.Context, client SchemaClient, tablet *topodatapb.Tablet, charset string, as StoredText, texts []string) ([]string, error) {
	for _, name := range []string{charset, as.Charset, as.Collation} {
		if !plainName.MatchString(name) {
			return nil, vterrors.Errorf(vtrpcpb.Code_INVALID_ARGUMENT, "%q is not the name of a charset or collation", name)
		}
	}
	weights := make([]string, 0, len(texts))
	for start := 0; start < len(texts); {
		var query strings.Builder
		query.WriteString("select ")
		end, size := start, 0
		for ; end < len(texts) && end-start < maxWeights && (end == start || size+len(texts[end]) <= maxWeightBytes); end++ {
			size += len(texts[end])
			fmt.Fprintf(&query, "%s as w%d, ", weight(charset, as, texts[end]), end-start)
		}
		fmt.Fprintf(&query, "%d as n", end-start)
		answer, err := client.ExecuteFetchAsApp(ctx, tablet, true, &tabletmanagerdatapb.ExecuteFetchAsAppRequest{Query: []byte(query.String()), MaxRows: 1})
		if err != nil {
			text, _, _ := strings.Cut(err.Error(), " during query") // which has the texts
			return nil, vterrors.Errorf(vterrors.Code(err), "weights of text under %s on tablet %s: %.300s", as.Collation, topoproto.TabletAliasString(tablet.Alias), text)
		}
		result := sqltypes.Proto3ToResult(answer)
		if len(result.Rows) != 1 || len(result.Rows[0]) != end-start+1 {
			return nil, vterrors.Errorf(vtrpcpb.Code_INTERNAL, "weights of text under %s: not one row of %d weights", as.Collation, end-start)
		}
		weights = appendWeights(weights, result.Rows[0], texts[start:end])
		start = end
	}
	return weights, nil
}

func appendWeights(weights []string, row []sqltypes.Value, texts []string) []string {
	for i, text := range texts {
		if row[i].IsNull() { // text that is not valid in its charset, which MySQL would cut: only its own bytes are known to be equal to it
			weights = append(weights, "\x00"+text)
			continue
		}
		weights = append(weights, "w"+row[i].ToString())
	}
	return weights
}

// weight is the expression of one weight. The text is written in hexadecimal digits: nothing of it is SQL.
func weight(charset string, as StoredText, text string) string {
	whole := fmt.Sprintf("convert(x'%x' using %s)", text, charset)
	expr := whole
	if charset != as.Charset {
		expr = fmt.Sprintf("convert(%s using %s)", expr, as.Charset)
	}
	if !strings.Contains(as.Collation, "_0900_") {
		expr = fmt.Sprintf("trim(trailing ' ' from %s)", expr)
	}
	return fmt.Sprintf("if(length(%s) = %d, hex(weight_string(%s collate %s)), null)", whole, len(text), expr, as.Collation)
}
