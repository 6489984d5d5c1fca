// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
)

// Env describes the cluster for a shell: assignments, one a line, safe to source. The names of a tablet begin with its
// keyspace, its shard and what it was created as, numbered from the second one on: DST_80_REPLICA_SOCKET is
// the socket of the replica of shard 80- of keyspace dst. (Shard "-80" reads TO_80, and "40-80" reads 40_TO_80.)
func (c *Cluster) Env() (string, error) {
	var b strings.Builder
	line := func(name, value string) { fmt.Fprintf(&b, "%s=%s\n", name, shellQuote(value)) }
	line("VTCTLD", c.VtctldAddr())
	line("ETCD", c.EtcdAddr())
	line("VTDATAROOT", c.dir)
	line("VT_MYSQL_ROOT", c.opts.MySQLRoot)
	line("LOGS", c.LogDir())
	var names []string
	seen := map[string]int{}
	for _, t := range c.Tablets() {
		role := strings.ToUpper(t.Type)
		if c.Primary(t.Keyspace, t.Shard) == t {
			role = "PRIMARY"
		}
		name := shellName(t.Keyspace) + "_" + shellShard(t.Shard) + "_" + role
		if seen[name]++; seen[name] > 1 {
			name += "_" + strconv.Itoa(seen[name])
		}
		names = append(names, name)
		line(name+"_ALIAS", t.Alias)
		line(name+"_SOCKET", t.Socket())
		line(name+"_GRPC", strconv.Itoa(t.GRPCPort))
		line(name+"_HTTP", strconv.Itoa(t.HTTPPort))
		line(name+"_MYSQL", strconv.Itoa(t.MySQLPort))
	}
	line("TABLETS", strings.Join(names, " "))
	fmt.Fprintf(&b, "PATH=%s:%s:$PATH\nexport PATH VTDATAROOT VT_MYSQL_ROOT\n",
		shellQuote(c.opts.BinDir), shellQuote(filepath.Join(c.opts.MySQLRoot, "bin")))
	return b.String(), nil
}

// shellShard makes a shard's name part of a variable's name.
func shellShard(shard string) string {
	from, to, ranged := strings.Cut(shard, "-")
	switch {
	case !ranged:
		return shellName(shard)
	case from == "":
		return "TO_" + shellName(to)
	case to == "":
		return shellName(from)
	default:
		return shellName(from) + "_TO_" + shellName(to)
	}
}

// shellName makes text part of a variable's name.
func shellName(text string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' {
			return r - 'a' + 'A'
		}
		if r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '_'
	}, text)
}

// shellQuote quotes text for a shell where it must be.
func shellQuote(text string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("/.:_-,", r)
	}
	if text != "" && strings.TrimFunc(text, plain) == "" {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}
