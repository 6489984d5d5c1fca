// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"
)

// launcher forks daemons from one OS thread that lives as long as the cluster. The kernel ties a parent death signal
// to the thread that forked, not to the process: forked from any thread of the Go runtime, a daemon would be
// killed whenever the runtime retires that thread.
type launcher struct {
	jobs chan func()
	once sync.Once
	done chan struct{}
}

func newLauncher() *launcher {
	l := &launcher{jobs: make(chan func()), done: make(chan struct{})}
	go func() {
		defer close(l.done)
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		for job := range l.jobs {
			job()
		}
	}()
	return l
}

// start forks cmd.
func (l *launcher) start(cmd *exec.Cmd) error {
	result := make(chan error)
	l.jobs <- func() { result <- cmd.Start() }
	return <-result
}

// close ends the thread. All daemons must have ended.
func (l *launcher) close() {
	l.once.Do(func() { close(l.jobs) })
	<-l.done
}

// process is one running daemon. It is a direct child of this process and waited for exactly once.
type process struct {
	name string
	cmd  *exec.Cmd
	log  string
	from int64 // size of the log file when the process started
	done chan struct{}
	err  error // valid once done is closed
}

// spawn starts a daemon with its output appended to log/<name>.log.
func (c *Cluster) spawn(name string, env []string, argv ...string) (*process, error) {
	path := c.logPath(name)
	log, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return nil, fmt.Errorf("cluster: start %s: %w", name, err)
	}
	defer log.Close()
	if err := c.own(path); err != nil { // mysqld opens its log again
		return nil, fmt.Errorf("cluster: start %s: %w", name, err)
	}
	from, err := log.Seek(0, 2)
	if err != nil {
		return nil, fmt.Errorf("cluster: start %s: %w", name, err)
	}
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Dir = c.dir
	cmd.Env = append(c.environ(), env...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: c.cred}
	if c.opts.StateFile != "" {
		cmd.SysProcAttr.Setsid = true
	} else {
		cmd.SysProcAttr.Setpgid = true
		cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	}
	if err := c.launcher.start(cmd); err != nil {
		return nil, fmt.Errorf("cluster: start %s: %w", name, err)
	}
	p := &process{name: name, cmd: cmd, log: path, from: from, done: make(chan struct{})}
	go func() {
		p.err = cmd.Wait()
		close(p.done)
	}()
	if err := c.recordProcess(p); err != nil {
		p.kill()
		return nil, err
	}
	c.mu.Lock()
	c.processes[p] = true
	c.mu.Unlock()
	return p, nil
}

// environ is what every daemon sees. It is made from scratch: the settings of the person who runs a test must
// not change what the daemons do.
func (c *Cluster) environ() []string {
	env := []string{
		"PATH=" + os.Getenv("PATH"),
		"HOME=" + c.dir,
		"TMPDIR=" + c.dir,
		"TZ=UTC",
		"LC_ALL=C",
		"VTDATAROOT=" + c.dir,
		"VT_MYSQL_ROOT=" + c.mysqlRoot,
		"EXTRA_MY_CNF=" + filepath.Join(c.dir, "extra.cnf"),
	}
	for _, kv := range os.Environ() {
		for _, pass := range []string{"GORACE=", "GODEBUG=", "GOTRACEBACK=", "GOMAXPROCS=", "GOCOVERDIR="} {
			if strings.HasPrefix(kv, pass) {
				env = append(env, kv)
			}
		}
	}
	return env
}

// run runs a short program as the daemons' user and returns an error that holds its output.
func (c *Cluster) run(ctx context.Context, argv ...string) error {
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Dir = c.dir
	cmd.Env = c.environ()
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: c.cred}
	cmd.WaitDelay = 5 * time.Second
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("cluster: %s: %w\n%s", strings.Join(argv, " "), err, tail(out, 40))
	}
	return nil
}

// pid is the process id of the daemon.
func (p *process) pid() int { return p.cmd.Process.Pid }

// alive says whether the process is still there.
func (p *process) alive() bool {
	if p == nil {
		return false
	}
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// kill sends SIGKILL and waits until the process is gone.
func (p *process) kill() {
	_ = p.cmd.Process.Kill() // an error says that it has ended already
	<-p.done
}

// term sends SIGTERM and waits until the process is gone. When the context ends first the process is killed.
func (p *process) term(ctx context.Context) error {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.done:
		return nil
	case <-ctx.Done():
		p.kill()
		return fmt.Errorf("cluster: %s did not end on SIGTERM: %w", p.name, ctx.Err())
	}
}

// output is what the process has written so far.
func (p *process) output() []byte {
	data, err := os.ReadFile(p.log)
	if err != nil || int64(len(data)) < p.from {
		return nil
	}
	return data[p.from:]
}

// ready polls until is says true; it fails at once, with the end of the log, when the process ends.
func (p *process) ready(ctx context.Context, is func(context.Context) bool) error {
	return WaitFor(ctx, p.name, 50*time.Millisecond, func(ctx context.Context) (bool, error) {
		if !p.alive() {
			return false, fmt.Errorf("%s ended early (%v); the end of %s:\n%s", p.name, p.err, p.log, tail(p.output(), 30))
		}
		return is(ctx), nil
	})
}

// launchWithPorts takes ports, starts a daemon that listens on them and waits until it is ready. If it ends because another
// process took one of the ports in between, other ports are tried.
func (c *Cluster) launchWithPorts(ctx context.Context, ports []*int, start func() (*process, error), is func(context.Context) bool) (*process, error) {
	for try := 1; ; try++ {
		if err := c.keepOrTakePorts(ports...); err != nil {
			return nil, err
		}
		p, err := start()
		if err != nil {
			return nil, err
		}
		err = p.ready(ctx, is)
		if err == nil {
			return p, nil
		}
		clash := !p.alive() && strings.Contains(strings.ToLower(string(p.output())), "address already in use")
		p.kill()
		if !clash || try == 5 {
			return nil, err
		}
		for _, port := range ports {
			*port = 0
		}
	}
}

// tail returns the last n lines.
func tail(data []byte, n int) string {
	lines := strings.Split(strings.TrimRight(string(data), "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
