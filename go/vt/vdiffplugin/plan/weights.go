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
// MySQL's weights agree with its own comparison. charset is that of the texts' bytes. Where the collation pads, what weighs as
// spaces do does not count at the end. It makes one request for some hundred texts. Errors are those of the requests, without the texts; a charset or
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
		fmt.Fprintf(&query, "%s as space", weight("utf8mb4", as, " "))
		answer, err := client.ExecuteFetchAsApp(ctx, tablet, true, &tabletmanagerdatapb.ExecuteFetchAsAppRequest{Query: []byte(query.String()), MaxRows: 1})
		if err != nil {
			text, _, _ := strings.Cut(err.Error(), " during query") // which has the texts
			return nil, vterrors.Errorf(vterrors.Code(err), "weights of text under %s on tablet %s: %.300s", as.Collation, topoproto.TabletAliasString(tablet.Alias), text)
		}
		result := sqltypes.Proto3ToResult(answer)
		if len(result.Rows) != 1 || len(result.Rows[0]) != end-start+1 {
			return nil, vterrors.Errorf(vtrpcpb.Code_INTERNAL, "weights of text under %s: not one row of %d weights", as.Collation, end-start+1)
		}
		weights = appendWeights(weights, result.Rows[0], charset, as, texts[start:end])
		start = end
	}
	return weights, nil
}

// appendWeights appends the weights of a row; the last one is that of a space.
func appendWeights(weights []string, row []sqltypes.Value, charset string, as StoredText, texts []string) []string {
	space := row[len(texts)].ToString()
	for i, text := range texts {
		if row[i].IsNull() { // text that is not valid in its charset, which MySQL would cut: only its own bytes are known to be equal to it
			weights = append(weights, "\x00"+text)
			continue
		}
		w := row[i].ToString()
		for as.pads() && !as.leveled() && space != "" && strings.HasSuffix(w, space) {
			w = w[:len(w)-len(space)]
		}
		switch {
		case as.endsAtNUL():
			w += strings.Map(nulOrDEL, text)
		case as.sharesWeights():
			w += "\x00" + wide(text, charset)
		}
		weights = append(weights, "w"+w)
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
	switch {
	case as.leveled():
		expr = fmt.Sprintf("trim(trailing ' ' from %s)", expr)
	case as.endsAtNUL():
		expr = fmt.Sprintf("replace(%s, _%s x'00', _%s x'7f')", expr, as.Charset, as.Charset)
	}
	return fmt.Sprintf("if(length(%s) = %d, hex(weight_string(%s collate %s)), null)", whole, len(text), expr, as.Collation)
}

// pads says whether MySQL compares texts as if they went on with spaces. Then the weights of spaces are taken off the ends of the
// weights, rather than spaces off the texts: other characters weigh as much as a space, a no-break space under utf16_unicode_ci and a
// grave accent under koi8u_general_ci. And under tis620_thai_ci spaces behind a tone mark count, since it weighs at the end.
func (s StoredText) pads() bool { return !strings.Contains(s.Collation, "_0900_") }

// leveled says whether weights come in levels, so that the spaces of a text are not at their end.
func (s StoredText) leveled() bool { return strings.HasSuffix(s.Collation, "_czech_cs") }

// endsAtNUL says whether weight_string takes a zero byte for the end of a text, which = does not. Such bytes are weighed as DEL,
// and told from it by a list of both in the order in which they are in the text.
func (s StoredText) endsAtNUL() bool { return s.Collation == "tis620_thai_ci" }

func nulOrDEL(r rune) rune {
	if r == 0 || r == 0x7f {
		return r
	}
	return -1
}

// sharesWeights says whether weight_string has one weight for characters of two bytes that = tells apart. These are told apart by a list
// of them.
func (s StoredText) sharesWeights() bool { return s.Collation == "big5_chinese_ci" }

// wide returns the characters of a text that are not ASCII.
func wide(text, charset string) string {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		switch {
		case text[i] < 0x80:
		case charset == "big5" && i+1 < len(text): // the second byte may be an ASCII letter
			b.WriteString(text[i : i+2])
			i++
		default:
			b.WriteByte(text[i])
		}
	}
	return b.String()
}
