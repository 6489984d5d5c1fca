// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

// Package scanservice puts the scan room of one tablet within reach of the others: a gRPC service on
// the tablet's own server, and the client of it.
//
// The Service stands before a reader whether it is called over the network or from this process, so
// that one limit of concurrency, one throttler and one set of metrics hold for both. Over the network it
// first checks what a stranger could get wrong: versions, the tablet that is meant, and every table,
// key and number in the request. It knows no workflow and no plan.
//
// Security is the server's: TLS, authentication and interceptors are those of the tablet's other
// services, and a client connects with the credentials of the --tablet-grpc-* flags. What can be read is what
// VStreamRows lets the same caller read: rows of tables of the tablet's database.
//
// Slow is told from dead by messages: while a call runs, the tablet sends one at least once a second
// from a goroutine that nothing holds up but the process and the connection. A client that hears
// nothing for much longer gives the call up as UNAVAILABLE. A call whose client is gone is cancelled by
// gRPC. A panic ends its call, not the tablet.
//
// Versions: both sides name the range of protocol versions that they speak, and the version of the digest.
// A digest is worth nothing if the two sides made it in different ways, so each request says again what was
// agreed on (the process behind a connection may be replaced) and unlike versions are refused. For its caller this is
// the same as a tablet without the service: the rows have to be had another way.
package scanservice
