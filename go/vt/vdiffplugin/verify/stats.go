// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package verify

// Stats says how far a table is. Where ranges are counted, a table without order counts its buckets.
type Stats struct {
	// Rows is the target's rows in all ranges that are done: verified, settled, or so in the checkpoint.
	Rows int64
	// Verified is how many ranges were found equal, Splits how many were split, Fenced how many are left for the fence,
	// before neighbours are joined.
	Verified, Splits, Fenced int
	// Retrying is how many ranges wait for another comparison or are in one, Lanes how many are open or being walked,
	// InFlight the number of tasks.
	Retrying, Lanes, InFlight int
	// Read and Bytes is what was read on the target, again and again included, as told by Walked.
	Read, Bytes int64
}

// Stats returns how far a table is; nothing for one that is not there.
func (m *Machine) Stats(id TableID) Stats {
	t := m.tables[id]
	if t == nil {
		return Stats{}
	}
	stats := t.stats
	stats.Retrying = t.pending
	stats.Lanes = len(t.lanes)
	stats.InFlight = t.count[walking] + t.count[comparing]
	return stats
}
