package report

import (
	"vitess.io/vitess/go/vt/vttablet/tabletmanager/vdiff"
)

// Report is what is stored in _vt.vdiff_table.report: upstream's report and one key of our own.
type Report struct {
	vdiff.DiffReport
	// Truncated is true when samples were left out to keep the report within its bound. Counts are
	// always complete.
	Truncated bool `json:"Truncated,omitempty"`
}
