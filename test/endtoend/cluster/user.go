// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
)

// unprivileged is the user that daemons run as when this process is root; nil when it is not.
func unprivileged() *syscall.Credential {
	if os.Geteuid() != 0 {
		return nil
	}
	cred := &syscall.Credential{Uid: 65534, Gid: 65534}
	if nobody, err := user.Lookup("nobody"); err == nil {
		if uid, err := strconv.ParseUint(nobody.Uid, 10, 32); err == nil && uid != 0 {
			cred.Uid = uint32(uid)
		}
		if gid, err := strconv.ParseUint(nobody.Gid, 10, 32); err == nil && gid != 0 {
			cred.Gid = uint32(gid)
		}
	}
	return cred
}

// own gives a file or directory of the cluster to the user that the daemons run as.
func (c *Cluster) own(path string) error {
	if c.cred == nil {
		return nil
	}
	return os.Lchown(path, int(c.cred.Uid), int(c.cred.Gid))
}

// mkdir makes a directory below the cluster's, owned by the daemons' user.
func (c *Cluster) mkdir(elem ...string) (string, error) {
	path := filepath.Join(append([]string{c.dir}, elem...)...)
	if err := os.MkdirAll(path, 0o700); err != nil {
		return "", fmt.Errorf("cluster: %w", err)
	}
	return path, c.own(path)
}

// stage returns a place from which the daemons' user can run what is below dir: dir itself when it can reach
// probe there, else a tree of links or copies in the cluster's directory.
func (c *Cluster) stage(dir, name, probe string) (string, error) {
	if c.cred == nil {
		return dir, nil
	}
	test := exec.Command("test", "-x", filepath.Join(dir, probe), "-a", "-r", filepath.Join(dir, probe))
	test.Dir = "/"
	test.SysProcAttr = &syscall.SysProcAttr{Credential: c.cred}
	err := test.Run()
	if err == nil {
		return dir, nil
	}
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return "", fmt.Errorf("cluster: cannot run anything as uid %d: %w", c.cred.Uid, err)
	}
	staged := filepath.Join(c.dir, name)
	if err := copyTree(dir, staged, true, func(path string) error { return c.own(path) }); err != nil {
		return "", fmt.Errorf("cluster: %w", err)
	}
	return staged, nil
}

// copyTree copies regular files, directories and symbolic links. With link, files are hard links where the file
// system allows that, and keep their owner; all that is newly made is handed to made.
func copyTree(from, to string, link bool, made func(string) error) error {
	return filepath.WalkDir(from, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		target := filepath.Join(to, rel)
		switch {
		case entry.IsDir():
			if err := os.MkdirAll(target, 0o755); err != nil {
				return err
			}
		case entry.Type()&fs.ModeSymlink != 0:
			dest, err := os.Readlink(path)
			if err != nil {
				return err
			}
			if err := os.Symlink(dest, target); err != nil {
				return err
			}
		case entry.Type().IsRegular():
			if link && os.Link(path, target) == nil {
				return nil
			}
			if err := copyFile(path, target); err != nil {
				return err
			}
		default: // a socket or the like: nothing that a copy could use
			return nil
		}
		return made(target)
	})
}

// copyFile copies one regular file with its permissions.
func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		return err
	}
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, info.Mode().Perm())
	if err != nil {
		return err
	}
	if _, err := io.Copy(out, in); err != nil {
		out.Close()
		return err
	}
	return out.Close()
}
