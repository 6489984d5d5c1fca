// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package endtoend

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// form is how the oracle tells values: two values are the same when their forms are.
type form string

const (
	formExact form = "exact" // integers and decimals, without zeros that say nothing
	formFloat form = "float" // what MySQL prints of it, as a number
	formTime  form = "time"  // points in time and times, with six fractional digits
	formText  form = "text"  // in utf8mb4
	formBytes form = "bytes"
	formJSON  form = "json"
)

// sql is the expression that reads the form of a column. Its text is ASCII.
func (f form) sql(column string) string {
	switch f {
	case formExact:
		return "cast(" + column + " + 0 as char)"
	case formText:
		return "hex(convert(" + column + " using utf8mb4))"
	case formBytes:
		return "hex(" + column + ")"
	case formJSON:
		return "hex(cast(" + column + " as char))"
	}
	return "cast(" + column + " as char)"
}

// kind is a family of column types.
type kind struct {
	name string
	form form
	// types makes the type of a column, and others that the target may have instead: all values fit there.
	types func(r *rand.Rand) (source string, others []string)
	// value makes an SQL expression for a column of a type.
	value func(r *rand.Rand, columnType string) string
	// tweaks are expressions of a slightly different value of the column %[1]s.
	tweaks []string
	// inKey says that it may be in a key. Those with a prefix are indexed by their beginnings.
	inKey  bool
	prefix int
}

// ordered says whether the order of a key of the kind can be computed outside of MySQL.
func (k *kind) ordered() bool {
	switch k.name {
	case "integer", "decimal", "date", "datetime", "timestamp", "year", "text", "binary":
		return true
	}
	return false
}

func ofTypes(types ...string) func(*rand.Rand) (string, []string) {
	// Each type may become any later one of its group, which is what stands before a semicolon.
	return func(r *rand.Rand) (string, []string) {
		group := strings.Split(pick(r, types), ";")
		i := r.IntN(len(group))
		return group[i], group[i+1:]
	}
}

var numberTweaks = []string{"%[1]s + 1", "%[1]s - 1", "0 - %[1]s", "0"}

