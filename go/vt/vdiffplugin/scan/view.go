// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package scan

import (
	"fmt"
	"regexp"
	"slices"
	"time"

	"vitess.io/vitess/go/constants/sidecar"
	"vitess.io/vitess/go/mysql/replication"
	"vitess.io/vitess/go/sqltypes"
	"vitess.io/vitess/go/vt/binlog/binlogplayer"
	"vitess.io/vitess/go/vt/proto/binlogdata"
	"vitess.io/vitess/go/vt/vterrors"

	vtrpcpb "vitess.io/vitess/go/vt/proto/vtrpc"
)

// startSnapshot opens a read view that lasts until endSnapshot.
func (s *session) startSnapshot() error {
	return vterrors.Wrap(s.exec("start transaction with consistent snapshot, read only"), "open a read view")
}

func (s *session) endSnapshot() error {
	return vterrors.Wrap(s.exec("commit"), "close a read view")
}

// applyingStates are those of a stream whose position says which rows are there. One that a person has stopped stands still: its
// rows are those of its position all the same.
var applyingStates = []string{
	binlogdata.VReplicationWorkflowState_Running.String(), binlogdata.VReplicationWorkflowState_Stopped.String(), binlogdata.VReplicationWorkflowState_Lagging.String(),
}

// positions reads, in the session's read view, how far streams have come. vplayer writes a stream's position in the
// transaction that writes the rows: in one view both belong together. A stream that neither applies
// changes nor has been stopped while it did, or that has tables still to copy, is an error with code FAILED_PRECONDITION.
func (s *session) positions(db string, streams []int32) (map[int32]string, error) {
	name := sidecar.GetIdentifier()
	failed := func(format string, args ...any) (map[int32]string, error) {
		return nil, vterrors.Errorf(vtrpcpb.Code_FAILED_PRECONDITION, format, args...)
	}
	result, err := s.fetch(fmt.Sprintf("select id, pos, state from %s.vreplication where db_name = %s and id in (%s)",
		name, sqltypes.EncodeStringSQL(db), sqlIDs(streams)))
	if err != nil {
		return nil, vterrors.Wrap(err, "read the positions of streams")
	}
	positions := make(map[int32]string, len(streams))
	for _, row := range result.Rows {
		id, err := row[0].ToCastInt64()
		if err != nil {
			return nil, vterrors.Wrap(err, "read the positions of streams")
		}
		state := row[2].ToString()
		if !slices.Contains(applyingStates, state) {
			return failed("stream %d is in state %s", id, bounded(state))
		}
		position, err := binlogplayer.DecodePosition(row[1].ToString()) // it may be stored compressed
		if err != nil {
			return failed("stream %d has no position that can be read", id)
		}
		positions[int32(id)] = replication.EncodePosition(position)
	}
	for _, id := range streams {
		if _, ok := positions[id]; !ok {
			return failed("there is no stream %d", id)
		}
	}
	result, err = s.fetch(fmt.Sprintf("select distinct vrepl_id from %s.copy_state where vrepl_id in (%s)", name, sqlIDs(streams)))
	if err != nil {
		return nil, vterrors.Wrap(err, "read what streams have to copy")
	}
	if len(result.Rows) > 0 {
		return failed("stream %s has tables still to copy", result.Rows[0][0].ToString())
	}
	return positions, nil
}

// executed returns what the server has executed, as Vitess encodes it. A commit is there a moment later than its rows are
// visible, never earlier.
func (s *session) executed() (string, replication.Position, error) {
	position, err := s.conn.PrimaryPosition()
	if err != nil {
		return "", position, vterrors.Wrap(err, "read the executed position")
	}
	return replication.EncodePosition(position), position, nil
}

// visible returns a position that has every transaction whose rows a statement before could see: what is executed, and what is being
// committed. A transaction owns its GTID until that counts as executed, so that what is owned is asked for first.
func (s *session) visible() (string, error) {
	result, err := s.fetch("select @@global.gtid_owned")
	if err != nil {
		return "", vterrors.Wrap(err, "read what is being committed")
	}
	if len(result.Rows) != 1 {
		return "", errProtocol
	}
	encoded, position, err := s.executed()
	if err != nil {
		return "", err
	}
	return withOwned(encoded, position, result.Rows[0][0].ToString())
}

// owners are the threads in a value of gtid_owned, "uuid:gno#thread:gno#thread, uuid:gno#thread".
var owners = regexp.MustCompile(`(#[0-9]+)+`)

// withOwned adds what gtid_owned says to a position.
func withOwned(encoded string, position replication.Position, owned string) (string, error) {
	if owned == "" {
		return encoded, nil
	}
	set, err := replication.ParseMysql56GTIDSet(owners.ReplaceAllString(owned, ""))
	if err != nil {
		return "", vterrors.Wrap(err, "read what is being committed")
	}
	executed, ok := position.GTIDSet.(replication.Mysql56GTIDSet)
	if !ok {
		return "", vterrors.Errorf(vtrpcpb.Code_UNIMPLEMENTED, "the position is not one of MySQL's")
	}
	position.GTIDSet = executed.Union(set)
	return replication.EncodePosition(position), nil
}

// waitFor waits until the server has executed a position.
func (s *session) waitFor(encoded string, timeout time.Duration) error {
	position, err := replication.DecodePosition(encoded)
	if err != nil || position.IsZero() {
		return invalid("the position to wait for is malformed")
	}
	if flavor := position.GTIDSet.Flavor(); flavor != replication.Mysql56FlavorID {
		return vterrors.Errorf(vtrpcpb.Code_UNIMPLEMENTED, "there is no wait for positions of flavor %s", flavor)
	}
	_, now, err := s.executed()
	if err != nil {
		return err
	}
	if now.AtLeast(position) {
		return nil
	}
	late := func() error {
		return vterrors.Errorf(vtrpcpb.Code_DEADLINE_EXCEEDED, "the tablet has waited %v for its mysqld to execute position %s", timeout, summary(encoded))
	}
	if timeout < time.Millisecond { // 0 would be for ever
		return late()
	}
	result, err := s.fetch(fmt.Sprintf("select wait_for_executed_gtid_set('%s', %.3f)", position.GTIDSet.String(), timeout.Seconds()))
	if err != nil {
		return vterrors.Wrap(err, "wait for a position")
	}
	if len(result.Rows) != 1 || result.Rows[0][0].ToString() != "0" {
		return late()
	}
	return nil
}

// summary cuts a GTID set, which may be of any length, to what may stand in an error.
func summary(position string) string {
	const most = 300
	if len(position) > most {
		return position[:most] + "..."
	}
	return position
}
