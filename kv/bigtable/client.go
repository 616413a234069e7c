package bigtable

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"cloud.google.com/go/bigtable"
	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/percodb/percodb/internal/errkind"
	"github.com/percodb/percodb/kv"
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
	opts := []option.ClientOption{option.WithGRPCDialOption(grpc.WithStatsHandler(m)), option.WithGRPCDialOption(grpc.WithChainStreamInterceptor(noteOffsets))}
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
	if err := c.recognize(ctx); err != nil {
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

// request is a request under way, which is given up when Bigtable has been silent for too long.
type request struct {
	caller, ctx context.Context
	cancel      context.CancelFunc
	silence     *time.Timer // of a read
	timeout     time.Duration
}

// beginRead begins a read. Its context has no deadline, since rows may arrive for long: see heard.
func (c *Client) beginRead(ctx context.Context) *request {
	r := &request{caller: ctx, timeout: c.opts.RequestTimeout}
	r.ctx, r.cancel = context.WithCancel(asOperation(ctx, r.heard))
	r.silence = time.AfterFunc(r.timeout, r.cancel)
	return r
}

// beginWrite begins a write. Bigtable is told of its deadline, and executes it no later.
func (c *Client) beginWrite(ctx context.Context) *request {
	r := &request{caller: ctx, timeout: c.opts.RequestTimeout}
	r.ctx, r.cancel = context.WithTimeout(asOperation(ctx, nil), r.timeout)
	return r
}

// heard notes an answer to a read: rows, or the name of the row that a scan has reached without finding any, which Bigtable sends now and then.
func (r *request) heard() { r.silence.Reset(r.timeout) }

// failed returns the error of the request for its caller, nil if err is.
func (r *request) failed(err error) error {
	if err != nil && r.ctx.Err() != nil && r.caller.Err() == nil {
		return &kv.UnavailableError{Shard: kv.BigtableShardID, Err: fmt.Errorf("no answer within %v: %w", r.timeout, err)}
	}
	return mapError(r.caller, err)
}

// end ends the request. No error of it is asked for afterwards.
func (r *request) end() {
	if r.silence != nil {
		r.silence.Stop()
	}
	r.cancel()
}

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
		r.heard()
		n++
		return visit(row)
	})
	c.metrics.rowsRead.Add(float64(n))
	if list, ok := rows.(widerow.RowList); ok {
		n = len(list)
	}
	c.metrics.load.read(max(n, 1))
	return r.failed(err)
}

// unless makes a change unless a filter matches, and reports whether it was made.
func (c *Client) unless(ctx context.Context, row string, f widerow.Filter, change *widerow.Mutation) (made bool, err error) {
	r := c.beginWrite(ctx)
	defer r.end()
	c.metrics.load.conditional()
	matched, err := c.table.CheckAndMutate(r.ctx, row, f, nil, change)
	if err = r.failed(err); matched {
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
	if err = r.failed(err); err == nil && !made {
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
	return r.failed(errors.Join(err, errors.Join(errs...)))
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

// mapError gives Bigtable's errors the kinds of kv's.
func mapError(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	switch status.Code(err) {
	case codes.InvalidArgument, codes.NotFound, codes.PermissionDenied, codes.Unauthenticated, codes.FailedPrecondition, codes.Unimplemented:
		return &PermanentError{Err: err}
	case codes.Canceled:
		if strings.Contains(err.Error(), "client connection is closing") {
			return kv.ErrClosed
		}
	}
	return &kv.UnavailableError{Shard: kv.BigtableShardID, Err: err, Quota: status.Code(err) == codes.ResourceExhausted}
}
