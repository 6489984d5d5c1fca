// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"vitess.io/vitess/go/mysql"
	"vitess.io/vitess/go/sqltypes"
)

// testCnf is added to the my.cnf that Vitess writes. Nothing is forced to the disk: a killed mysqld loses nothing by that,
// since the operating system lives on. The double write buffer stays on: a kill can tear a page. Without the
// performance schema a server takes a third of the time to start and half of the memory; what Vitess reads of that
// schema (status, variables, replication) is there all the same. Options.MyCnf can turn it on.
var testCnf = []string{
	"bind-address = " + localhost,
	"innodb_flush_log_at_trx_commit = 2",
	"innodb_flush_method = nosync",
	"sync_binlog = 0",
	"innodb_use_native_aio = 0",
	"innodb_buffer_pool_size = 128M",
	"innodb_redo_log_capacity = 64M",
	"performance_schema = OFF",
}

// writeExtraCnf writes the file that mysqlctl appends to each my.cnf.
func (c *Cluster) writeExtraCnf() error {
	path := filepath.Join(c.dir, "extra.cnf")
	lines := append(append([]string(nil), testCnf...), c.opts.MyCnf...)
	if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")+"\n"), 0o644); err != nil {
		return fmt.Errorf("cluster: %w", err)
	}
	return c.own(path)
}

// initConfig has mysqlctl make the directories and the my.cnf of a tablet.
func (c *Cluster) initConfig(ctx context.Context, uid, port int) error {
	return c.run(ctx, filepath.Join(c.binDir, "mysqlctl"), "--log-format", "text",
		"--tablet-uid", strconv.Itoa(uid), "--mysql-port", strconv.Itoa(port), "init_config")
}

// mysqldCommand is the command line of the mysqld of a tablet. Its error log goes where spawn puts its output.
func (c *Cluster) mysqldCommand(uid int, log string, args ...string) []string {
	return append([]string{
		filepath.Join(c.mysqlRoot, "bin", "mysqld"),
		"--defaults-file=" + filepath.Join(c.dir, tabletDir(uid), "my.cnf"),
		"--basedir=" + c.mysqlRoot,
		"--log-error=" + c.logPath(log),
	}, args...)
}

// Socket is the path of the unix socket of the tablet's mysqld.
func (t *Tablet) Socket() string { return filepath.Join(t.c.dir, tabletDir(t.UID), "mysql.sock") }

// DBName is the database of the tablet's keyspace on its mysqld.
func (t *Tablet) DBName() string { return "vt_" + t.Keyspace }

// Writable are arguments of StartMySQL for the mysqld of a primary: by its my.cnf a mysqld starts read-only.
var Writable = []string{"--super-read-only=OFF", "--read-only=OFF"}

// StartMySQL starts the tablet's mysqld, with arguments that override its my.cnf, and waits until it answers. It
// recovers what a kill left.
func (t *Tablet) StartMySQL(ctx context.Context, args ...string) error {
	t.mu.Lock()
	running := t.mysqld.alive()
	t.mu.Unlock()
	if running {
		return fmt.Errorf("cluster: mysqld of %s runs already", t.Alias)
	}
	start := func() (*process, error) {
		// A killed mysqld leaves this, and a new one does not start when its old process id is in use again.
		if err := os.Remove(t.Socket() + ".lock"); err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, fmt.Errorf("cluster: %w", err)
		}
		return t.c.spawn("mysqld-"+t.Alias, nil, t.c.mysqldCommand(t.UID, "mysqld-"+t.Alias, append([]string{"--port=" + strconv.Itoa(t.MySQLPort)}, args...)...)...)
	}
	p, err := t.c.launchWithPorts(ctx, []*int{&t.MySQLPort}, start, func(ctx context.Context) bool {
		conn, err := connect(ctx, t.Socket(), "vt_dba", "")
		if err != nil {
			return false
		}
		conn.Close()
		return true
	})
	if err != nil {
		return err
	}
	t.mu.Lock()
	t.mysqld = p
	t.mu.Unlock()
	return nil
}

// KillMySQL kills mysqld with SIGKILL and waits until it is gone.
func (t *Tablet) KillMySQL() {
	if p := t.mysqldProcess(); p.alive() {
		p.kill()
	}
}

// TermMySQL shuts mysqld down with SIGTERM and waits until it is gone.
func (t *Tablet) TermMySQL(ctx context.Context) error {
	if p := t.mysqldProcess(); p.alive() {
		return p.term(ctx)
	}
	return nil
}

// SignalMySQL sends any signal to mysqld, SIGSTOP and SIGCONT for example.
func (t *Tablet) SignalMySQL(sig syscall.Signal) error {
	p := t.mysqldProcess()
	if !p.alive() {
		return fmt.Errorf("cluster: mysqld of %s does not run", t.Alias)
	}
	return p.cmd.Process.Signal(sig)
}

func (t *Tablet) mysqldProcess() *process {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.mysqld
}

// Conn connects to the tablet's mysqld as vt_dba, in the keyspace's database. The caller closes it.
func (t *Tablet) Conn(ctx context.Context) (*mysql.Conn, error) {
	return connect(ctx, t.Socket(), "vt_dba", t.DBName())
}

// Query runs one statement on a new connection and returns all of its rows.
func (t *Tablet) Query(ctx context.Context, sql string) (*sqltypes.Result, error) {
	return t.query(ctx, t.DBName(), []string{sql})
}

// Exec runs statements one after the other on one new connection.
func (t *Tablet) Exec(ctx context.Context, sqls ...string) error {
	_, err := t.query(ctx, t.DBName(), sqls)
	return err
}

// query runs statements on a connection that is closed when the context ends, and returns the last result.
func (t *Tablet) query(ctx context.Context, db string, sqls []string) (*sqltypes.Result, error) {
	conn, err := connect(ctx, t.Socket(), "vt_dba", db)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", t.Alias, err)
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, conn.Close)()
	var result *sqltypes.Result
	for _, sql := range sqls {
		if result, err = conn.ExecuteFetch(sql, 1<<30, true); err != nil {
			return nil, fmt.Errorf("%s: %w", t.Alias, errors.Join(err, ctx.Err()))
		}
	}
	return result, nil
}

func connect(ctx context.Context, socket, user, db string) (*mysql.Conn, error) {
	return mysql.Connect(ctx, &mysql.ConnParams{UnixSocket: socket, Uname: user, DbName: db})
}
