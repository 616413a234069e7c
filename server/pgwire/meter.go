package pgwire

import (
	"bytes"
	"encoding/binary"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/percodb/percodb/internal/memory"
	"github.com/percodb/percodb/sql/pgerror"
)

// meter counts the large messages of a client in the server's memory: from when their length is known,
// before space is made for them, until the next message begins. It follows the framing of what passes
// (55.2.1, 55.7). A message that does not fit, or is longer than any may be, is taken from the connection and
// not passed on: Read returns a *refusedMessage in its place, and goes on with the next one. The packets of the startup phase
// do not pass it.
type meter struct {
	read    func(p []byte) (int, error) // from the connection
	account memory.Account
	counted int64 // for the message at hand
	body    int64 // bytes of the message at hand still to come
	// held is what was read and not passed on: the beginning of a header, or of a refused message and what follows.
	held    []byte
	refused *refusedMessage // comes next; nil: another message
}

// refusedMessage is the error in the place of a message that was not read.
type refusedMessage struct {
	kind byte // its type
	why  error
}

func (e *refusedMessage) Error() string { return e.why.Error() }
func (e *refusedMessage) Unwrap() error { return e.why }

const (
	// largeMessageBytes is the size of the smallest message that is counted.
	largeMessageBytes = 32 << 10
	headerBytes       = 5
	// discardBytes is the size of the buffer that a refused message is read into.
	discardBytes = 64 << 10
)

func newMeter(read func(p []byte) (int, error), pool *memory.Pool) *meter {
	return &meter{read: read, account: memory.NewAccount(pool, 0)}
}

// Read implements io.Reader. The reader gets no part of a header: where one is incomplete, or its message refused, it has
// read whole messages, and can go on behind an error.
func (m *meter) Read(p []byte) (int, error) {
	if m.refused != nil {
		return 0, m.discard()
	}
	n := copy(p, m.held)
	m.held = m.held[:copy(m.held, m.held[n:])]
	ready := m.pass(p[:n])
	for ready == 0 && m.refused == nil {
		if n == len(p) {
			return 0, io.ErrShortBuffer
		}
		read, err := m.read(p[n:])
		if read == 0 && err != nil {
			m.held = append(bytes.Clone(p[:n]), m.held...)
			return 0, err
		}
		n += read
		ready = m.pass(p[:n])
	}
	if ready < n {
		m.held = append(bytes.Clone(p[ready:n]), m.held...)
	}
	if ready == 0 {
		return 0, m.discard()
	}
	return ready, nil
}

// discard reads a refused message, header included, to its end and returns the error in its place. After a timeout it goes on.
func (m *meter) discard() error {
	for m.body > 0 {
		if len(m.held) == 0 {
			m.held = slices.Grow(m.held, discardBytes)
			n, err := m.read(m.held[:discardBytes])
			if n == 0 && err != nil {
				return err
			}
			m.held = m.held[:n]
		}
		n := min(m.body, int64(len(m.held)))
		m.body -= n
		m.held = m.held[n:]
	}
	err := m.refused
	m.refused, m.held = nil, bytes.Clone(m.held)
	return err
}

// pass follows b up to a header that is incomplete, or whose message is refused, and returns the length of what comes
// before it.
func (m *meter) pass(b []byte) int {
	at := 0
	for at < len(b) {
		if m.body > 0 {
			n := min(m.body, int64(len(b)-at))
			m.body -= n
			at += int(n)
			continue
		}
		if m.counted == 0 && len(b)-at >= headerBytes { // nearly all messages: nothing to count
			if length := int64(binary.BigEndian.Uint32(b[at+1:])); length >= 4 && length < largeMessageBytes {
				m.body = length - 4
				at += headerBytes
				continue
			}
		}
		if len(b)-at < headerBytes {
			return at
		}
		if err := m.begin(b[at : at+headerBytes]); err != nil {
			m.refused = &refusedMessage{kind: b[at], why: err}
			m.body += headerBytes
			return at
		}
		at += headerBytes
	}
	return at
}

// begin parses a complete header. An error refuses its message. pgproto3 validates the length otherwise.
func (m *meter) begin(header []byte) error {
	m.body = max(int64(binary.BigEndian.Uint32(header[1:]))-4, 0)
	size := int64(0)
	switch kind := header[0]; {
	case m.body > maxMessageBytes && m.body <= math.MaxInt32 && strings.IndexByte("QPBd", kind) >= 0:
		return pgerror.New(pgerror.ProgramLimitExceeded, "message too long").
			WithDetail("A message of %d bytes was sent; %d are possible.", m.body, maxMessageBytes)
	case m.body < largeMessageBytes || m.body > maxMessageBytes:
	case kind == 'Q' || kind == 'P':
		size = 2 * m.body // The text of a statement is copied out of the message.
	default:
		size = m.body
	}
	err := m.account.Resize(m.counted, size)
	if err == nil {
		m.counted = size
	}
	return err
}
