// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"syscall"
)

// What the kernel tells of TCP connections: the sock_diag family of netlink, as in sock_diag(7) and the header
// linux/inet_diag.h. Everyone may ask.
const (
	netlinkSockDiag   = 4
	sockDiagByFamily  = 20
	destroyedTCP      = 1 // the multicast group of IPv4 TCP sockets that are destroyed
	inetDiagInfo      = 2 // the attribute with tcp_info
	lengthOfDiagMsg   = 72
	offsetOfPorts     = 4
	offsetOfCookie    = 44
	offsetBytesAcked  = 120 // in tcp_info
	offsetBytesRecved = 128
	// connectedStates leaves out sockets that listen, and those that have ended and wait for stray packets.
	connectedStates = 1<<1 | 1<<2 | 1<<3 | 1<<4 | 1<<5 | 1<<8 | 1<<9 | 1<<11
)

// connection is one end of a TCP connection.
type connection struct {
	cookie uint64 // the kernel's name of it, never used again
	port   uint16 // of this end
	bytes  uint64 // of payload that it sent (and the peer has) and received
}

// connections are all ends of IPv4 TCP connections of this network namespace.
func connections() ([]connection, error) {
	fd, err := syscall.Socket(syscall.AF_NETLINK, syscall.SOCK_RAW|syscall.SOCK_CLOEXEC, netlinkSockDiag)
	if err != nil {
		return nil, fmt.Errorf("sock_diag: %w", err)
	}
	defer syscall.Close(fd)
	request := make([]byte, syscall.NLMSG_HDRLEN+56)
	binary.NativeEndian.PutUint32(request, uint32(len(request)))
	binary.NativeEndian.PutUint16(request[4:], sockDiagByFamily)
	binary.NativeEndian.PutUint16(request[6:], syscall.NLM_F_REQUEST|syscall.NLM_F_DUMP)
	body := request[syscall.NLMSG_HDRLEN:]
	body[0], body[1], body[2] = syscall.AF_INET, syscall.IPPROTO_TCP, 1<<(inetDiagInfo-1)
	binary.NativeEndian.PutUint32(body[4:], connectedStates)
	if err := syscall.Sendto(fd, request, 0, &syscall.SockaddrNetlink{Family: syscall.AF_NETLINK}); err != nil {
		return nil, fmt.Errorf("sock_diag: %w", err)
	}
	var all []connection
	buf := make([]byte, 1<<18)
	for {
		n, _, err := syscall.Recvfrom(fd, buf, 0)
		if err != nil {
			return nil, fmt.Errorf("sock_diag: %w", err)
		}
		done, err := parseDiag(buf[:n], func(c connection) { all = append(all, c) })
		if done || err != nil {
			return all, err
		}
	}
}

// watchDestroyed calls seen for each connection's end that is destroyed, with what it had counted, until the returned file is
// closed or its deadline is over; then done gets what went wrong, if anything did.
func watchDestroyed(seen func(connection)) (f *os.File, done <-chan error, err error) {
	fd, err := syscall.Socket(syscall.AF_NETLINK, syscall.SOCK_RAW|syscall.SOCK_CLOEXEC|syscall.SOCK_NONBLOCK, netlinkSockDiag)
	if err != nil {
		return nil, nil, fmt.Errorf("sock_diag: %w", err)
	}
	err = errors.Join(
		syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_RCVBUF, 4<<20),
		syscall.Bind(fd, &syscall.SockaddrNetlink{Family: syscall.AF_NETLINK, Groups: 1 << (destroyedTCP - 1)}))
	if err != nil {
		syscall.Close(fd)
		return nil, nil, fmt.Errorf("sock_diag: %w", err)
	}
	f = os.NewFile(uintptr(fd), "sock_diag")
	ended := make(chan error, 1)
	go func() {
		buf := make([]byte, 1<<18)
		for {
			n, err := f.Read(buf)
			if errors.Is(err, os.ErrClosed) || errors.Is(err, os.ErrDeadlineExceeded) {
				ended <- nil
				return
			}
			if err == nil {
				_, err = parseDiag(buf[:n], seen)
			}
			if err != nil {
				ended <- fmt.Errorf("sock_diag: %w", err)
				return
			}
		}
	}()
	return f, ended, nil
}

// parseDiag reads the messages of one packet. done says that a dump is complete.
func parseDiag(packet []byte, seen func(connection)) (done bool, err error) {
	messages, err := syscall.ParseNetlinkMessage(packet)
	if err != nil {
		return false, err
	}
	for _, m := range messages {
		switch {
		case m.Header.Type == syscall.NLMSG_DONE:
			return true, nil
		case m.Header.Type == syscall.NLMSG_ERROR:
			if len(m.Data) < 4 {
				return false, errors.New("an error without a number")
			}
			return false, syscall.Errno(-int32(binary.NativeEndian.Uint32(m.Data)))
		case m.Header.Type == sockDiagByFamily && len(m.Data) >= lengthOfDiagMsg:
			if c, ok := parseConnection(m.Data); ok {
				seen(c)
			}
		}
	}
	return false, nil
}

// parseConnection reads an inet_diag_msg and its attributes; ok says that there are counters in it.
func parseConnection(data []byte) (c connection, ok bool) {
	c.port = binary.BigEndian.Uint16(data[offsetOfPorts:])
	c.cookie = binary.NativeEndian.Uint64(data[offsetOfCookie:])
	for rest := data[lengthOfDiagMsg:]; len(rest) >= 4; {
		length := int(binary.NativeEndian.Uint16(rest))
		if length < 4 || length > len(rest) {
			break
		}
		if info := rest[4:length]; binary.NativeEndian.Uint16(rest[2:]) == inetDiagInfo && len(info) >= offsetBytesRecved+8 {
			c.bytes = binary.NativeEndian.Uint64(info[offsetBytesAcked:]) + binary.NativeEndian.Uint64(info[offsetBytesRecved:])
			ok = true
		}
		rest = rest[min(len(rest), (length+3)&^3):]
	}
	return c, ok
}
