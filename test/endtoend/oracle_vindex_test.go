// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package endtoend

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"vitess.io/vitess/go/sqltypes"
	"vitess.io/vitess/go/vt/key"
	"vitess.io/vitess/go/vt/vtgate/vindexes"

	"github.com/vttablet-ext/vttablet-ext/test/endtoend/cluster"
)

// tableVindex is a vindex of a table in the VSchema.
type tableVindex struct {
	kind    string // its type
	params  map[string]string
	columns []*randomColumn
}

// name is its name in the VSchema: those with parameters are of one table.
func (v *tableVindex) name(t *randomTable) string {
	if v.params == nil {
		return v.kind
	}
	return v.kind + "_" + t.name
}

// hashingVindexes are those of one column; a multicol vindex takes any of them for each of its columns.
var hashingVindexes = []string{"hash", "hash", "xxhash", "xxhash", "numeric", "reverse_bits", "numeric_static_map", "binary", "binary_md5", "unicode_loose_md5", "unicode_loose_xxhash"}

// staticMap is the map of a numeric_static_map: other numbers are their own keyspace ids.
const staticMap = `{"0": 18446744073709551615, "1": 9223372036854775808, "2": 4611686018427387904, "3": 13835058055282163712, "7": 1, "100": 16140901064495857664}`

// accepts says whether a vindex maps every value that a column can have to a keyspace id: VReplication does not copy a row
// that it does not map. NULL is for most of them as good as no bytes at all.
func accepts(vindex string, c *randomColumn) bool {
	name := c.kind.name
	unsigned := strings.Contains(c.sourceType, "unsigned") || name == "year"
	m := collatedType.FindStringSubmatch(c.sourceType)
	switch vindex {
	case "hash":
		return !c.sourceNullable && (name == "integer" || name == "year")
	case "numeric", "reverse_bits", "numeric_static_map":
		return !c.sourceNullable && unsigned
	case "binary": // no value has no bytes
		switch name {
		case "integer", "decimal", "date", "datetime", "timestamp", "time", "year", "enum", "bit":
			return !c.sourceNullable
		}
		return !c.sourceNullable && strings.HasPrefix(c.sourceType, "binary(")
	case "unicode_loose_md5", "unicode_loose_xxhash": // bytes that are UTF-8
		return m != nil && slices.Contains([]string{"utf8mb4", "utf8mb3", "ascii"}, m[1]) || name == "date" || name == "decimal"
	}
	return true
}

// setVindex chooses what decides on the shard of a row.
func (t *randomTable) setVindex() {
	r := t.r
	usable := slices.DeleteFunc(slices.Clone(t.columns), func(c *randomColumn) bool { return c.dropped || c.computed != "" || c.aggregate != "" })
	r.Shuffle(len(usable), func(i, j int) { usable[i], usable[j] = usable[j], usable[i] })
	var v *tableVindex
	switch n := r.IntN(24); {
	case n == 0:
		v = t.byRegion()
	case n == 1:
		v = &tableVindex{kind: "null", columns: usable[:1]}
	case n < 10 && len(usable) > 1:
		v = t.byColumns(usable[:min(len(usable), 2+r.IntN(2))])
	}
	if v == nil {
		v = t.byColumn(usable)
	}
	if v == nil {
		v = &tableVindex{kind: "hash", columns: []*randomColumn{t.addPlain("vx", pick(r, []string{"bigint", "bigint unsigned"}))}}
	}
	t.vindexes = []*tableVindex{v}
	if r.IntN(5) == 0 { // another one, which decides if it costs less
		if other := t.byColumn(usable); other != nil && other.kind != v.kind {
			t.vindexes = append(t.vindexes, other)
		}
	}
}

// byColumn makes a vindex of one column, nil when no column has the values for the one chosen.
func (t *randomTable) byColumn(usable []*randomColumn) *tableVindex {
	for range 4 {
		kind := pick(t.r, hashingVindexes)
		for _, c := range usable {
			if accepts(kind, c) {
				v := &tableVindex{kind: kind, columns: []*randomColumn{c}}
				if kind == "numeric_static_map" {
					v.params = map[string]string{"json": staticMap}
					if t.r.IntN(2) == 0 {
						v.params["fallback_type"] = pick(t.r, []string{"hash", "reverse_bits", "xxhash"})
					}
				}
				return v
			}
		}
	}
	return nil
}

// byColumns makes a multicol vindex of all of these columns, nil when no vindex takes the values of one of them.
func (t *randomTable) byColumns(columns []*randomColumn) *tableVindex {
	r := t.r
	v := &tableVindex{kind: "multicol", columns: slices.Clone(columns), params: map[string]string{"column_count": fmt.Sprint(len(columns))}}
	var kinds []string
	named := false
	for _, c := range columns {
		taken := slices.DeleteFunc(slices.Clone(hashingVindexes), func(kind string) bool { return !accepts(kind, c) })
		kind := pick(r, taken)
		if kind == "numeric_static_map" {
			v.params["json"] = staticMap
		}
		named = named || kind != "hash"
		if kind == "hash" && r.IntN(2) == 0 {
			kind = "" // the default
		}
		kinds = append(kinds, kind)
	}
	if named {
		v.params["column_vindex"] = strings.TrimRight(strings.Join(kinds, ","), ",")
	}
	bytes := map[int][]string{2: {"", "", "1", "4,4", "2,3", ",3", "1,7"}, 3: {"", "", "1,1", "2,3,3", ",,4", "1,,2", "1"}}
	if text := pick(r, bytes[len(columns)]); text != "" {
		v.params["column_bytes"] = text
	}
	return v
}

