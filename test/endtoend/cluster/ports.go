// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
)

// localhost is where every daemon listens, and nowhere else.
const localhost = "127.0.0.1"

// portRange is where ports are looked for. The kernel takes ports of outgoing connections from the range in
// ip_local_port_range, by default 32768 and up, so those below stay free for a daemon that is started again.
func portRange() (low, high int) {
	low, high = 20000, 32700
	data, err := os.ReadFile("/proc/sys/net/ipv4/ip_local_port_range")
	if err != nil {
		return low, high
	}
	var from, to int
	if _, err := fmt.Sscan(string(data), &from, &to); err != nil {
		return low, high
	}
	switch {
	case from > low+2000:
		return low, min(high, from-1)
	case from > 8000:
		return from - 6000, from - 1
	case to < 60000:
		return to + 1, 65000
	default: // everything is ephemeral: then a clash is possible, and is noticed
		return low, high
	}
}

// portFree says whether a daemon could listen on the port now.
func portFree(port int) bool {
	l, err := net.Listen("tcp", addr(port))
	if err != nil {
		return false
	}
	return l.Close() == nil
}

// addr is the address of a port of this machine.
func addr(port int) string { return net.JoinHostPort(localhost, strconv.Itoa(port)) }

// takePort finds a free port that this cluster has not handed out yet. It is not held until the daemon binds it:
// another process may be faster, which the daemon's start notices (see launchWithPorts).
func (c *Cluster) takePort() (int, error) {
	low, high := portRange()
	for range 1000 {
		port := low + rand.IntN(high-low+1)
		c.mu.Lock()
		taken := c.ports[port]
		c.mu.Unlock()
		if taken || !portFree(port) {
			continue
		}
		c.mu.Lock()
		taken = c.ports[port]
		c.ports[port] = true
		c.mu.Unlock()
		if !taken {
			return port, nil
		}
	}
	return 0, fmt.Errorf("cluster: no free port between %d and %d", low, high)
}

// keepOrTakePorts replaces those of the ports that are not free (zero ones are new).
func (c *Cluster) keepOrTakePorts(ports ...*int) error {
	for _, p := range ports {
		if *p != 0 && portFree(*p) {
			continue
		}
		port, err := c.takePort()
		if err != nil {
			return err
		}
		*p = port
	}
	return nil
}
