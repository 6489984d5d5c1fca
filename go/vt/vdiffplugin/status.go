// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package vdiffplugin

import (
	"sync/atomic"

	"vitess.io/vitess/go/vt/servenv"

	"github.com/vttablet-ext/vttablet-ext/go/vt/vdiffplugin/engine"
)

// liveLister is an engine that can tell its vdiffs.
type liveLister interface {
	LiveVDiffs() []engine.Live
}

var _ liveLister = (*engine.Engine)(nil)

// installed is the driver of the last Install, for the status page. nil: none, or switched off.
var installed atomic.Pointer[driver]

const statusFragment = `
<p>{{.Engine}}</p>
{{if .VDiffs}}
<table>
  <tr><th>UUID</th><th>Workflow</th><th>State</th><th>Waits for</th><th>Rows compared</th><th>Last error</th></tr>
  {{range .VDiffs}}
  <tr><td>{{.UUID}}</td><td>{{.Workflow}}</td><td>{{.State}}</td><td>{{.Waiting}}</td><td>{{.RowsCompared}}</td><td>{{.LastError}}</td></tr>
  {{end}}
</table>
{{end}}
`

type statusData struct {
	Engine string
	VDiffs []engine.Live
}

// AddStatusPart adds the vdiffs of the plug-in to the status page. It is called once, like its
// namesakes of Vitess, when the page has the parts that should stand above.
func AddStatusPart() {
	servenv.AddStatusPart("VDiff plug-in", statusFragment, func() any { return installed.Load().status() })
}

func (d *driver) status() statusData {
	if d == nil {
		return statusData{Engine: "Off: the stock VDiff engine runs."}
	}
	d.mu.Lock()
	e, buildErr, primary, ended, busy := d.engine, d.buildErr, d.primary, d.ended, d.idle != nil
	d.mu.Unlock()
	var s statusData
	switch {
	case buildErr != nil:
		s.Engine = "The engine could not be built: " + buildErr.Error()
		return s
	case ended:
		s.Engine = "Closed: the tablet is shutting down."
	case !primary:
		s.Engine = "Closed: the tablet is not PRIMARY."
	case busy:
		s.Engine = "Opening."
	default:
		s.Engine = "The tablet is PRIMARY."
	}
	if l, ok := e.(liveLister); ok {
		s.VDiffs = l.LiveVDiffs()
	}
	return s
}
