// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package sidecar

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"vitess.io/vitess/go/constants/sidecar"
	"vitess.io/vitess/go/sqltypes"
	"vitess.io/vitess/go/vt/sqlparser"

	querypb "vitess.io/vitess/go/vt/proto/query"
)

// What the columns of upstream's tables hold, in bytes.
const (
	maxLastError = 1024  // vdiff.last_error, varbinary
	maxLastPK    = 2000  // vdiff_table.lastpk, varbinary
	maxMessage   = 65535 // vdiff_log.message, text
	// maxLogLine bounds the lines that are for people. It is far below maxMessage, because a log of
	// a thousand lines is read at once.
	maxLogLine = 8 << 10
)

// bind replaces each %a of a statement by the next value and each %#s by the name of the sidecar
// database. The name is configured by the user, so it is never written out. Values are string, int,
// int64, bool, []string (a list in parentheses) or nil.
func bind(statement string, values ...any) (string, error) {
	names := make([]any, 0, len(values)+2)
	vars := make(map[string]*querypb.BindVariable, len(values))
	for rest := statement; ; {
		i := strings.IndexByte(rest, '%')
		if i < 0 {
			break
		}
		rest = rest[i+1:]
		if strings.HasPrefix(rest, "#s") {
			names = append(names, sidecar.GetIdentifier())
			continue
		}
		if len(vars) == len(values) {
			return "", fmt.Errorf("statement has more than %d placeholders", len(values))
		}
		name := fmt.Sprintf("v%d", len(vars))
		v, err := sqltypes.BuildBindVariable(values[len(vars)])
		if err != nil {
			return "", fmt.Errorf("value %d of a statement: %w", len(vars)+1, err)
		}
		vars[name] = v
		if v.Type == querypb.Type_TUPLE {
			names = append(names, "::"+name)
		} else {
			names = append(names, ":"+name)
		}
	}
	if len(vars) != len(values) {
		return "", fmt.Errorf("statement has %d placeholders for %d values", len(vars), len(values))
	}
	return sqlparser.BuildParsedQuery(statement, names...).GenerateQuery(vars, nil)
}

// nullable returns b as a value for bind, nil for NULL.
func nullable(b []byte) any {
	if b == nil {
		return nil
	}
	// A string, not bytes: those would be sent as a binary literal, which no JSON column takes.
	return string(b)
}

// cut returns s as valid UTF-8 of at most max bytes, without half a rune at its end.
func cut(s string, max int) string {
	s = strings.ToValidUTF8(s, "�")
	if len(s) <= max {
		return s
	}
	end := max
	for end > 0 && !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end]
}
