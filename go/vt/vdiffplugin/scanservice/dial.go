// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package scanservice

import (
	"sync"

	"github.com/spf13/pflag"
	"google.golang.org/grpc"

	"vitess.io/vitess/go/netutil"
	"vitess.io/vitess/go/vt/grpcclient"
	"vitess.io/vitess/go/vt/vterrors"

	topodatapb "vitess.io/vitess/go/vt/proto/topodata"
	vtrpcpb "vitess.io/vitess/go/vt/proto/vtrpc"
)

// Secure returns how a connection to a tablet is secured. The credentials of --grpc-auth-static-client-creds are not
// its business: Vitess's grpcclient adds them to every connection.
type Secure func() (grpc.DialOption, error)

// FlagSecure returns a Secure that does as the --tablet-grpc-* flags say, with which a tablet connects to the query
// service of others, too. Vitess does not export the variables behind them, so they are read from a flag
// set that has the flags: the command's. A set that has not all of them is an error at each connection,
// not a connection in plain text. Certificates are read from their files each time.
func FlagSecure(fs *pflag.FlagSet) Secure {
	return func() (grpc.DialOption, error) {
		if fs == nil {
			return nil, vterrors.New(vtrpcpb.Code_FAILED_PRECONDITION, "the flags of this process are not known")
		}
		values := make(map[string]string)
		for _, name := range []string{"cert", "key", "ca", "crl", "server-name"} {
			f := fs.Lookup("tablet-grpc-" + name)
			if f == nil {
				return nil, vterrors.Errorf(vtrpcpb.Code_FAILED_PRECONDITION, "this process has no flag --tablet-grpc-%s", name)
			}
			values[name] = f.Value.String()
		}
		return grpcclient.SecureDialOption(values["cert"], values["key"], values["ca"], values["crl"], values["server-name"])
	}
}

// commandFlags is the flag set that FlagSecure reads in a vttablet.
var commandFlags struct {
	mu sync.Mutex
	fs *pflag.FlagSet
}

// UseFlags remembers the flag set of the process's command, parsed or not yet, for CommandSecure.
func UseFlags(fs *pflag.FlagSet) {
	commandFlags.mu.Lock()
	defer commandFlags.mu.Unlock()
	commandFlags.fs = fs
}

// CommandSecure is FlagSecure of the flag set of UseFlags.
func CommandSecure() (grpc.DialOption, error) {
	commandFlags.mu.Lock()
	fs := commandFlags.fs
	commandFlags.mu.Unlock()
	return FlagSecure(fs)()
}

// addressOf returns where a tablet's gRPC server listens.
func addressOf(tablet *topodatapb.Tablet) string {
	if port, ok := tablet.GetPortMap()["grpc"]; ok {
		return netutil.JoinHostPort(tablet.Hostname, port)
	}
	return tablet.GetHostname()
}
