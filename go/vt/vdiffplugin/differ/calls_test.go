// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package differ

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	topodatapb "vitess.io/vitess/go/vt/proto/topodata"
)

// waitObserver notes what is waited for, and for how long.
type waitObserver struct {
	silentObserver
	heldUp time.Duration
	waits  []string
}

func (o *waitObserver) HeldUp(d time.Duration) { o.heldUp += d }
func (o *waitObserver) Waiting(what string)    { o.waits = append(o.waits, what) }

// Tests that the time between two reports of a call counts as held up while the call says that it waits, and only then.
func TestHeldUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := &waitObserver{}
		progress := (&run{obs: o}).rowsProgress(&topodatapb.Tablet{Alias: &topodatapb.TabletAlias{Cell: "a", Uid: 1}})
		for _, why := range []string{"", "lag", "lag", "", "", "lag", ""} {
			progress(0, why)
			time.Sleep(time.Second) // of the bubble's clock
		}
		assert.Equal(t, 3*time.Second, o.heldUp)
		assert.Equal(t, []string{"", "tablet a-0000000001: lag", "tablet a-0000000001: lag", "", "", "tablet a-0000000001: lag", ""}, o.waits)
	})
}
