package percolator

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/percodb/percodb/kv"
)

// alternating is a router to two shards that own every other one of the ranges [a, b), [b, c), ….
type alternating struct {
	kv.Router
	forgotten int
}

func (r *alternating) Locate(_ context.Context, key []byte) (*kv.RangeDescriptor, kv.Shard, error) {
	c := key[0]
	return &kv.RangeDescriptor{ID: uint64(c), Span: kv.Span{Start: []byte{c}, End: []byte{c + 1}}, Shard: fmt.Sprintf("s%d", c%2)}, nil, nil
}

func (r *alternating) Invalidate(*kv.StaleRangeError) { r.forgotten++ }

func splitWords(s string) (keys [][]byte) {
	for _, key := range strings.Fields(s) {
		keys = append(keys, []byte(key))
	}
	return keys
}

// describePart is the shard of a part, its ranges and its keys.
func describePart(p *part[[]byte]) string {
	out := p.name
	if p.sole {
		out += " alone"
	}
	for _, ref := range p.refs {
		out += fmt.Sprintf(" %c", rune(ref.ID))
	}
	return fmt.Sprintf("%s: %s", out, p.items)
}

// Goal: each shard gets its keys in order, and the list is unchanged. Method: lists of keys in the ranges of two shards,
// with space for one part and without.
func TestSplit(t *testing.T) {
	db := newCluster(t, nil).db(Options{}, nil)
	db.router = &alternating{}
	for _, tc := range []struct{ keys, want string }{
		{"a1", "s1 alone a: [a1]"},
		{"a1 a2 a3", "s1 alone a: [a1 a2 a3]"},
		{"a1 a2 c1 c2 e1", "s1 alone a c e: [a1 a2 c1 c2 e1]"},
		{"a1 b1", "s1 a: [a1], s0 b: [b1]"},
		{"a1 b1 b2 c1 d1 e1", "s1 a c e: [a1 c1 e1], s0 b d: [b1 b2 d1]"},
		{"a1 c1 d1 e1 f1", "s1 a c e: [a1 c1 e1], s0 d f: [d1 f1]"},
	} {
		for _, space := range []*partSpace[[]byte]{nil, {}} {
			keys := splitWords(tc.keys)
			for range 2 { // the space is used again
				parts, err := keyList.split(t.Context(), &backoff{db: db}, keys, space)
				if err != nil {
					t.Fatal(err)
				}
				var got []string
				for i := range parts {
					got = append(got, describePart(&parts[i]))
				}
				if s := strings.Join(got, ", "); s != tc.want {
					t.Errorf("%s: %s, want %s", tc.keys, s, tc.want)
				}
				if s := fmt.Sprintf("%s", keys); s != "["+tc.keys+"]" {
					t.Errorf("the list has become %s", s)
				}
			}
		}
	}
}

// Goal: only what has not been answered is sent again, and an error that does not pass ends the request. Method: a
// sender that answers one key at a time, and fails in a different way for each kind of key.
func TestSendAgain(t *testing.T) {
	db := newCluster(t, nil).db(Options{}, nil)
	for _, tc := range []struct {
		keys, sent string
		forgotten  int
		err        string
	}{
		{keys: "a1 a2 b1", sent: "a1 a2 b1"},
		{keys: "a1 a2stale b1 c1", sent: "a1 a2stale b1 a2stale c1", forgotten: 1},
		{keys: "a1again b1", sent: "a1again b1 a1again"},
		{keys: "a1 b1stop c1", sent: "a1 c1 b1stop"},
		{keys: "a1fail b1", sent: "a1fail", err: "refused"},
	} {
		router := &alternating{}
		db.router = router
		var sent []string
		r := shardRequest[[]byte]{bo: backoff{db: db}, list: &keyList, fanOut: 1}
		r.send = func(_ context.Context, _ *backoff, p *part[[]byte]) error {
			for len(p.items) > 0 {
				key := string(p.items[0])
				again := slices.Contains(sent, key)
				sent = append(sent, key)
				switch {
				case strings.HasSuffix(key, "fail"):
					return fmt.Errorf("refused")
				case strings.HasSuffix(key, "stop"):
					return stopError{}
				case strings.HasSuffix(key, "stale") && !again:
					return &kv.StaleRangeError{Refs: p.refs}
				case strings.HasSuffix(key, "again") && !again:
					return errSendAgain
				}
				p.items = p.items[1:]
			}
			return nil
		}
		err := r.run(t.Context(), splitWords(tc.keys))
		if got := strings.Join(sent, " "); got != tc.sent || router.forgotten != tc.forgotten {
			t.Errorf("%s: sent %s, want %s; %d routes forgotten", tc.keys, got, tc.sent, router.forgotten)
		}
		if (err == nil) != (tc.err == "") || err != nil && err.Error() != tc.err {
			t.Errorf("%s: %v", tc.keys, err)
		}
	}
}

// Goal: where parts are sent at the same time, the first error ends the others' waits, and all have answered when the
// request ends. Method: one part fails, the other waits for its context.
func TestSendParallel(t *testing.T) {
	db := newCluster(t, nil).db(Options{}, nil)
	db.router = &alternating{}
	waited := false
	r := shardRequest[[]byte]{bo: backoff{db: db}, list: &keyList, fanOut: 2}
	r.send = func(ctx context.Context, _ *backoff, p *part[[]byte]) error {
		if p.name == "s1" {
			return fmt.Errorf("refused")
		}
		<-ctx.Done()
		waited = true
		return ctx.Err()
	}
	if err := r.run(t.Context(), splitWords("a1 b1")); err == nil || err.Error() != "refused" || !waited {
		t.Fatal(err, waited)
	}
}
