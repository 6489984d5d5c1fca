// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package endtoend

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

var collatedType = regexp.MustCompile(`character set (\w+) collate (\w+)`)

// fold is an expression that is equal for texts which are equal on the target: MySQL says which are.
func (c *randomColumn) fold(target bool, padding map[string]bool) string {
	m := collatedType.FindStringSubmatch(c.targetType)
	name := quote(c.source)
	if target {
		name = quote(c.name)
	}
	if m == nil {
		return c.kind.form.sql(name)
	}
	if padding[m[2]] { // weights of padded text would depend on how many characters have none, or two
		name = "trim(trailing ' ' from " + name + ")"
	}
	if m[2] == "big5_chinese_ci" { // it compares characters of two bytes as they are, and gives unlike ones one weight
		return foldASCII(name)
	}
	return fmt.Sprintf("hex(weight_string(convert(%s using %s) collate %s))", name, m[1], m[2])
}

// foldASCII is the text of a column in utf8mb4 with its ASCII letters in upper case.
func foldASCII(name string) string {
	text := "convert(" + name + " using utf8mb4)"
	for letter := 'a'; letter <= 'z'; letter++ {
		text = fmt.Sprintf("replace(%s, _utf8mb4'%c' collate utf8mb4_bin, _utf8mb4'%c')", text, letter, letter-'a'+'A')
	}
	return "hex(" + text + ")"
}

// checkFolds holds fold against MySQL's own opinion, for texts of each collation.
func (o *oracle) checkFolds(ctx context.Context) error {
	at, s := o.c.Primary("osrc", "0"), sessions{}
	defer s.close()
	var texts []string
	for _, text := range hardTexts {
		texts = append(texts, fmt.Sprintf("(_utf8mb4 x'%x')", text), fmt.Sprintf("(_utf8mb4 x'%x20')", text+"10"))
	}
	for charset, collations := range charsets {
		for _, collation := range slices.Compact(slices.Sorted(slices.Values(collations))) {
			c := &randomColumn{source: "k", targetType: collated("varchar(60)", charset, collation), kind: strangeText}
			side := "(select k, " + c.fold(false, o.padding) + " as folded from oracle_folds)"
			if err := s.execAll(ctx, at, "drop table if exists oracle_folds", "create table oracle_folds (k "+c.targetType+")", "insert ignore into oracle_folds values "+strings.Join(texts, ", ")); err != nil {
				return err
			}
			result, err := s.exec(ctx, at, "select hex(a.k), hex(b.k) from "+side+" a, "+side+" b where (a.k = b.k) <> (a.folded = b.folded) limit 1")
			if err != nil {
				return err
			}
			for _, row := range result.Rows {
				return fmt.Errorf("the oracle and collation %s do not agree whether %v and %v are equal", collation, row[0], row[1])
			}
		}
	}
	return s.execAll(ctx, at, "drop table oracle_folds")
}
