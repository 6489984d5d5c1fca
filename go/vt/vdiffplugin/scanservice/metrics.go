// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package scanservice

import "vitess.io/vitess/go/stats"

// metrics is registered once per process, when the package is loaded. Those of the service count calls from
// this process, too.
var metrics = newScanMetrics()

type scanMetrics struct {
	calls     *stats.CountersWithSingleLabel
	errors    *stats.CountersWithSingleLabel
	rows      *stats.Counter
	bytes     *stats.Counter
	throttled *stats.CounterDuration
	running   *stats.Gauge
	waiting   *stats.Gauge
	panics    *stats.Counter
	network   *stats.CountersWithSingleLabel
}

func newScanMetrics() *scanMetrics {
	return &scanMetrics{
		calls:     stats.NewCountersWithSingleLabel("VDiffPluginScanCalls", "Number of reads that vdiffs asked of this tablet", "method"),
		errors:    stats.NewCountersWithSingleLabel("VDiffPluginScanErrors", "Number of reads for vdiffs that failed or were cancelled", "method"),
		rows:      stats.NewCounter("VDiffPluginScanRows", "Number of rows that were read from this tablet's MySQL for vdiffs"),
		bytes:     stats.NewCounter("VDiffPluginScanBytes", "Bytes of rows that were read from this tablet's MySQL for vdiffs"),
		throttled: stats.NewCounterDuration("VDiffPluginScanThrottledTime", "Time that reads for vdiffs were held up by the tablet throttler"),
		running:   stats.NewGauge("VDiffPluginScanRunning", "Number of reads for vdiffs that are running or waiting on this tablet"),
		waiting:   stats.NewGauge("VDiffPluginScanWaiting", "Number of reads for vdiffs that wait for a free reader on this tablet"),
		panics:    stats.NewCounter("VDiffPluginScanPanics", "Number of panics in reads for vdiffs that were contained"),
		network:   stats.NewCountersWithSingleLabel("VDiffPluginScanNetworkBytes", "Bytes that the vdiffs of this tablet exchanged with the scan service of other tablets", "direction", "sent", "received"),
	}
}
