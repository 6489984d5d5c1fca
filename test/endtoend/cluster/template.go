// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"vitess.io/vitess/config"
	"vitess.io/vitess/go/mysql"
)

// templateUID is the tablet whose data directory is initialized and then copied. It never becomes a tablet.
const templateUID = 1

// smallLog keeps the template small. A tablet's mysqld makes its redo log as large as its my.cnf says.
const smallLog = "--innodb-redo-log-capacity=8M"

// dataDirs are the parts of a tablet's directory that mysqld's initialization fills.
var dataDirs = []string{"data", "innodb"}

// template returns a directory with an initialized data directory, made when there is none yet.
func (c *Cluster) template(ctx context.Context) (string, error) {
	c.templateMu.Lock()
	defer c.templateMu.Unlock()
	if c.templateDir != "" {
		return c.templateDir, nil
	}
	cached, err := c.templateCache(ctx)
	if err != nil {
		return "", err
	}
	if cached != "" {
		if f, err := os.Open(filepath.Join(cached, "data", "mysql.ibd")); err == nil { // there, and readable
			f.Close()
			c.templateDir = cached
			return cached, nil
		}
	}
	started := time.Now()
	if err := c.buildTemplate(ctx); err != nil {
		return "", fmt.Errorf("cluster: initialize MySQL: %w", err)
	}
	c.opts.Logf("initialized a MySQL data directory in %v", time.Since(started).Round(time.Millisecond))
	c.templateDir = filepath.Join(c.dir, tabletDir(templateUID))
	if cached != "" {
		if err := c.saveTemplate(cached); err != nil {
			c.opts.Logf("the data directory is not kept for the next cluster: %v", err)
		}
	}
	return c.templateDir, nil
}

// templateCache is where the template is kept from one cluster to the next: a name of its own for each version of
// MySQL and of what is done to it. Empty when there is no build directory.
func (c *Cluster) templateCache(ctx context.Context) (string, error) {
	if c.opts.LogDir == "" {
		return "", nil
	}
	out, err := exec.CommandContext(ctx, filepath.Join(c.opts.MySQLRoot, "bin", "mysqld"), "--no-defaults", "--version").Output()
	if err != nil {
		return "", fmt.Errorf("cluster: mysqld --version: %w", err)
	}
	_, version, _ := bytes.Cut(out, []byte("Ver ")) // what precedes it is the path of the program
	sum := sha256.New()
	fmt.Fprintf(sum, "%s\n%s\n%q\n%q\n%s", version, config.DefaultInitDB, testCnf, c.opts.MyCnf, smallLog)
	return filepath.Join(filepath.Dir(c.opts.LogDir), fmt.Sprintf("mysql-data-%x", sum.Sum(nil)[:6])), nil
}

// buildTemplate does what `mysqlctl init` does, but with mysqld as a child of this process.
func (c *Cluster) buildTemplate(ctx context.Context) error {
	if err := c.initConfig(ctx, templateUID, 0); err != nil {
		return err
	}
	if err := c.run(ctx, c.mysqldCommand(templateUID, "template-init", smallLog, "--initialize-insecure")...); err != nil {
		return err
	}
	p, err := c.spawn("mysqld-template", nil, c.mysqldCommand(templateUID, "mysqld-template", smallLog, "--skip-networking", "--skip-log-bin")...)
	if err != nil {
		return err
	}
	defer p.kill()
	socket := filepath.Join(c.dir, tabletDir(templateUID), "mysql.sock")
	var conn *mysql.Conn
	err = p.ready(ctx, func(ctx context.Context) bool {
		conn, err = connect(ctx, socket, "root", "")
		return err == nil
	})
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.SetMultiStatements(true); err != nil {
		return err
	}
	if err := conn.ExecuteFetchMultiDrain(config.DefaultInitDB); err != nil {
		return err
	}
	if err := p.term(ctx); err != nil {
		return err
	}
	// Every server writes a UUID of its own when it finds none.
	return os.Remove(filepath.Join(c.dir, tabletDir(templateUID), "data", "auto.cnf"))
}

// saveTemplate copies the template to the cache, which appears only when it is complete.
func (c *Cluster) saveTemplate(cached string) error {
	if err := os.MkdirAll(filepath.Dir(cached), 0o755); err != nil {
		return err
	}
	temp, err := os.MkdirTemp(filepath.Dir(cached), filepath.Base(cached)+".tmp-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(temp)
	for _, dir := range dataDirs {
		if err := copyTree(filepath.Join(c.templateDir, dir), filepath.Join(temp, dir), false, func(string) error { return nil }); err != nil {
			return err
		}
	}
	if err := os.Rename(temp, cached); err != nil && !errors.Is(err, os.ErrExist) {
		if _, statErr := os.Stat(cached); statErr == nil { // another process was faster
			return nil
		}
		return err
	}
	return nil
}

// initMySQL makes the directory of a tablet: my.cnf, and a copy of the template.
func (c *Cluster) initMySQL(ctx context.Context, uid, port int) error {
	template, err := c.template(ctx)
	if err != nil {
		return err
	}
	if err := c.initConfig(ctx, uid, port); err != nil {
		return err
	}
	for _, dir := range dataDirs {
		if err := copyTree(filepath.Join(template, dir), filepath.Join(c.dir, tabletDir(uid), dir), false, c.own); err != nil {
			return fmt.Errorf("cluster: copy the data directory: %w", err)
		}
	}
	return nil
}
