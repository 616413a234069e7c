package session

import (
	"bytes"
	"strings"
	"testing"
)

// Goal: a result is revoked alone, sent ones never, and the answers to later messages follow the result made again.
// Method: transcripts of operations; each letter is a message.
func TestBuffer(t *testing.T) {
	for _, c := range []struct{ name, operations, want string }{
		{"revoked and made again", "a begin b revoke c commit", "|ac"},
		{"not revoked", "a begin b commit c", "|abc"},
		{"nothing to revoke", "a revoke! b", "|ab"},
		{"final after commit", "begin a commit revoke! b", "|ab"},
		{"answers to later messages stay behind", "a begin b seal c revoke d commit e", "|adce"},
		{"twice", "a begin b seal c revoke d revoke e seal f commit", "|aecf"},
		{"sealed again, and revoked again", "begin b seal c revoke d seal e revoke f commit", "|fce"},
		{"an error drops the answers to later messages", "a begin b seal c revoke abandon x", "|ax"},
		{"an error keeps a result that was not revoked", "a begin b seal c abandon x", "|abcx"},
		{"sent is final", "a begin b send revoke! c", "ab|c"},
		{"sent while it is made again", "begin b seal c revoke d send e commit", "d|ec"},
		{"seal without a result", "a seal b revoke!", "|ab"},
	} {
		var sent bytes.Buffer
		b := NewBuffer(&sent, nil)
		for _, op := range strings.Fields(c.operations) {
			switch op {
			case "begin":
				b.Begin(changeBytes)
			case "seal":
				b.Seal()
			case "revoke", "revoke!":
				if b.Revoke() != (op == "revoke") {
					t.Errorf("%s: %s: the other answer", c.name, op)
				}
			case "commit":
				b.Commit()
			case "abandon":
				b.Abandon()
			case "send":
				if err := b.Send(); err != nil {
					t.Fatal(err)
				}
			default:
				b.Data = append(b.Data, op...)
			}
		}
		if got := sent.String() + "|" + string(b.Data); got != c.want {
			t.Errorf("%s: %s: got %s, want %s", c.name, c.operations, got, c.want)
		}
	}
}

// Goal: a large result leaves before its end, later where it may have to be revoked, and never without bound.
func TestBufferSendsLargeResults(t *testing.T) {
	row := make([]byte, 1<<10)
	for _, c := range []struct {
		name        string
		begin       func(*Buffer)
		least, most int
	}{
		{"without revocation", func(*Buffer) {}, sendBytes, sendBytes + len(row)},
		{"of a change", func(b *Buffer) { b.Begin(changeBytes) }, changeBytes, changeBytes + len(row)},
		{"of a query", func(b *Buffer) { b.Begin(0) }, sendBytes, sendBytes + len(row)},
	} {
		var sent bytes.Buffer
		b := NewBuffer(&sent, nil)
		c.begin(b)
		for sent.Len() == 0 && len(b.Data) < 2*changeBytes {
			b.Data = append(b.Data, row...)
			if err := b.SendIfLarge(); err != nil {
				t.Fatal(err)
			}
		}
		if n := sent.Len(); n < c.least || n > c.most {
			t.Errorf("%s: %d bytes are sent, want %d to %d", c.name, n, c.least, c.most)
		}
		if b.Revoke() {
			t.Errorf("%s: revoked after it was sent", c.name)
		}
	}
}
