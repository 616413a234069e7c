package pgwire

import (
	"encoding/binary"
	"net"

	"github.com/percodb/percodb/internal/memory"
)

// meter counts the large messages of a client in the server's memory: from when their length is known,
// before space is made for them, until the next message begins. It follows the framing of what passes
// (55.2.1, 55.7); a message that does not fit ends the read with a *memory.ExceededError.
//
//	length, code, …        until the StartupMessage has come, then
//	type, length, …
type meter struct {
	net.Conn
	account memory.Account
	counted int64 // for the message at hand
	started bool  // typed messages come
	starts  bool  // with the body at hand the StartupMessage ends
	header  []byte
	body    int64 // bytes of the message at hand still to come
}

const (
	// largeMessageBytes is the size of the smallest message that is counted.
	largeMessageBytes = 32 << 10
	startHeaderBytes  = 8
	headerBytes       = 5
	// Codes of packets before the StartupMessage: cancel, TLS, GSS.
	firstRequestCode = 80877102
	lastRequestCode  = 80877104
)

func newMeter(c net.Conn, pool *memory.Pool) *meter {
	return &meter{Conn: c, account: memory.NewAccount(pool, 0), header: make([]byte, 0, startHeaderBytes)}
}

// Read implements net.Conn.
func (m *meter) Read(p []byte) (int, error) {
	n, err := m.Conn.Read(p)
	if n > 0 {
		if err := m.pass(p[:n]); err != nil {
			return 0, err
		}
	}
	return n, err
}

// pass follows b.
func (m *meter) pass(b []byte) error {
	for len(b) > 0 {
		if m.body > 0 {
			n := min(m.body, int64(len(b)))
			m.body -= n
			b = b[n:]
			continue
		}
		size := headerBytes
		if !m.started && !m.starts {
			size = startHeaderBytes
		}
		n := min(size-len(m.header), len(b))
		m.header = append(m.header, b[:n]...)
		b = b[n:]
		if len(m.header) < size {
			return nil
		}
		if err := m.begin(); err != nil {
			return err
		}
		m.header = m.header[:0]
	}
	return nil
}

// begin parses a complete header. pgproto3 validates the length.
func (m *meter) begin() error {
	if m.starts {
		m.started, m.starts = true, false
	}
	if !m.started {
		code := binary.BigEndian.Uint32(m.header[4:])
		m.starts = code < firstRequestCode || code > lastRequestCode
		m.body = max(int64(binary.BigEndian.Uint32(m.header))-startHeaderBytes, 0)
		return nil
	}
	m.body = max(int64(binary.BigEndian.Uint32(m.header[1:]))-4, 0)
	size := int64(0)
	if m.body >= largeMessageBytes && m.body <= maxMessageBytes {
		size = m.body
		if kind := m.header[0]; kind == 'Q' || kind == 'P' {
			size *= 2 // The text of a statement is copied out of the message.
		}
	}
	err := m.account.Resize(m.counted, size)
	if err == nil {
		m.counted = size
	}
	return err
}