var allKinds = []*kind{
	{name: "integer", form: formExact, inKey: true, value: integerValue, tweaks: numberTweaks,
		types: ofTypes("tinyint;smallint;mediumint;int;bigint", "tinyint unsigned;smallint unsigned;int unsigned;bigint unsigned", "int;bigint", "bigint", "bigint unsigned", "int(8) unsigned zerofill;int unsigned")},
	{name: "decimal", form: formExact, inKey: true, value: decimalValue, tweaks: append([]string{"%[1]s + 0.01", "%[1]s - 0.000001"}, numberTweaks...),
		types: ofTypes("decimal(10,2);decimal(12,4);decimal(40,20)", "decimal(20,6);decimal(22,8)", "decimal(65,30)", "decimal(38,0)")},
	{name: "float", form: formFloat, inKey: true, value: floatValue, tweaks: append([]string{"%[1]s * 1.001e0", "-%[1]s"}, numberTweaks...), types: ofTypes("float;double", "float")},
	{name: "double", form: formFloat, inKey: true, value: floatValue, tweaks: append([]string{"%[1]s * 1.000000000000001e0", "-%[1]s"}, numberTweaks...), types: ofTypes("double")},
	{name: "date", form: formTime, inKey: true, value: dateValue, tweaks: []string{"%[1]s + interval 1 day", "'0000-00-00'"}, types: ofTypes("date;datetime", "date")},
	{name: "datetime", form: formTime, inKey: true, value: datetimeValue, tweaks: []string{"%[1]s + interval 1 second", "%[1]s + interval 1 microsecond", "%[1]s + interval 1000 microsecond", "'0000-00-00 00:00:00'"},
		types: ofTypes("datetime;datetime(3);datetime(6)", "datetime(2);datetime(5)", "datetime(6)")},
	{name: "timestamp", form: formTime, inKey: true, value: timestampValue, tweaks: []string{"%[1]s + interval 1 second", "%[1]s + interval 1000 microsecond", "'0000-00-00 00:00:00'"},
		types: ofTypes("timestamp;timestamp(3);timestamp(6)", "timestamp(4)")},
	{name: "time", form: formTime, inKey: true, value: timeValue, tweaks: []string{"addtime(%[1]s, '00:00:01')", "addtime(%[1]s, '00:00:00.001')", "subtime('00:00:00', %[1]s)"}, types: ofTypes("time;time(3);time(6)", "time(2)")},
	{name: "year", form: formExact, inKey: true, value: func(r *rand.Rand, _ string) string {
		return fmt.Sprint(pick(r, []int{0, 1901, 2155, 1970, 2000 + r.IntN(100)}))
	}, tweaks: []string{"%[1]s + 1", "0"}, types: ofTypes("year")},
	{name: "text", form: formText, inKey: true, value: textValue, tweaks: textTweaks, types: textTypes("char(%d)", "varchar(%d)", "varchar(%d)", "varchar(%d)")},
	{name: "long text", form: formText, inKey: true, prefix: 10, value: textValue, tweaks: textTweaks, types: textTypes("text", "tinytext", "mediumtext", "longtext")},
	{name: "binary", form: formBytes, inKey: true, value: bytesValue, tweaks: bytesTweaks, types: ofTypes("binary(8)", "binary(1)", "varbinary(20);varbinary(40)", "varbinary(16)")},
	{name: "blob", form: formBytes, inKey: true, prefix: 10, value: bytesValue, tweaks: bytesTweaks, types: ofTypes("tinyblob;blob;longblob", "blob")},
	{name: "enum", form: formText, inKey: true, value: func(r *rand.Rand, _ string) string { return fmt.Sprint(1 + r.IntN(6)) }, tweaks: []string{"%[1]s + 1", "7 - %[1]s", "1"},
		types: ofTypes("enum('open','closed','b','a','10','2');enum('open','closed','b','a','10','2','new','newer')", "enum('z','y','x','w','\u00e9','o''k')")},
	{name: "set", form: formText, inKey: true, value: func(r *rand.Rand, _ string) string { return fmt.Sprint(r.IntN(16)) }, tweaks: []string{"%[1]s ^ 1", "%[1]s | 8", "0"},
		types: ofTypes("set('x','y','a','\u00e9');set('x','y','a','\u00e9','more')", "set('d','c','b','a')")},
	{name: "bit", form: formExact, inKey: true, value: func(r *rand.Rand, _ string) string {
		return fmt.Sprint(pick(r, []uint64{0, 1, r.Uint64N(256), r.Uint64()}))
	}, tweaks: []string{"%[1]s ^ 1", "0"}, types: ofTypes("bit(1)", "bit(9)", "bit(64)", "bit(8)")},
	{name: "json", form: formJSON, value: jsonValue, tweaks: []string{`json_object("other", 1)`, "json_array(%[1]s)"}, types: ofTypes("json")},
	{name: "geometry", form: formBytes, value: func(r *rand.Rand, _ string) string {
		return fmt.Sprintf("st_geomfromtext('point(%d %d.5)', %d)", r.IntN(90), r.IntN(90), pick(r, []int{0, 0, 4326}))
	}, tweaks: []string{"st_geomfromtext('point(1 2)')"}, types: ofTypes("point", "geometry")},
	{name: "vector", form: formBytes, value: func(r *rand.Rand, _ string) string {
		return fmt.Sprintf("string_to_vector('[%d, 0.1, %d]')", r.IntN(3), r.IntN(100))
	}, tweaks: []string{"string_to_vector('[1, 2, 3]')"}, types: ofTypes("vector(3)")},
}

// charsets have the collations that text columns are made with; Vitess cannot compare by some of them.
var charsets = map[string][]string{
	"utf8mb4": {"utf8mb4_0900_ai_ci", "utf8mb4_0900_ai_ci", "utf8mb4_0900_as_cs", "utf8mb4_0900_bin", "utf8mb4_bin", "utf8mb4_general_ci", "utf8mb4_unicode_ci", "utf8mb4_unicode_520_ci",
		"utf8mb4_de_pb_0900_ai_ci", "utf8mb4_ja_0900_as_cs", "utf8mb4_tr_0900_ai_ci", "utf8mb4_swedish_ci", "utf8mb4_zh_0900_as_cs", "utf8mb4_nb_0900_ai_ci"},
	"utf8mb3": {"utf8mb3_general_ci", "utf8mb3_bin"},
	"latin1":  {"latin1_swedish_ci", "latin1_bin", "latin1_german2_ci", "latin1_general_cs"},
	"ascii":   {"ascii_general_ci", "ascii_bin"},
	"utf16":   {"utf16_general_ci", "utf16_bin", "utf16_unicode_ci"},
	"utf32":   {"utf32_general_ci"},
	"latin2":  {"latin2_general_ci", "latin2_czech_cs"},
	"cp1251":  {"cp1251_general_ci"},
	"sjis":    {"sjis_japanese_ci", "sjis_bin"},
	"gb18030": {"gb18030_bin"}, // under its other collation MySQL calls texts equal that begin with equal ones
	"gbk":     {"gbk_chinese_ci", "gbk_bin"},
	"big5":    {"big5_chinese_ci", "big5_bin"},
	"tis620":  {"tis620_thai_ci"},
}