// byRegion makes a vindex of a region and another column, which it adds.
func (t *randomTable) byRegion() *tableVindex {
	r := t.r
	id, params := t.addPlain("vx", pick(r, []string{"int unsigned", "bigint unsigned"})), map[string]string{"region_bytes": pick(r, []string{"1", "2"})}
	if r.IntN(2) == 0 {
		return &tableVindex{kind: "region_experimental", params: params, columns: []*randomColumn{t.addPlain("region", pick(r, []string{"tinyint unsigned", "int unsigned"})), id}}
	}
	params["region_map"] = "" // the cluster knows where it is
	region := t.newColumn(allKinds[slices.IndexFunc(allKinds, func(k *kind) bool { return k.name == "enum" })])
	region.name, region.source, region.sourceNullable, region.targetNullable, region.invisible = "region", "region", false, false, false
	t.columns = append(t.columns, region)
	return &tableVindex{kind: "region_json", params: params, columns: []*randomColumn{id, region}}
}

// regions is the map of region_json: all values that columns of kind enum have.
const regions = `{"open": 1, "closed": 200, "b": 130, "a": 64, "10": 300, "2": 65535, "new": 0, "newer": 0, "z": 255, "y": 128, "x": 32768, "w": 2, "\u00e9": 16384, "o'k": 49152}`

// writeRegions writes the map of region_json where the tablets can read it.
func (o *oracle) writeRegions() error {
	o.regions = filepath.Join(o.c.Dir(), "regions.json")
	return os.WriteFile(o.regions, []byte(regions), 0o644)
}

// addPlain adds a column of integers that are never NULL.
func (t *randomTable) addPlain(name, columnType string) *randomColumn {
	c := t.newColumn(allKinds[0])
	c.name, c.source, c.sourceType, c.targetType = name, name, columnType, columnType
	c.sourceNullable, c.targetNullable, c.invisible = false, false, false
	t.columns = append(t.columns, c)
	return c
}

// inVindex says whether a column has a part in the shard of a row.
func (t *randomTable) inVindex(c *randomColumn) bool {
	return slices.ContainsFunc(t.vindexes, func(v *tableVindex) bool { return slices.Contains(v.columns, c) })
}

// vschema is what the sharded keyspace has to know of the table, and of its vindexes by their names.
func (t *randomTable) vschema(source bool, all map[string]any) map[string]any {
	if t.reference {
		return map[string]any{"type": "reference"}
	}
	var list []any
	for _, v := range t.vindexes {
		var columns []string
		for _, c := range v.columns {
			if source {
				columns = append(columns, c.source)
			} else {
				columns = append(columns, c.name)
			}
		}
		all[v.name(t)] = map[string]any{"type": v.kind, "params": v.params}
		list = append(list, map[string]any{"columns": columns, "name": v.name(t)})
	}
	return map[string]any{"column_vindexes": list}
}

// placement computes where rows belong.
type placement struct {
	vindex  vindexes.Vindex
	columns []*randomColumn
}

// placedBy is the vindex that VReplication takes: the cheapest, of two the first. It is nil where rows are not split.
func (t *randomTable) placedBy() (*placement, error) {
	if !t.layout.splits || t.reference {
		return nil, nil
	}
	var best *placement
	for _, v := range t.vindexes {
		vindex, err := vindexes.CreateVindex(v.kind, v.name(t), v.params)
		if err != nil {
			return nil, err
		}
		if best == nil || vindex.Cost() < best.vindex.Cost() {
			best = &placement{vindex, v.columns}
		}
	}
	return best, nil
}

// countPlaced notes by what the tables of a batch are distributed.
func (o *oracle) countPlaced(b *batch) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, t := range b.tables {
		switch {
		case t.copies():
			o.placed["reference, merged"]++
		case t.reference:
			o.placed["reference"]++
		case t.layout.splits:
			o.placed[t.vindexes[0].kind]++
			if len(t.vindexes) > 1 {
				o.placed["a second vindex"]++
			}
			if slices.ContainsFunc(t.vindexes[0].columns, func(c *randomColumn) bool { return c.sourceNullable }) {
				o.placed["of NULLs"]++
			}
		}
	}
}

// sql are the expressions that read the values as VReplication does.
func (p *placement) sql() (list []string) {
	for _, c := range p.columns {
		name := quote(c.source)
		if c.kind.form == formText { // as it is stored
			name = "convert(" + name + " using binary)"
		}
		list = append(list, name)
	}
	return list
}

// keyspaceID is where a row belongs, by its values.
func (p *placement) keyspaceID(values []sqltypes.Value) ([]byte, error) {
	destinations, err := vindexes.Map(context.Background(), p.vindex, nil, [][]sqltypes.Value{values})
	if err != nil {
		return nil, err
	}
	id, ok := destinations[0].(key.DestinationKeyspaceID)
	if !ok || len(id) == 0 {
		return nil, fmt.Errorf("vindex %s: %v maps to %v", p.vindex, values, destinations[0])
	}
	return id, nil
}

// inShard says whether a row of the source belongs to a shard of the target.
func inShard(shard string) func(*truthRow) bool {
	ranges, err := key.ParseShardingSpec(shard)
	return func(row *truthRow) bool {
		return row.ksid == nil || shard == "0" || err == nil && key.KeyRangeContains(ranges[0], row.ksid)
	}
}

// feeds says whether a shard of the source has a stream to a shard of the target: not where no row can belong to both.
func feeds(source, target *cluster.Tablet) bool {
	if source.Shard == "0" || target.Shard == "0" {
		return true
	}
	s, err := key.ParseShardingSpec(source.Shard)
	if err != nil {
		return false
	}
	t, err := key.ParseShardingSpec(target.Shard)
	return err == nil && key.KeyRangeIntersect(s[0], t[0])
}
