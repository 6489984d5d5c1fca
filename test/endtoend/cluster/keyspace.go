// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
)

// Keyspace is what AddKeyspace makes.
type Keyspace struct {
	Name   string
	Shards []Shard
	// VSchema is the JSON for ApplyVSchema; none is applied when empty.
	VSchema string
	// Durability is the durability policy; "none" when empty.
	Durability string
}

// Shard is a shard of a new keyspace: a primary and what else it has.
type Shard struct {
	Name     string
	Replicas int
	RDOnly   int
	// Stock runs upstream's vttablet for all tablets of the shard.
	Stock bool
	// ExtraFlags are passed to each vttablet of the shard at each start.
	ExtraFlags []string
	// Cells are given to the tablets in turn, the primary's first; the first cell of the cluster when empty.
	Cells []string
}

// AddKeyspaces adds several keyspaces at the same time. Tablets are numbered in the order of the arguments.
func (c *Cluster) AddKeyspaces(ctx context.Context, keyspaces ...Keyspace) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, ks := range keyspaces {
		tablets := c.newTablets(ks.Name, ks.Shards)
		group.Go(func() error { return c.addKeyspace(ctx, ks, tablets) })
	}
	return group.Wait()
}

// AddKeyspace makes a keyspace with its shards and starts all tablets. When it returns, each shard has its first tablet
// as the primary and every tablet serves.
func (c *Cluster) AddKeyspace(ctx context.Context, ks Keyspace) error {
	return c.addKeyspace(ctx, ks, c.newTablets(ks.Name, ks.Shards))
}

// AddShards adds shards to a keyspace that exists, to reshard into for example.
func (c *Cluster) AddShards(ctx context.Context, keyspace string, shards ...Shard) error {
	return c.startShards(ctx, keyspace, c.newTablets(keyspace, shards))
}

// newTablets gives the tablets of new shards their aliases, in order. Nothing is started.
func (c *Cluster) newTablets(keyspace string, shards []Shard) [][]*Tablet {
	all := make([][]*Tablet, len(shards))
	for i, shard := range shards {
		cells := shard.Cells
		if len(cells) == 0 {
			cells = c.opts.Cells[:1]
		}
		for n := range 1 + shard.Replicas + shard.RDOnly {
			tabletType := "replica"
			if n > shard.Replicas {
				tabletType = "rdonly"
			}
			t := c.newTablet(keyspace, shard.Name, cells[n%len(cells)], tabletType)
			t.Stock, t.ExtraFlags = shard.Stock, shard.ExtraFlags
			all[i] = append(all[i], t)
		}
	}
	return all
}

func (c *Cluster) addKeyspace(ctx context.Context, ks Keyspace, tablets [][]*Tablet) error {
	started := time.Now()
	durability := ks.Durability
	if durability == "" {
		durability = "none"
	}
	if _, err := c.Vtctl(ctx, "CreateKeyspace", "--durability-policy", durability, ks.Name); err != nil {
		return err
	}
	if err := c.startShards(ctx, ks.Name, tablets); err != nil {
		return err
	}
	if ks.VSchema != "" {
		if _, err := c.Vtctl(ctx, "ApplyVSchema", "--vschema", ks.VSchema, ks.Name); err != nil {
			return err
		}
	}
	c.opts.Logf("keyspace %s is up after %v", ks.Name, time.Since(started).Round(time.Millisecond))
	return nil
}

// startShards starts the tablets of each shard; the first of a shard becomes its primary.
func (c *Cluster) startShards(ctx context.Context, keyspace string, shards [][]*Tablet) error {
	group, groupCtx := errgroup.WithContext(ctx)
	for _, tablets := range shards {
		group.Go(func() error { return c.startShard(groupCtx, tablets) })
	}
	if err := group.Wait(); err != nil {
		return err
	}
	_, err := c.Vtctl(ctx, "RebuildKeyspaceGraph", keyspace)
	return err
}

func (c *Cluster) startShard(ctx context.Context, tablets []*Tablet) error {
	group, groupCtx := errgroup.WithContext(ctx)
	for _, t := range tablets {
		group.Go(func() error { return t.create(groupCtx) })
	}
	if err := group.Wait(); err != nil {
		return err
	}
	if err := c.Reparent(ctx, tablets[0].Keyspace, tablets[0].Shard, tablets[0].Alias); err != nil {
		return err
	}
	for _, t := range tablets {
		if err := t.WaitServing(ctx); err != nil {
			return err
		}
	}
	return nil
}

// AddTablet adds one more tablet to a shard that has a primary, and waits until it serves.
func (c *Cluster) AddTablet(ctx context.Context, keyspace, shard, cell, tabletType string, stock bool) (*Tablet, error) {
	t := c.newTablet(keyspace, shard, cell, tabletType)
	t.Stock = stock
	if err := t.create(ctx); err != nil {
		return nil, err
	}
	return t, t.WaitServing(ctx)
}

// newTablet gives a tablet its alias. Nothing is started.
func (c *Cluster) newTablet(keyspace, shard, cell, tabletType string) *Tablet {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := &Tablet{c: c, UID: c.nextUID, Cell: cell, Keyspace: keyspace, Shard: shard, Type: tabletType}
	c.nextUID++
	t.Alias = tabletAlias(cell, t.UID)
	c.tablets[t.Alias] = t
	c.order = append(c.order, t)
	return t
}

// create makes the tablet's mysqld and starts both.
func (t *Tablet) create(ctx context.Context) error {
	if err := t.c.keepOrTakePorts(&t.MySQLPort); err != nil {
		return err
	}
	if err := t.c.initMySQL(ctx, t.UID, t.MySQLPort); err != nil {
		return fmt.Errorf("tablet %s: %w", t.Alias, err)
	}
	if err := t.StartMySQL(ctx); err != nil {
		return err
	}
	return t.Start(ctx)
}
