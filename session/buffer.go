package session

import (
	"io"
	"slices"

	"github.com/percodb/percodb/internal/memory"
)

const (
	// sendBytes is how many unsent bytes are sent before the statement ends.
	sendBytes = 64 << 10
	// changeBytes is how large the result of a statement that changes rows may grow before it is sent, and can no longer be
	// revoked.
	changeBytes = 8 << 20
	// keepBytes is the largest buffer that is kept after it has been sent.
	keepBytes = 256 << 10
)

// Buffer holds the encoded messages that a client has not been sent. A ResultWriter embeds it and appends to Data; the
// session decides which part is revocable, so that a statement can run again:
//
//	│ earlier answers │ result of a statement │ answers to later messages │
//	0                 start                   end                    len(Data)
//
// Begin starts the result, Seal ends it, Revoke removes it and keeps what follows for the next Seal or Commit. Whatever has
// been sent cannot be revoked. One goroutine's.
type Buffer struct {
	// Data are whole messages. Only Buffer removes bytes.
	Data []byte

	to    io.Writer
	err   error  // of the first write that failed: the client is gone
	start int    // of the revocable result, or none
	end   int    // of the result if it has been sealed, or none
	limit int    // how many bytes of the result are kept back; a smaller buffer is never sent before its end
	later []byte // the answers to later messages, while the result is made again
	// notices are the places of the result's notices.
	notices [][2]int

	account memory.Account // of what Data takes beyond keepBytes
	counted int64
}

const none = -1

// NewBuffer makes the buffer of a client. Large contents draw from pool.
func NewBuffer(to io.Writer, pool *memory.Pool) *Buffer {
	return &Buffer{to: to, start: none, end: none, account: memory.NewAccount(pool, 0)}
}

// SendTo replaces the connection that the contents are sent to.
func (b *Buffer) SendTo(to io.Writer) { b.to = to }

// Err returns the error of the first write that failed. Every later one is pointless.
func (b *Buffer) Err() error { return b.err }

// Fail notes that the client cannot be sent anything more.
func (b *Buffer) Fail(err error) {
	if b.err == nil {
		b.err = err
	}
}

// Close gives the memory back.
func (b *Buffer) Close() { b.account.Close() }

// Send sends the contents, which cannot be revoked any more.
func (b *Buffer) Send() error {
	b.start, b.end, b.notices = none, none, nil
	if b.err != nil || len(b.Data) == 0 {
		return b.err
	}
	_, b.err = b.to.Write(b.Data)
	if cap(b.Data) > keepBytes {
		b.Data = nil
		b.account.Shrink(b.counted)
		b.counted = 0
	}
	b.Data = b.Data[:0]
	return b.err
}

// SendIfLarge sends the contents if there is more than is kept for the end of the statement.
func (b *Buffer) SendIfLarge() error {
	if len(b.Data) < sendBytes || b.start != none && len(b.Data)-b.start < b.limit {
		return b.err
	}
	return b.Send()
}

// Grow makes space for size more bytes. An error, that the server has no memory for them, is the statement's.
func (b *Buffer) Grow(size int) error {
	if size <= cap(b.Data)-len(b.Data) {
		return nil
	}
	if total := int64(len(b.Data) + size); total > keepBytes {
		if err := b.account.Resize(b.counted, total); err != nil {
			return err
		}
		b.counted = total
	}
	b.Data = slices.Grow(b.Data, size)
	return nil
}

// Begin starts a result that can be revoked. It is kept back until it has limit bytes, or until the buffer would be sent
// without it.
func (b *Buffer) Begin(limit int) {
	b.start, b.end, b.limit, b.notices = len(b.Data), none, limit, nil
}

// Seal ends the result, which can be revoked yet. What is appended from now on answers later messages.
func (b *Buffer) Seal() {
	if b.start == none || b.end != none {
		return
	}
	b.end = len(b.Data)
	b.restoreLater()
}

// Revoke removes the result, which may be made again, and reports whether none of it had been sent.
func (b *Buffer) Revoke() bool {
	if b.start == none {
		return false
	}
	if b.end != none {
		b.later = append(b.later[:0], b.Data[b.end:]...)
		b.end = none
	}
	b.Data, b.notices = b.Data[:b.start], nil
	return true
}

// Keep has RevokeRows keep the notice that has been appended from there on.
func (b *Buffer) Keep(from int) {
	if b.start != none && b.end == none && from >= b.start {
		b.notices = append(b.notices, [2]int{from, len(b.Data)})
	}
}

// RevokeRows removes the result of a statement that has failed, if none of it had been sent, but for its notices: the client gets these before
// the error.
func (b *Buffer) RevokeRows() {
	data, notices := b.Data, b.notices
	if !b.Revoke() {
		return
	}
	for _, n := range notices {
		b.Data = append(b.Data, data[n[0]:n[1]]...)
	}
}

// Commit makes the result final.
func (b *Buffer) Commit() {
	b.restoreLater()
	b.start, b.end = none, none
}

// Abandon makes the result final in front of an error. The answers to later messages that Revoke has cut off are dropped:
// messages behind an error are not answered.
func (b *Buffer) Abandon() {
	b.later = b.later[:0]
	b.start, b.end = none, none
}

func (b *Buffer) restoreLater() {
	b.Data = append(b.Data, b.later...)
	b.later = b.later[:0]
}
