// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package sidecar

import (
	"strconv"
	"strings"

	"vitess.io/vitess/go/constants/sidecar"
	"vitess.io/vitess/go/sqltypes"

	binlogdatapb "vitess.io/vitess/go/vt/proto/binlogdata"
)

// The statements of this file change streams. They are not run here but handed to the VReplication
// engine (its Exec), which stops and starts its own goroutines around them.

// StopStreamsQuery stops streams and leaves message with them.
func StopStreamsQuery(ids []int32, message string) string {
	list := make([]string, len(ids))
	for i, id := range ids {
		list[i] = strconv.Itoa(int(id))
	}
	return "update " + sidecar.GetIdentifier() + ".vreplication set state = 'Stopped', message = " + sqltypes.EncodeStringSQL(message) +
		" where id in (" + strings.Join(list, ", ") + ")"
}

// RunStreamToQuery starts a stream that stops by itself at position.
func RunStreamToQuery(s *Stream, position, message string) string {
	return "update " + picker(s.Type) + sidecar.GetIdentifier() + ".vreplication set state = 'Running', stop_pos = " + sqltypes.EncodeStringSQL(position) +
		", message = " + sqltypes.EncodeStringSQL(message) + " where id = " + strconv.Itoa(int(s.ID))
}

// RestoreStreamQuery brings a stream back to the state it had before.
func RestoreStreamQuery(t binlogdatapb.VReplicationWorkflowType, before StreamState) string {
	return "update " + picker(t) + sidecar.GetIdentifier() + ".vreplication set state = " + sqltypes.EncodeStringSQL(before.State) +
		", stop_pos = " + sqltypes.EncodeStringSQL(before.StopPos) + ", message = " + sqltypes.EncodeStringSQL(before.Message) +
		" where id = " + strconv.Itoa(int(before.ID))
}

// picker is the comment that lets a stream of a Reshard read from shards that do not serve (any
// more), as they are after traffic has been switched.
func picker(t binlogdatapb.VReplicationWorkflowType) string {
	if t == binlogdatapb.VReplicationWorkflowType_Reshard {
		return "/*vt+ INCLUDE_NON_SERVING_TABLETS_IN_PLAN=1 */ "
	}
	return ""
}
