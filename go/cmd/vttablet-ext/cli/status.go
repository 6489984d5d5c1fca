// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package cli

import (
	"vitess.io/vitess/go/vt/servenv"
	"vitess.io/vitess/go/vt/topo/topoproto"
	"vitess.io/vitess/go/vt/vttablet/tabletmanager"
	"vitess.io/vitess/go/vt/vttablet/tabletmanager/vreplication"
	"vitess.io/vitess/go/vt/vttablet/tabletserver"

	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin"
)

// tabletFragment is the first part of the status page. Its classes are used by the parts of Vitess
// below it, which bring no style of their own.
const tabletFragment = `
<style>
  table { border-collapse: collapse; }
  th, td { border: 1px solid #999; padding: 0.5rem; vertical-align: top; }
  .time { width: 15%; }
  .healthy { background-color: LightGreen; }
  .unhappy { background-color: Khaki; }
  .unhealthy { background-color: Salmon; }
</style>
<table width="100%">
  <tr><th>Tablet</th>{{range .Links}}<th>{{.Title}}</th>{{end}}</tr>
  <tr>
    <td>
      Alias: {{.Alias}}<br>
      Keyspace: {{.Tablet.Keyspace}}<br>
      Shard: {{.Tablet.Shard}}<br>
      Type: {{.Tablet.Type}}<br>
      {{if .DeniedTables}}Denied tables:{{range .DeniedTables}} {{.}}{{end}}<br>{{end}}
      Version: {{.Version}}
    </td>
    {{range .Links}}
    <td>{{range .Pages}}<a href="{{.Path}}">{{.Text}}</a><br>{{end}}</td>
    {{end}}
  </tr>
</table>
`

type page struct{ Path, Text string }

type pageGroup struct {
	Title string
	Pages []page
}

// links leads to the pages that the query service serves.
var links = []pageGroup{
	{"Schema", []page{
		{"/schemaz", "Schema"},
		{"/debug/tablet_plans", "Query plans"},
		{"/debug/query_stats", "Query stats (JSON)"},
		{"/queryz", "Query stats"},
		{"/debug/tablet_vschema", "VSchema"},
	}},
	{"Activity", []page{
		{"/livequeryz/", "Live queries"},
		{"/querylogz", "Query log"},
		{"/txlogz", "Transaction log"},
		{"/twopcz", "Distributed transactions"},
		{"/debug/consolidations", "Consolidations"},
	}},
	{"Health", []page{
		{"/healthz", "Health check"},
		{"/debug/health", "Query service health"},
		{"/debug/status_details", "Status details (JSON)"},
		{"/debug/vars", "All metrics, throttler included (JSON)"},
		{"/debug/env", "Settings"},
	}},
}

// addStatusParts makes the status page: the tablet, the query service's health and state, the
// VReplication streams, and the vdiffs.
func addStatusParts(tm *tabletmanager.TabletManager, qsc tabletserver.Controller) {
	servenv.AddStatusPart("Tablet", tabletFragment, func() any {
		tablet := tm.Tablet()
		return map[string]any{
			"Alias":        topoproto.TabletAliasString(tablet.Alias),
			"Tablet":       tablet,
			"DeniedTables": tm.DeniedTables(),
			"Version":      versionText(),
			"Links":        links,
		}
	})
	qsc.AddStatusPart()
	vreplication.AddStatusPart()
	vdiffplugin.AddStatusPart()
}
