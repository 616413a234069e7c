package bigtable

import (
	"context"
	"strings"
	"sync"

	"cloud.google.com/go/bigtable/bttest"
	"google.golang.org/grpc"
)

// emulatorMessageBytes is the largest request that the emulator takes, as the service does.
const emulatorMessageBytes = 256 << 20

// Emulator is Google's emulator of Bigtable. Its rows are in memory, and end with it.
type Emulator struct{ server *bttest.Server }

// StartEmulator starts an emulator at HOST:PORT. It reads a row outside of the row's lock, so that a reader may miss a cell of a family that is being changed;
// here changes wait for the readers under way, and readers for changes.
func StartEmulator(listen string) (*Emulator, error) {
	var rows sync.RWMutex
	unary := func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		rows.Lock()
		defer rows.Unlock()
		return handler(ctx, req)
	}
	stream := func(srv any, ss grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
		if strings.HasSuffix(info.FullMethod, "/ReadRows") {
			rows.RLock()
			defer rows.RUnlock()
		} else {
			rows.Lock()
			defer rows.Unlock()
		}
		return handler(srv, ss)
	}
	server, err := bttest.NewServer(listen, grpc.MaxRecvMsgSize(emulatorMessageBytes), grpc.MaxSendMsgSize(emulatorMessageBytes),
		grpc.UnaryInterceptor(unary), grpc.StreamInterceptor(stream))
	if err != nil {
		return nil, err
	}
	return &Emulator{server}, nil
}

// Addr is where the emulator listens.
func (e *Emulator) Addr() string { return e.server.Addr }

// Close stops the emulator.
func (e *Emulator) Close() { e.server.Close() }
