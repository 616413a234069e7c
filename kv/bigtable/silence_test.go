package bigtable

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/percodb/percodb/internal/tsotest"
	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/kv/bigtable/widerow"
)

// slowTable is a service whose scans find nothing for long: it sends the names of the rows that it has passed, then one row.
type slowTable struct {
	bigtablepb.UnimplementedBigtableServer
	passes int
	pause  time.Duration
}

func (s *slowTable) PingAndWarm(context.Context, *bigtablepb.PingAndWarmRequest) (*bigtablepb.PingAndWarmResponse, error) {
	return &bigtablepb.PingAndWarmResponse{}, nil
}

func (s *slowTable) ReadRows(_ *bigtablepb.ReadRowsRequest, stream bigtablepb.Bigtable_ReadRowsServer) error {
	for i := range s.passes {
		if err := stream.Send(&bigtablepb.ReadRowsResponse{LastScannedRowKey: []byte{'k', byte(i)}}); err != nil {
			return err
		}
		time.Sleep(s.pause) // The time of a scan.
	}
	cell := &bigtablepb.ReadRowsResponse_CellChunk{RowKey: []byte("kz"), Value: []byte("1"), RowStatus: &bigtablepb.ReadRowsResponse_CellChunk_CommitRow{CommitRow: true}}
	cell.FamilyName, cell.Qualifier = wrapperspb.String(familyLock), wrapperspb.Bytes([]byte("x"))
	return stream.Send(&bigtablepb.ReadRowsResponse{Chunks: []*bigtablepb.ReadRowsResponse_CellChunk{cell}})
}

// Goal: a scan that finds no row for longer than the timeout of a request ends with its rows, as long as Bigtable says that it goes on: otherwise a
// table of which little passes a filter, as when locks are looked for, could never be read to its end. Method: a service that names the rows that
// it passes for twice the timeout.
func TestScanThatFindsNothingForLong(t *testing.T) {
	const timeout = time.Second
	addr := serve(t, &slowTable{passes: 20, pause: timeout / 10})
	client, err := Open(t.Context(), Options{Project: "p", Instance: "i", Emulator: addr, RequestTimeout: timeout})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	found := 0
	err = client.readRows(t.Context(), rowRanges([]kv.Span{{}}), wholeFamily(familyLock), widerow.ReadOptions{}, func(widerow.Row) bool {
		found++
		return true
	})
	if err != nil || found != 1 {
		t.Errorf("%d rows, %v", found, err)
	}
}

// Goal: the emulator says, too, that a scan which finds nothing goes on. Method: count the messages of a scan for locks of a table without any.
func TestEmulatorNamesRowsThatItPasses(t *testing.T) {
	e := newEmulated(t, &tsotest.ClockOracle{})
	rows, changes := make([]string, 3*emulatorAsks), make([]*widerow.Mutation, 3*emulatorAsks)
	for i := range rows {
		rows[i], changes[i] = rowKey(fmt.Appendf(nil, "%05d", i)), widerow.NewMutation()
		changes[i].Set(familyWrite, inverted(1), []byte("1"))
	}
	if err := e.client.bulk(t.Context(), rows, changes); err != nil {
		t.Fatal(err)
	}
	var messages atomic.Int32
	ctx := asOperation(t.Context(), &operation{heard: func() { messages.Add(1) }})
	err := e.client.table.ReadRows(ctx, rowRanges([]kv.Span{{}}), wholeFamily(familyLock), widerow.ReadOptions{}, func(row widerow.Row) bool {
		t.Errorf("row %s", row.Key())
		return true
	})
	if n := messages.Load(); err != nil || n < 3 {
		t.Errorf("%d messages, %v", n, err)
	}
}