// charsetNames is in the order of likelihood: the first ones are taken most often.
var charsetNames = []string{"utf8mb4", "latin1", "utf8mb3", "ascii", "utf16", "utf32", "latin2", "cp1251", "sjis", "gb18030", "gbk", "big5", "tis620"}

func collated(columnType, charset, collation string) string {
	return columnType + " character set " + charset + " collate " + collation
}

// textTypes makes text columns; the target may have another collation, utf8mb4 for another charset, and more room.
func textTypes(types ...string) func(*rand.Rand) (string, []string) {
	return func(r *rand.Rand) (string, []string) {
		base := pick(r, types)
		length := 30 + r.IntN(10)
		if strings.Contains(base, "%d") {
			base = fmt.Sprintf(base, length)
		}
		charset := "utf8mb4"
		if r.IntN(2) == 0 {
			charset = charsetNames[min(r.IntN(len(charsetNames)), r.IntN(len(charsetNames)))]
		}
		collation := pick(r, charsets[charset])
		others := []string{collated(base, charset, pick(r, charsets[charset])), collated(base, "utf8mb4", pick(r, charsets["utf8mb4"]))}
		if strings.HasPrefix(base, "varchar") || strings.HasPrefix(base, "char") {
			others = append(others, collated(fmt.Sprintf("varchar(%d)", length+10), charset, collation))
		}
		return collated(base, charset, collation), others
	}
}

// strangeText is text of a collation that Vitess cannot compare by.
var strangeText = &kind{name: "text", form: formText, inKey: true, value: textValue, tweaks: textTweaks, types: func(r *rand.Rand) (string, []string) {
	base, collation := fmt.Sprintf("varchar(%d)", 30+r.IntN(10)), pick(r, strangeCollations)
	charset, _, _ := strings.Cut(collation, "_")
	return collated(base, charset, collation), []string{collated(base, charset, pick(r, charsets[charset])), collated("varchar(60)", charset, collation)}
}}

var strangeCollations = []string{"gbk_chinese_ci", "big5_chinese_ci", "latin1_german2_ci", "gb18030_bin", "tis620_thai_ci", "latin2_czech_cs", "gbk_bin", "big5_bin"}

// garbled says whether VReplication copies the bytes of the text as if they were of the target's charset, as it does where it
// does not know the source's. What becomes of a key then is no question of equal texts.
func (c *randomColumn) garbled() bool {
	from, to := collatedType.FindStringSubmatch(c.sourceType), collatedType.FindStringSubmatch(c.targetType)
	return from != nil && to != nil && from[1] != to[1] && slices.Contains([]string{"gbk", "big5", "gb18030", "tis620"}, from[1])
}

var hardTexts = []string{"", " ", "a", "A", "a ", "b", "\u00e1", "\u00c1", "stra\u00dfe", "strasse", "STRASSE", "\u00df", "ss", "\u00e4", "ae", "\u00c4", "\U0001F600", "x\U0001F600", "e\u0301", "\u00e9",
	"O'Brien", `back\slash`, "tab\tx", "tab", "new\nline", "NULL", "null", "0x41", "\ufb01", "\u0130", "\u0131", "\uff26", "10", "9", "09", "1e1", "Z", "z", "\u0436", "\u30a2", "\u3042", "\u4e2d", "\uff21", "\uff41", "\u0e40\u0e01", "-", "_", "%", "\u00e6", "\u00d8", "o"}

var textTweaks = []string{"concat(%[1]s, ' ')", "upper(%[1]s)", "lower(%[1]s)", "concat(%[1]s, 'x')", "replace(%[1]s, 'e', _utf8mb4 0xC3A9)", "replace(%[1]s, 'a', 'A')", "''", "trim(%[1]s)", "concat(%[1]s, char(9))"}

// caseTweaks change text in case or accent only.
var caseTweaks = []string{"if(cast(%[1]s as binary) = cast(upper(%[1]s) as binary), lower(%[1]s), upper(%[1]s))", "if(cast(%[1]s as binary) = cast(lower(%[1]s) as binary), upper(%[1]s), lower(%[1]s))",
	"replace(%[1]s, 'e', _utf8mb4 0xC3A9)", "replace(%[1]s, _utf8mb4 0xC3A9, 'e')", "replace(%[1]s, _utf8mb4 0xC3A4, 'a')", "replace(%[1]s, 'ss', _utf8mb4 0xC39F)", "concat(%[1]s, ' ')"}

// textValue is a hard one, or two of them and a number.
func textValue(r *rand.Rand, _ string) string {
	text := pick(r, hardTexts)
	if r.IntN(3) > 0 {
		text = fmt.Sprintf("%s%s%d", text, pick(r, hardTexts), r.IntN(200))
	}
	return fmt.Sprintf("_utf8mb4 x'%x'", text)
}

