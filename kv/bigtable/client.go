package bigtable

import (
	"context"
	"errors"
	"fmt"
	"time"

	"cloud.google.com/go/bigtable"
	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"

	"github.com/percodb/percodb/internal/errkind"
	"github.com/percodb/percodb/kv/bigtable/widerow"
)

// Options name a table.
type Options struct {
	Project, Instance string
	// Table is the name of the table, "percodb" by default.
	Table string
	// AppProfile is the application profile, which must route to a single cluster; "" for the instance's default.
	AppProfile string
	// RequestTimeout is how long Bigtable may be silent about a request, DefaultRequestTimeout by default: until its answer, or the next message
	// of a scan.
	RequestTimeout time.Duration
	// Emulator is the address of an emulator, "" for Google's service with the credentials that Google's libraries find.
	Emulator string
	// RowsPerSecond is that of the ShardOptions of sessions.
	RowsPerSecond int
	// Registerer receives the metrics of requests; nil keeps them unregistered.
	Registerer prometheus.Registerer
}

// DefaultRequestTimeout is the default of Options.RequestTimeout.
const DefaultRequestTimeout = 15 * time.Second

func (o Options) withDefaults() Options {
	if o.RequestTimeout <= 0 {
		o.RequestTimeout = DefaultRequestTimeout
	}
	if o.Table == "" {
		o.Table = "percodb"
	}
	return o
}

// clientOptions are those of Google's client library: addresses, credentials, and the counting of requests.
func (o *Options) clientOptions(m *requestMetrics) []option.ClientOption {
	var opts []option.ClientOption
	for _, dial := range []grpc.DialOption{
		grpc.WithStatsHandler(m), grpc.WithChainStreamInterceptor(noteOffsets, boundStream), grpc.WithChainUnaryInterceptor(boundUnary),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: pingAfter, Timeout: deadAfter}),
		grpc.WithConnectParams(grpc.ConnectParams{MinConnectTimeout: connectTimeout, Backoff: reconnection}),
	} {
		opts = append(opts, option.WithGRPCDialOption(dial))
	}
	if o.Emulator == "" {
		return opts
	}
	return append(opts, EmulatorOptions(o.Emulator)...)
}

// EmulatorOptions are the options of Google's client library for an emulator.
func EmulatorOptions(addr string) []option.ClientOption {
	return []option.ClientOption{option.WithEndpoint(addr), option.WithoutAuthentication(),
		option.WithGRPCDialOption(grpc.WithTransportCredentials(insecure.NewCredentials()))}
}

// Client is a connection to a table. Safe for concurrent use.
type Client struct {
	opts    Options
	metrics *requestMetrics
	client  *bigtable.Client // nil: of a table that is not Bigtable's
	table   widerow.Table

	tableSize tableSize
	// identity is that of the table when the client was opened, "" if it has none.
	identity string
}

// NewClient returns a client of a table that is not Bigtable's, for tests.
func NewClient(t widerow.Table, requestTimeout time.Duration) *Client {
	return &Client{opts: Options{RequestTimeout: requestTimeout}.withDefaults(), metrics: newRequestMetrics(), table: t}
}

// Open connects to a table, which must exist: see CreateTable. A table of another format is refused.
func Open(ctx context.Context, opts Options) (*Client, error) {
	c, err := connect(ctx, opts)
	if err != nil {
		return nil, err
	}
	if err := patiently(ctx, func() error { return c.recognize(ctx) }); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// connect is Open of a table that may not exist.
func connect(ctx context.Context, opts Options) (*Client, error) {
	c := &Client{opts: opts.withDefaults(), metrics: newRequestMetrics(), tableSize: newTableSize()}
	var err error
	c.client, err = bigtable.NewClientWithConfig(ctx, opts.Project, opts.Instance, bigtable.ClientConfig{
		AppProfile: opts.AppProfile, MetricsProvider: bigtable.NoopMetricsProvider{}, DisableSession: true,
	}, c.opts.clientOptions(c.metrics)...)
	if err != nil {
		return nil, fmt.Errorf("connect to Bigtable: %w", err)
	}
	c.table = widerow.Open(c.client.Open(c.opts.Table))
	if err := c.metrics.register(opts.Registerer); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// Close closes the connection.
func (c *Client) Close() error {
	c.metrics.unregister(c.opts.Registerer)
	if c.client == nil {
		return nil
	}
	return c.client.Close()
}

// Requests returns how many requests of each kind have been sent, by the name of Bigtable's method.
func (c *Client) Requests() map[string]int64 { return c.metrics.counts() }

// readRow reads a row; it is nil if nothing of it passes the filter.
func (c *Client) readRow(ctx context.Context, row string, f widerow.Filter) (found widerow.Row, err error) {
	err = c.readRows(ctx, widerow.RowList{row}, f, widerow.ReadOptions{Limit: 1}, func(r widerow.Row) bool {
		found = r
		return true
	})
	return found, err
}

// readRows reads rows until visit returns false.
func (c *Client) readRows(ctx context.Context, rows widerow.RowSet, f widerow.Filter, o widerow.ReadOptions, visit func(widerow.Row) bool) error {
	r := c.beginRead(ctx)
	defer r.end()
	n := 0
	err := c.table.ReadRows(r.ctx, rows, f, o, func(row widerow.Row) bool {
		r.noteAnswer()
		n++
		return visit(row)
	})
	c.metrics.rowsRead.Add(float64(n))
	if list, ok := rows.(widerow.RowList); ok {
		n = len(list)
	}
	c.metrics.load.read(max(n, 1))
	return r.result(err)
}

// unless makes a change unless a filter matches, and reports whether it was made.
func (c *Client) unless(ctx context.Context, row string, f widerow.Filter, change *widerow.Mutation) (made bool, err error) {
	r := c.beginWrite(ctx)
	defer r.end()
	c.metrics.load.conditional()
	matched, err := c.table.CheckAndMutate(r.ctx, row, f, nil, change)
	if err = r.result(err); matched {
		c.metrics.conditionsFailed.Inc()
	}
	return !matched && err == nil, err
}

// onlyIf makes a change only if a filter matches, and reports whether it was made.
func (c *Client) onlyIf(ctx context.Context, row string, f widerow.Filter, change *widerow.Mutation) (made bool, err error) {
	r := c.beginWrite(ctx)
	defer r.end()
	c.metrics.load.conditional()
	made, err = c.table.CheckAndMutate(r.ctx, row, f, change, nil)
	if err = r.result(err); err == nil && !made {
		c.metrics.conditionsFailed.Inc()
	}
	return made && err == nil, err
}

// bulk makes unconditional changes.
func (c *Client) bulk(ctx context.Context, rows []string, changes []*widerow.Mutation) error {
	if len(rows) == 0 {
		return nil
	}
	r := c.beginWrite(ctx)
	defer r.end()
	c.metrics.load.write(len(rows))
	errs, err := c.table.Mutate(r.ctx, rows, changes)
	return r.result(errors.Join(err, errors.Join(errs...)))
}

// PermanentError is a refusal by Bigtable that another attempt does not change.
type PermanentError struct{ Err error }

func (e *PermanentError) Error() string {
	text := "Bigtable refuses a request: " + e.Err.Error()
	if status.Code(e.Err) == codes.NotFound {
		text += " (if the table was deleted, or its emulator started anew, start percodb again: it makes an empty table)"
	}
	return text
}
func (e *PermanentError) Unwrap() error { return e.Err }

// Kind implements errkind.Error.
func (e *PermanentError) Kind() errkind.Kind { return errkind.Refused }
