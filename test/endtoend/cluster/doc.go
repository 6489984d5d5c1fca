// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

// Package cluster runs a real Vitess cluster on this machine: etcd, vtctld, and for each tablet a mysqld and
// a vttablet (vttablet-ext, or the stock one). Tests, the demo, the benchmark and `make up` all use it.
//
// It is plain Go and starts every daemon itself, as a direct child, so that it owns each process id: a tablet or
// its mysqld can be killed at any moment and started again, and at the end each process is ended by its id.
// mysqlctl writes the my.cnf (it is the one of a production tablet plus a few lines), but does not run mysqld.
//
// Nothing is left behind. All state lives in one new directory below os.TempDir. In the normal mode every daemon
// asks the kernel to be killed when this process dies (a parent death signal; see launcher for why it needs a
// thread of its own), so that not even a killed test leaves a daemon. In the detached mode (Options.StateFile)
// the daemons are meant to survive: each is written to the state file before anything else is done with it, and
// EndDetached ends them by process id and start time.
//
// Vitess and MySQL refuse to run as root. When this process is root, each daemon runs as the user "nobody"; what
// that user could not reach (a checkout below /root, say) is linked or copied into the cluster's directory first.
//
// Ports are taken outside of the range from which the kernel picks ports for outgoing connections, so that a
// killed tablet finds its port still free when it starts again. A clash is noticed and other ports are tried.
//
// A new mysqld takes seconds to initialize. It is done once for a version of MySQL; the data directory is kept
// beside the binaries and copied for each tablet, without its auto.cnf, so that every server has its own UUID.
package cluster
