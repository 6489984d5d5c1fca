// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/vttablet-ext/vttablet-ext/test/endtoend/cluster"
)

// observation is everything that is measured while one vdiff runs.
type observation struct {
	watch                    *watch
	sourceViews, targetViews *views
	usage                    *usage
	traffic                  *traffic
}

// observe prepares the measurements. The processes must be those that the vdiff will use.
func (b *bench) observe(ctx context.Context, s scenario, w *cluster.Workflow) (o *observation, err error) {
	targets, sources := b.primaries(s.to), b.primaries(s.from)
	o = &observation{}
	defer func() {
		if err != nil {
			o.close()
		}
	}()
	if o.watch, err = newWatch(ctx, w, targets); err != nil {
		return nil, err
	}
	if o.sourceViews, err = newViews(ctx, sources); err != nil {
		return nil, err
	}
	if o.targetViews, err = newViews(ctx, targets); err != nil {
		return nil, err
	}
	if o.usage, err = newUsage(targets, sources); err != nil {
		return nil, err
	}
	var ports []int
	for _, t := range append(sources, targets...) {
		ports = append(ports, t.GRPCPort)
	}
	o.traffic, err = newTraffic(ports)
	return o, err
}

func (o *observation) close() {
	if o.watch != nil {
		o.watch.close()
	}
	for _, v := range []*views{o.sourceViews, o.targetViews} {
		if v != nil {
			v.close()
		}
	}
	if o.traffic != nil {
		_, _ = o.traffic.stop() // a second time after run: nothing is left to tell
	}
}

// run calls create, follows the vdiff to its end and returns what was measured, and the vdiff's UUID.
func (o *observation) run(ctx context.Context, create func(context.Context) (string, error)) (m Measurement, id string, err error) {
	group, groupCtx := errgroup.WithContext(ctx)
	viewsCtx, stopViews := context.WithCancel(groupCtx)
	defer stopViews()
	for _, v := range []*views{o.sourceViews, o.targetViews} {
		group.Go(func() error { return v.run(viewsCtx) })
	}
	started := time.Now()
	group.Go(func() (err error) {
		id, err = create(groupCtx)
		return err
	})
	group.Go(func() error {
		defer stopViews()
		return o.watch.run(groupCtx, o.usage.sample)
	})
	if err := group.Wait(); err != nil {
		return m, id, err
	}
	if m, err = o.usage.since(); err != nil {
		return m, id, err
	}
	if m.GRPCBytes, err = o.traffic.stop(); err != nil {
		return m, id, err
	}
	m.Seconds = seconds(o.watch.ended.Sub(started))
	m.Stopped, m.LongestStop, m.Stops = seconds(o.watch.stopped), seconds(o.watch.longestStop), o.watch.stops
	m.ViewSource, m.ViewTarget = seconds(o.sourceViews.longest), seconds(o.targetViews.longest)
	return m, id, nil
}
