package bigtable

import (
	"context"
	"strings"
	"sync"

	"cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"cloud.google.com/go/bigtable/bttest"
	"google.golang.org/grpc"
)

// emulatorMessageBytes is the largest request that the emulator takes, as the service does.
const emulatorMessageBytes = 256 << 20

// Emulator is Google's emulator of Bigtable. Its rows are in memory, and end with it. What a request does is decided by Google's code; four things
// are changed on the way to it:
//
//   - It executes requests that exceed the service's limits. Here they are refused (emulatorlimits.go).
//   - It reads a row outside of the row's lock, so that a reader may miss a cell of a family that is being changed. Here changes wait for the readers
//     under way, and readers for changes.
//   - It answers a range by collecting and sorting all rows of the range, whatever the limit, and sends each row by itself. Here it is asked for
//     some rows by name at a time (emulatorscan.go), and rows are sent together, as the service does.
//   - It copies a row several times for a filter. Here the filters that percodb uses are computed from the row as it sends it (emulatorfilter.go); a row
//     of many versions is kept as it was sent, and changed as the emulator changes it (emulatorlong.go).
type Emulator struct {
	server *bttest.Server

	mu    sync.RWMutex
	names rowNames
}

// StartEmulator starts an emulator at HOST:PORT.
func StartEmulator(listen string) (*Emulator, error) {
	e := &Emulator{}
	var err error
	e.server, err = bttest.NewServer(listen, grpc.MaxRecvMsgSize(emulatorMessageBytes), grpc.MaxSendMsgSize(emulatorMessageBytes),
		grpc.UnaryInterceptor(e.unary), grpc.StreamInterceptor(e.stream))
	if err != nil {
		return nil, err
	}
	return e, nil
}

// Addr is where the emulator listens.
func (e *Emulator) Addr() string { return e.server.Addr }

// Close stops the emulator.
func (e *Emulator) Close() { e.server.Close() }

func (e *Emulator) unary(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	if err := checkLimits(req); err != nil {
		return nil, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	matched, decided := false, false
	if change, ok := req.(*bigtablepb.CheckAndMutateRowRequest); ok {
		matched, decided = e.names.decide(ctx, info.Server.(bigtablepb.BigtableServer), change)
	}
	res, err := handler(ctx, req)
	e.names.note(req, err)
	if res, ok := res.(*bigtablepb.CheckAndMutateRowResponse); ok && decided {
		res.PredicateMatched = matched
	}
	return res, err
}

func (e *Emulator) stream(srv any, ss grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
	_, method, _ := strings.Cut(strings.TrimPrefix(info.FullMethod, "/"), "/")
	server, ok := srv.(bigtablepb.BigtableServer)
	if !ok {
		return handler(srv, ss)
	}
	switch method {
	case "ReadRows":
		req := &bigtablepb.ReadRowsRequest{}
		if err := ss.RecvMsg(req); err != nil {
			return err
		}
		if err := checkLimits(req); err != nil {
			return err
		}
		return e.read(server, req, ss)
	case "MutateRows":
		req := &bigtablepb.MutateRowsRequest{}
		if err := ss.RecvMsg(req); err != nil {
			return err
		}
		if err := checkLimits(req); err != nil {
			return err
		}
		e.mu.Lock()
		defer e.mu.Unlock()
		err := server.MutateRows(req, &grpc.GenericServerStream[bigtablepb.MutateRowsRequest, bigtablepb.MutateRowsResponse]{ServerStream: ss})
		e.names.note(req, err)
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return handler(srv, ss)
}
