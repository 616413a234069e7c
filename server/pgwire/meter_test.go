package pgwire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"testing"

	"github.com/percodb/percodb/internal/memory"
)

// trickle is a connection from which the client's bytes come in pieces of random size.
type trickle struct {
	net.Conn
	in *bytes.Reader
	r  *rand.Rand
}

func (t *trickle) Read(p []byte) (int, error) {
	return t.in.Read(p[:min(len(p), 1+t.r.IntN(70000))])
}

func message(kind byte, size int) []byte {
	b := binary.BigEndian.AppendUint32([]byte{kind}, uint32(size+4))
	return append(b, make([]byte, size)...)
}

// conversation is the packets before a session, and messages.
func conversation(messages ...[]byte) []byte {
	tls := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, 8), 80877103)
	startup := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, 20), 196608)
	return append(append(tls, append(startup, make([]byte, 12)...)...), bytes.Join(messages, nil)...)
}

// Goal: large messages count while they are at hand, however they are cut, small ones and what comes before
// the session do not.
func TestMeterFraming(t *testing.T) {
	for seed := range uint64(50) {
		pool := memory.NewPool("messages", 1<<30)
		in := conversation(message('Q', 10), message('Q', 1<<20), message('d', 1<<20), message('S', 0))
		m := newMeter(&trickle{in: bytes.NewReader(in), r: rand.New(rand.NewPCG(seed, 1))}, pool)
		most, p := int64(0), make([]byte, 8192)
		total := 0
		for {
			n, err := m.Read(p)
			if total += n; err == io.EOF {
				break
			} else if err != nil {
				t.Fatal(err)
			}
			most = max(most, m.account.Used())
		}
		if total != len(in) || most != 2<<20 || m.account.Used() != 0 || !m.started {
			t.Fatalf("seed %d: %d of %d bytes, at most %d counted, %d at the end", seed, total, len(in), most, m.account.Used())
		}
		m.account.Close()
		if pool.Used() != 0 {
			t.Fatalf("%d bytes left over", pool.Used())
		}
	}
}

// Goal: a message that does not fit ends the read before its body comes; others' memory is not touched.
func TestMeterRefusal(t *testing.T) {
	pool := memory.NewPool("messages", 3<<20)
	first := newMeter(&trickle{in: bytes.NewReader(conversation(message('d', 2<<20))), r: rand.New(rand.NewPCG(1, 1))}, pool)
	if _, err := io.CopyN(io.Discard, first, 100000); err != nil {
		t.Fatal(err)
	}
	second := newMeter(&trickle{in: bytes.NewReader(conversation(message('d', 2<<20))), r: rand.New(rand.NewPCG(2, 1))}, pool)
	_, err := io.Copy(io.Discard, second)
	var exceeded *memory.ExceededError
	if !errors.As(err, &exceeded) {
		t.Fatalf("error %v", err)
	}
	if _, err := io.Copy(io.Discard, first); err != nil {
		t.Fatalf("the first connection: %v", err)
	}
}
