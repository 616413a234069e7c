package bigtable

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"testing"

	"cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/percodb/percodb/internal/faultproxy"
	"github.com/percodb/percodb/internal/tsotest"
	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/kv/bigtable/widerow"
	"github.com/percodb/percodb/kv/mvcc"
)

// Goal: a read or an unconditional write that Bigtable does not answer at all is sent once: its caller has a budget for repetitions, and Google's library
// repeated it until the request timeout, four times as long. Method: count the requests at a proxy that answers in Bigtable's place.
func TestUnansweredRequestIsNotRepeated(t *testing.T) {
	proxy, opts := newProxy(t)
	if _, err := CreateTable(t.Context(), opts); err != nil {
		t.Fatal(err)
	}
	client, err := Open(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	change := widerow.NewMutation()
	change.Set(familyMeta, columnValue, []byte("v"))
	for method, do := range map[string]func() error{
		"ReadRows": func() error {
			_, err := client.readMeta(t.Context(), "some")
			return err
		},
		"MutateRow": func() error {
			return client.bulk(t.Context(), []string{metaRow("a")}, []*widerow.Mutation{change})
		},
		"MutateRows": func() error {
			return client.bulk(t.Context(), []string{metaRow("a"), metaRow("b")}, []*widerow.Mutation{change, change})
		},
		"SampleRowKeys": func() error {
			_, _, err := client.size(t.Context())
			return err
		},
	} {
		var requests atomic.Int32
		proxy.Inject(func(called string, _ []byte) faultproxy.Fault {
			if called != method {
				return faultproxy.Fault{}
			}
			requests.Add(1)
			return faultproxy.Fault{Err: faultproxy.ErrUnavailable}
		})
		err := do()
		proxy.Inject(nil)
		var unavailable *kv.UnavailableError
		if !errors.As(err, &unavailable) || status.Code(unavailable.Err) != codes.Unavailable || requests.Load() != 1 {
			t.Errorf("%s: %v after %d requests", method, err, requests.Load())
		}
		if err := do(); err != nil {
			t.Errorf("%s afterwards: %v", method, err)
		}
	}
}

// Goal: a process starts, and a table is checked, although Bigtable refuses a request for a moment: neither has a budget for repetitions. Method: a
// proxy refuses the first read of each.
func TestRefusedOnceOutsideOfStatements(t *testing.T) {
	proxy, opts := newProxy(t)
	if _, err := CreateTable(t.Context(), opts); err != nil {
		t.Fatal(err)
	}
	refuseOne := func() (refused *atomic.Int32) {
		refused = &atomic.Int32{}
		proxy.Inject(func(called string, _ []byte) faultproxy.Fault {
			if called != "ReadRows" || refused.Add(1) > 1 {
				return faultproxy.Fault{}
			}
			return faultproxy.Fault{Err: faultproxy.ErrUnavailable}
		})
		return refused
	}
	refused := refuseOne()
	client, err := Open(t.Context(), opts)
	if err != nil || refused.Load() < 2 {
		t.Fatalf("%v after %d reads", err, refused.Load())
	}
	defer client.Close()
	proxy.Inject(nil)
	shard, err := NewShard(t.Context(), client, ShardOptions{Oracle: &tsotest.ClockOracle{}})
	if err != nil {
		t.Fatal(err)
	}
	defer shard.Close()
	refused = refuseOne()
	if _, err := shard.Check(t.Context(), func(mvcc.Finding) error { return nil }, func(int64) {}); err != nil || refused.Load() < 2 {
		t.Errorf("%v after %d reads", err, refused.Load())
	}
}

// serve serves a service of the test's, and returns its address.
func serve(t *testing.T, service bigtablepb.BigtableServer) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	bigtablepb.RegisterBigtableServer(server, service)
	go server.Serve(listener)
	t.Cleanup(server.Stop)
	return listener.Addr().String()
}

// breakingTable is a service whose scans break off after each row.
type breakingTable struct {
	bigtablepb.UnimplementedBigtableServer
	requests atomic.Int32
	rows     []string
}

func (*breakingTable) PingAndWarm(context.Context, *bigtablepb.PingAndWarmRequest) (*bigtablepb.PingAndWarmResponse, error) {
	return &bigtablepb.PingAndWarmResponse{}, nil
}

func (b *breakingTable) ReadRows(req *bigtablepb.ReadRowsRequest, stream bigtablepb.Bigtable_ReadRowsServer) error {
	if len(req.Rows.GetRowKeys()) > 0 {
		return nil // The coordinator's row.
	}
	n := int(b.requests.Add(1)) - 1
	if n == len(b.rows) {
		return nil
	}
	cell := &bigtablepb.ReadRowsResponse_CellChunk{RowKey: []byte(b.rows[n]), Value: []byte("1"), RowStatus: &bigtablepb.ReadRowsResponse_CellChunk_CommitRow{CommitRow: true}}
	cell.FamilyName, cell.Qualifier = wrapperspb.String(familyLock), wrapperspb.Bytes([]byte("x"))
	if err := stream.Send(&bigtablepb.ReadRowsResponse{Chunks: []*bigtablepb.ReadRowsResponse_CellChunk{cell}}); err != nil {
		return err
	}
	return status.Error(codes.Unavailable, "as the test says")
}

// Goal: a scan that breaks off goes on where it was, in the same operation: the whole table could not be read otherwise. Method: a service that breaks off
// after each row.
func TestScanThatBreaksOffGoesOn(t *testing.T) {
	table := &breakingTable{rows: []string{"ka", "kb", "kc"}}
	client, err := Open(t.Context(), Options{Project: "p", Instance: "i", Emulator: serve(t, table)})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	var rows []string
	err = client.readRows(t.Context(), rowRanges([]kv.Span{{}}), wholeFamily(familyLock), widerow.ReadOptions{}, func(row widerow.Row) bool {
		rows = append(rows, row.Key())
		return true
	})
	if err != nil || len(rows) != len(table.rows) {
		t.Errorf("rows %q, %v", rows, err)
	}
}
