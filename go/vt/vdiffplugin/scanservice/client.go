// Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0

package scanservice

import (
	"context"
	"errors"
	"sync"
	"time"

	"google.golang.org/grpc"

	"vitess.io/vitess/go/vt/grpcclient"
	"vitess.io/vitess/go/vt/topo/topoproto"

	topodatapb "vitess.io/vitess/go/vt/proto/topodata"
	vtrpcpb "vitess.io/vitess/go/vt/proto/vtrpc"

	vdiffscanpb "github.com/vttablet-ext/vttablet-ext/proto/vdiffscan"
)

// ClientConfig says how a Client reaches tablets.
type ClientConfig struct {
	// Local and LocalReader, when set, are the tablet of this process and its Service: it is called without the
	// network.
	Local       *topodatapb.TabletAlias
	LocalReader Reader
	// Secure says how connections are secured. nil is CommandSecure.
	Secure Secure
	// Silence is how long a tablet may say nothing before a call is given up. 0 is DefaultSilence.
	Silence time.Duration
	// RememberUnsupported is how long a tablet that cannot be used is not asked again. 0 is
	// DefaultRememberUnsupported.
	RememberUnsupported time.Duration
}

// Defaults of ClientConfig. The tablet sends a message a second.
const (
	DefaultSilence             = 30 * time.Second
	DefaultRememberUnsupported = time.Minute
)

// Client reads tablets through their scan service. It has one connection to each, for all calls. It is safe for
// concurrent use.
type Client struct {
	config   ClientConfig
	versions versions
	traffic  Traffic

	mu          sync.Mutex
	closed      bool
	conns       map[string]*conn // by address, which is unique even where aliases are not (a mounted cluster)
	unsupported map[string]memory
}

// memory is what is remembered of a tablet that cannot be used.
type memory struct {
	err   error
	until time.Time
}

// conn is the connection to one tablet.
type conn struct {
	address string
	cc      *grpc.ClientConn
	service vdiffscanpb.VDiffScanClient
	calls   int // under Client.mu

	greeting chan struct{} // holds a token while somebody says hello
	protocol uint32        // what was agreed on, 0: nothing yet. Under Client.mu
}

// NewClient makes a Client. Close it.
func NewClient(c ClientConfig) *Client {
	if c.Secure == nil {
		c.Secure = CommandSecure
	}
	if c.Silence <= 0 {
		c.Silence = DefaultSilence
	}
	if c.RememberUnsupported <= 0 {
		c.RememberUnsupported = DefaultRememberUnsupported
	}
	return &Client{config: c, versions: ourVersions(), conns: make(map[string]*conn), unsupported: make(map[string]memory)}
}

// Reader returns a reader of a tablet, for the vdiff of that uuid. otherCluster says that the tablet is of a
// mounted cluster, where aliases are not this cluster's. The tablet's versions are agreed on first: an error that is
// ErrUnsupported says that there is no way, any other that the tablet cannot be reached now.
func (c *Client) Reader(ctx context.Context, uuid string, tablet *topodatapb.Tablet, otherCluster bool) (Reader, error) {
	if c.config.LocalReader != nil && !otherCluster && topoproto.TabletAliasEqual(tablet.Alias, c.config.Local) {
		return c.config.LocalReader, nil
	}
	r := &remote{client: c, tablet: tablet, uuid: uuid, where: "tablet " + topoproto.TabletAliasString(tablet.Alias), address: addressOf(tablet)}
	cn, _, err := r.connect(ctx)
	if err != nil {
		return nil, err
	}
	c.done(cn)
	return r, nil
}

// Traffic is what all calls of this client sent and received.
func (c *Client) Traffic() *Traffic { return &c.traffic }

// CloseIdle closes the connections that no call uses. Readers stay valid: they connect again.
func (c *Client) CloseIdle() {
	c.mu.Lock()
	var idle []*conn
	for address, cn := range c.conns {
		if cn.calls == 0 {
			delete(c.conns, address)
			idle = append(idle, cn)
		}
	}
	c.mu.Unlock()
	for _, cn := range idle {
		_ = cn.cc.Close()
	}
}

// Close closes all connections, which ends the calls that use them.
func (c *Client) Close() {
	c.mu.Lock()
	conns := c.conns
	c.conns, c.closed = make(map[string]*conn), true
	c.mu.Unlock()
	for _, cn := range conns {
		_ = cn.cc.Close()
	}
}

// conn returns the connection to an address, for one call: done has to be called. Nothing is sent yet.
func (c *Client) conn(ctx context.Context, address, where string) (*conn, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, &callError{code: vtrpcpb.Code_CANCELED, message: "the client of the scan service is closed"}
	}
	if m, ok := c.unsupported[address]; ok {
		if time.Now().Before(m.until) {
			return nil, m.err
		}
		delete(c.unsupported, address)
	}
	if cn := c.conns[address]; cn != nil {
		cn.calls++
		return cn, nil
	}
	failed := func(err error) error {
		return &callError{code: vtrpcpb.Code_FAILED_PRECONDITION, message: "connecting to " + where, cause: err}
	}
	secure, err := c.config.Secure()
	if err != nil {
		return nil, failed(err)
	}
	// This does not block: gRPC connects in the background, and calls fail if that fails.
	cc, err := grpcclient.DialContext(ctx, address, grpcclient.FailFast(true), secure, grpc.WithStatsHandler(trafficHandler{total: &c.traffic}))
	if err != nil {
		return nil, failed(err)
	}
	cn := &conn{address: address, cc: cc, service: vdiffscanpb.NewVDiffScanClient(cc), calls: 1, greeting: make(chan struct{}, 1)}
	c.conns[address] = cn
	return cn, nil
}

func (c *Client) done(cn *conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	cn.calls--
}

// agreed returns the protocol version of a connection, 0 when there is none yet.
func (c *Client) agreed(cn *conn) uint32 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return cn.protocol
}

func (c *Client) setAgreed(cn *conn, protocol uint32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	cn.protocol = protocol
}

// remember notes an error that is ErrUnsupported for the address, and that nothing is agreed on any more.
func (c *Client) remember(cn *conn, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	cn.protocol = 0
	if errors.Is(err, ErrUnsupported) {
		c.unsupported[cn.address] = memory{err: err, until: time.Now().Add(c.config.RememberUnsupported)}
	}
}