var bytesTweaks = []string{"concat(%[1]s, 0x00)", "concat(%[1]s, 0x20)", "reverse(%[1]s)", "''", "0x00"}

func bytesValue(r *rand.Rand, _ string) string {
	value := pick(r, []string{"", "00", "20", "0000", "ff", "41", "61", "c3a9", "e9", "80"})
	if r.IntN(3) > 0 {
		value += fmt.Sprintf("%06x", r.IntN(1<<24))
	}
	return "x'" + value + "'"
}

func integerValue(r *rand.Rand, columnType string) string {
	hard := []string{"0", "-1", "1", "127", "-128", "255", "2147483647", "-2147483648", "4294967295", "9007199254740993", "-9007199254740993", "9223372036854775807", "-9223372036854775808", "18446744073709551615"}
	switch r.IntN(4) {
	case 0:
		return pick(r, hard)
	case 1:
		return fmt.Sprint(int64(r.Uint64()))
	default:
		return fmt.Sprint(r.IntN(400) - 100)
	}
}

func decimalValue(r *rand.Rand, _ string) string {
	hard := []string{"0", "-0.00", "0.1", "-0.1", "0.01", "99999999.99", "-99999999.99", "9007199254740993", "0.000001", "1", "1.10"}
	if r.IntN(3) == 0 {
		return "'" + pick(r, hard) + "'"
	}
	return fmt.Sprintf("'%d.%06d'", r.IntN(100_000)-50_000, r.IntN(1e6))
}

func floatValue(r *rand.Rand, _ string) string {
	hard := []string{"0", "-0", "0.1", "1.5", "16777217", "9007199254740993", "1e10", "1e-30", "3.4e38", "-1e20", "123456.789", "0.3333333333333333"}
	if r.IntN(3) == 0 {
		return "'" + pick(r, hard) + "'"
	}
	return fmt.Sprintf("%d / %de0", r.IntN(100_000)-50_000, 1+r.IntN(9))
}

func dateValue(r *rand.Rand, _ string) string {
	if r.IntN(4) == 0 {
		return pick(r, []string{"'0000-00-00'", "'1000-01-01'", "'9999-12-31'", "'2024-02-29'", "'2020-00-00'", "'1969-12-31'"})
	}
	return fmt.Sprintf("'%04d-%02d-%02d'", 1990+r.IntN(60), 1+r.IntN(12), 1+r.IntN(28))
}

func clock(r *rand.Rand) string {
	fraction := pick(r, []string{"", ".5", ".000001", ".123", ".999999", fmt.Sprintf(".%06d", r.IntN(1e6))})
	return fmt.Sprintf("%02d:%02d:%02d%s", r.IntN(24), r.IntN(60), r.IntN(60), fraction)
}

func datetimeValue(r *rand.Rand, _ string) string {
	if r.IntN(5) == 0 {
		return pick(r, []string{"'0000-00-00 00:00:00'", "'1000-01-01 00:00:00'", "'9999-12-31 23:59:59'", "'2024-02-29 00:00:00'", "'2020-01-01 00:00:00.000001'"})
	}
	date := strings.Trim(dateValue(r, ""), "'")
	return "'" + date + " " + clock(r) + "'"
}

func timestampValue(r *rand.Rand, _ string) string {
	if r.IntN(5) == 0 {
		return pick(r, []string{"'0000-00-00 00:00:00'", "'1970-01-01 00:00:01'", "'2038-01-19 03:14:07'", "'2021-10-31 02:30:00'", "'2021-03-28 02:30:00'"})
	}
	return fmt.Sprintf("'%04d-%02d-%02d %s'", 1971+r.IntN(60), 1+r.IntN(12), 1+r.IntN(28), clock(r))
}

func timeValue(r *rand.Rand, _ string) string {
	if r.IntN(4) == 0 {
		return pick(r, []string{"'00:00:00'", "'838:59:59'", "'-838:59:59'", "'-00:00:01'", "'-00:00:00.5'", "'00:00:00.000001'"})
	}
	return "'" + pick(r, []string{"", "", "-", "1"}) + clock(r) + "'"
}

func jsonValue(r *rand.Rand, _ string) string {
	return pick(r, []string{
		fmt.Sprintf(`'{"b": %d, "a": [null, true, "\u00e9\U0001F600"]}'`, r.IntN(1000)), `'9007199254740993'`, `'"text"'`, `'null'`, `'[]'`, `'{}'`, `'{"": ""}'`,
		fmt.Sprintf(`'%d.5'`, r.IntN(100)), `'{"a": {"a": {"a": "\\\\ \\" \\n"}}}'`, `'18446744073709551615'`, `'1e100'`,
	})
}
