// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package scanservice

import (
	"context"
	"crypto/tls"
	"os"
	"path/filepath"
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"vitess.io/vitess/go/vt/grpcclient"
	"vitess.io/vitess/go/vt/servenv"
	"vitess.io/vitess/go/vt/tlstest"
	"vitess.io/vitess/go/vt/vterrors"
	"vitess.io/vitess/go/vt/vttls"

	vtrpcpb "vitess.io/vitess/go/vt/proto/vtrpc"

	_ "vitess.io/vitess/go/vt/vttablet/grpctabletconn" // its flags are those of a tablet
)

// tabletFlags returns a vttablet's flag set with some of the --tablet-grpc-* flags given and the others empty: the
// variables behind them are global.
func tabletFlags(t *testing.T, args ...string) *pflag.FlagSet {
	t.Helper()
	fs := servenv.GetFlagSetFor("vttablet")
	empty := []string{"--tablet-grpc-cert=", "--tablet-grpc-key=", "--tablet-grpc-ca=", "--tablet-grpc-crl=", "--tablet-grpc-server-name="}
	require.NoError(t, fs.Parse(append(empty, args...)))
	t.Cleanup(func() { require.NoError(t, fs.Parse(empty)) })
	return fs
}

// Tests that a connection is secured as the --tablet-grpc-* flags of vttablet say: with the server's certificate
// verified and the client's shown, and refused when one of the two is not right or there is no TLS.
func TestTLS(t *testing.T) {
	noLeaks(t)
	pairs := tlstest.CreateClientServerCertPairs(t.TempDir())
	config, err := vttls.ServerConfig(pairs.ServerCert, pairs.ServerKey, pairs.ClientCA, "", "", tls.VersionTLS12)
	require.NoError(t, err)
	s := newService(t, answering(), Config{}, nil)
	tablet := serve(t, s.Register, grpc.Creds(credentials.NewTLS(config)))
	f := func(name string, ok bool, flags ...string) {
		t.Run(name, func(t *testing.T) {
			client := newTestClient(t, ClientConfig{Secure: FlagSecure(tabletFlags(t, flags...))})
			r, err := client.Reader(testContext(t), "uuid", tablet, false)
			if !ok {
				require.Error(t, err)
				require.NotErrorIs(t, err, ErrUnsupported)
				assert.Equal(t, vtrpcpb.Code_UNAVAILABLE, vterrors.Code(err))
				return
			}
			require.NoError(t, err)
			_, err = r.Digest(testContext(t), testCall(), nil)
			require.NoError(t, err)
		})
	}
	ca, name := "--tablet-grpc-ca="+pairs.ServerCA, "--tablet-grpc-server-name="+pairs.ServerName
	cert, key := "--tablet-grpc-cert="+pairs.ClientCert, "--tablet-grpc-key="+pairs.ClientKey
	f("right", true, ca, name, cert, key)
	f("no certificate of the client", false, ca, name)
	f("a certificate of the wrong CA", false, ca, name, "--tablet-grpc-cert="+pairs.ServerCert, "--tablet-grpc-key="+pairs.ServerKey)
	f("another name of the server", false, ca, "--tablet-grpc-server-name=other.example.com", cert, key)
	f("another CA of the server", false, "--tablet-grpc-ca="+pairs.ClientCA, name, cert, key)
	f("plain text", false)
}

// Tests that flags that are not known, or a certificate that is not there, are an error and not a connection in
// plain text.
func TestSecureNeedsFlags(t *testing.T) {
	tablet := testTablet()
	f := func(secure Secure, want string) {
		t.Helper()
		_, err := newTestClient(t, ClientConfig{Secure: secure}).Reader(testContext(t), "uuid", tablet, false)
		require.ErrorContains(t, err, want)
		assert.Equal(t, vtrpcpb.Code_FAILED_PRECONDITION, vterrors.Code(err))
	}
	f(FlagSecure(nil), "the flags of this process are not known")
	f(FlagSecure(pflag.NewFlagSet("x", pflag.ContinueOnError)), "no flag --tablet-grpc-cert")
	f(FlagSecure(tabletFlags(t, "--tablet-grpc-ca=/no/such/file")), "connecting to tablet zone1-0000000100")
	f(CommandSecure, "the flags of this process are not known")
	UseFlags(tabletFlags(t))
	t.Cleanup(func() { UseFlags(nil) })
	_, err := CommandSecure()
	require.NoError(t, err)
}

// Tests static authentication, with Vitess's plug-in on the server and its credentials file on the client: right, wrong
// and missing credentials.
func TestStaticAuth(t *testing.T) {
	noLeaks(t)
	dir := t.TempDir()
	write := func(name, content string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
		return path
	}
	servenv.RegisterGRPCServerAuthFlags()
	fs := servenv.GetFlagSetFor("any")
	require.NoError(t, fs.Parse([]string{"--grpc-auth-static-password-file=" + write("server", `[{"Username": "u", "Password": "right"}]`)}))
	plugin, err := servenv.GetAuthenticator("static")()
	require.NoError(t, err)
	s := newService(t, answering(), Config{}, nil)
	// As servenv builds them for the tablet's server.
	tablet := serve(t, s.Register,
		grpc.UnaryInterceptor(func(ctx context.Context, req any, info *grpc.UnaryServerInfo, h grpc.UnaryHandler) (any, error) {
			ctx, err := plugin.Authenticate(ctx, info.FullMethod)
			if err != nil {
				return nil, err
			}
			return h(ctx, req)
		}),
		grpc.StreamInterceptor(func(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, h grpc.StreamHandler) error {
			if _, err := plugin.Authenticate(stream.Context(), info.FullMethod); err != nil {
				return err
			}
			return h(srv, stream)
		}))
	f := func(name, creds string, want vtrpcpb.Code) {
		t.Run(name, func(t *testing.T) {
			flags := pflag.NewFlagSet("client", pflag.ContinueOnError)
			grpcclient.RegisterFlags(flags)
			path := ""
			if creds != "" {
				path = write("client", creds)
			}
			require.NoError(t, flags.Parse([]string{"--grpc-auth-static-client-creds=" + path}))
			grpcclient.ResetStaticAuth()
			defer func() {
				_ = flags.Parse([]string{"--grpc-auth-static-client-creds="})
				grpcclient.ResetStaticAuth()
			}()
			r, err := newTestClient(t, ClientConfig{}).Reader(testContext(t), "uuid", tablet, false)
			if want == vtrpcpb.Code_OK {
				require.NoError(t, err)
				_, err = r.Digest(testContext(t), testCall(), nil)
				require.NoError(t, err)
				return
			}
			require.Error(t, err)
			assert.Equal(t, want, vterrors.Code(err))
			require.NotErrorIs(t, err, ErrUnsupported)
		})
	}
	f("right", `{"Username": "u", "Password": "right"}`, vtrpcpb.Code_OK)
	f("wrong", `{"Username": "u", "Password": "wrong"}`, vtrpcpb.Code_PERMISSION_DENIED)
	f("missing", "", vtrpcpb.Code_UNAUTHENTICATED)
}
