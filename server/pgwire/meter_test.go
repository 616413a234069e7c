package pgwire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"testing"

	"github.com/percodb/percodb/internal/memory"
	"github.com/percodb/percodb/session"
)

// trickle is a connection from which the client's bytes come in pieces of random size.
type trickle struct {
	net.Conn
	in *bytes.Reader
	r  *rand.Rand
	// interrupted: a read sometimes ends with a timeout, as for a notification.
	interrupted bool
}

func (t *trickle) Read(p []byte) (int, error) {
	if t.interrupted && t.r.IntN(3) == 0 {
		return 0, os.ErrDeadlineExceeded
	}
	return t.in.Read(p[:min(len(p), 1+t.r.IntN(70000))])
}

func message(kind byte, size int) []byte {
	b := binary.BigEndian.AppendUint32([]byte{kind}, uint32(size+4))
	return append(b, make([]byte, size)...)
}

func concat(messages ...[]byte) []byte { return bytes.Join(messages, nil) }

// Goal: large messages count while they are at hand, however they are cut, small ones do not.
func TestMeterFraming(t *testing.T) {
	for seed := range uint64(50) {
		pool := memory.NewPool("messages", 1<<30)
		in := concat(message('Q', 10), message('Q', 1<<20), message('d', 1<<20), message('S', 0))
		m := newMeter((&trickle{in: bytes.NewReader(in), r: rand.New(rand.NewPCG(seed, 1))}).Read, pool)
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
		if total != len(in) || most != 2<<20 || m.account.Used() != 0 {
			t.Fatalf("seed %d: %d of %d bytes, at most %d counted, %d at the end", seed, total, len(in), most, m.account.Used())
		}
		m.account.Close()
		if pool.Used() != 0 {
			t.Fatalf("%d bytes left over", pool.Used())
		}
	}
}

// Goal: a message that does not fit, or is too long, is replaced by an error, however it is cut and how often its reads are
// interrupted, and those before and behind it pass.
func TestMeterGoesOnBehindRefusal(t *testing.T) {
	small, large := message('B', 100), message('P', 1<<20)
	for seed := range uint64(50) {
		pool := memory.NewPool("messages", 1<<20)
		in := concat(small, large, small, large, large, small)
		m := newMeter((&trickle{in: bytes.NewReader(in), r: rand.New(rand.NewPCG(seed, 1)), interrupted: true}).Read, pool)
		var got []byte
		refused, p := 0, make([]byte, 8192)
		for {
			n, err := m.Read(p)
			got = append(got, p[:n]...)
			if err == io.EOF {
				break
			}
			if errors.Is(err, os.ErrDeadlineExceeded) {
				continue
			}
			if e, ok := errors.AsType[*refusedMessage](err); ok && e.kind == 'P' && n == 0 {
				refused++
			} else if err != nil {
				t.Fatal(err)
			}
		}
		if want := concat(small, small, small); refused != 3 || !bytes.Equal(got, want) || pool.Used() != 0 {
			t.Fatalf("seed %d: %d refused, %d bytes passed of %d, %d counted", seed, refused, len(got), len(want), pool.Used())
		}
	}
}

// Goal: a message that does not fit is replaced by an error; others' memory is not touched.
func TestMeterRefusal(t *testing.T) {
	pool := memory.NewPool("messages", 3<<20)
	first := newMeter((&trickle{in: bytes.NewReader(concat(message('d', 2<<20))), r: rand.New(rand.NewPCG(1, 1))}).Read, pool)
	if _, err := io.CopyN(io.Discard, first, 100000); err != nil {
		t.Fatal(err)
	}
	second := newMeter((&trickle{in: bytes.NewReader(concat(message('d', 2<<20))), r: rand.New(rand.NewPCG(2, 1))}).Read, pool)
	_, err := io.Copy(io.Discard, second)
	var exceeded *memory.ExceededError
	if !errors.As(err, &exceeded) {
		t.Fatalf("error %v", err)
	}
	if _, err := io.Copy(io.Discard, first); err != nil {
		t.Fatalf("the first connection: %v", err)
	}
}

// zeros is a connection whose client sends some bytes, then n zeros, then others.
type zeros struct {
	net.Conn
	before, after []byte
	n             int
}

func (z *zeros) Read(p []byte) (int, error) {
	switch {
	case len(z.before) > 0:
		n := copy(p, z.before)
		z.before = z.before[n:]
		return n, nil
	case z.n > 0:
		n := min(len(p), z.n)
		clear(p[:n])
		z.n -= n
		return n, nil
	case len(z.after) > 0:
		n := copy(p, z.after)
		z.after = z.after[n:]
		return n, nil
	}
	return 0, io.EOF
}

// Goal: a message longer than any may be is refused as such, and the next one passes.
func TestMeterRefusesTooLong(t *testing.T) {
	const size = maxMessageBytes + 1
	header := binary.BigEndian.AppendUint32([]byte{'Q'}, size+4)
	next := message('Q', 10)
	m := newMeter((&zeros{before: concat(header), n: size, after: next}).Read, nil)
	p := make([]byte, 8192)
	_, err := m.Read(p)
	if e := session.ToPGError(err); e.Code != "54000" || e.Message != "message too long" {
		t.Fatalf("error %v", err)
	}
	if n, err := m.Read(p); err != nil || !bytes.Equal(p[:n], next) {
		t.Fatalf("%d bytes, %v", n, err)
	}
}
