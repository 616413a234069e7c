package bigtable

import (
	"cloud.google.com/go/bigtable/bttest"
	"google.golang.org/grpc"
)

// emulatorMessageBytes is the largest request that the emulator takes, as the service does.
const emulatorMessageBytes = 256 << 20

// Emulator is Google's emulator of Bigtable. Its rows are in memory, and end with it.
type Emulator struct{ server *bttest.Server }

// StartEmulator starts an emulator at HOST:PORT.
func StartEmulator(listen string) (*Emulator, error) {
	server, err := bttest.NewServer(listen, grpc.MaxRecvMsgSize(emulatorMessageBytes), grpc.MaxSendMsgSize(emulatorMessageBytes))
	if err != nil {
		return nil, err
	}
	return &Emulator{server}, nil
}

// Addr is where the emulator listens.
func (e *Emulator) Addr() string { return e.server.Addr }

// Close stops the emulator.
func (e *Emulator) Close() { e.server.Close() }
