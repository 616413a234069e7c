package mvcc

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/cockroachdb/datadriven"
)

// background is a request for locks that waits while the transcript continues.
type background struct {
	cancel context.CancelFunc
	done   chan struct{}

	txn     string
	keys    [][]byte
	granted AcquireLocksResponse
	err     error
}

// nameOf returns the name under which the client knows a transaction's answers: as=name, if it differs from the
// transaction's.
func (s *transcript) nameOf(d *datadriven.TestData) string {
	if as := s.arg(d, "as"); as != "" {
		return as
	}
	return s.arg(d, "txn")
}

// acquire acquires locks; the timestamp as of which it did is named txn.key from then on. With bg=name it may wait:
// join returns its result.
func (s *transcript) acquire(ctx context.Context, d *datadriven.TestData) (string, error) {
	args := AcquireLocksRequest{Keys: s.keys(d), Primary: []byte(s.arg(d, "primary")), StartTS: s.txn(d), ReadTS: s.at(d, "read"),
		TTLMillis: 3000, SkipLocked: d.HasArg("skip"), Shared: d.HasArg("shared"), Alive: s.at(d, "alive"), Existence: d.HasArg("existence")}
	if len(args.Primary) == 0 {
		args.Primary = args.Keys[0]
	}
	name := s.arg(d, "bg")
	if name == "" {
		res, err := s.AcquireLocks(ctx, admitAll{}, &args)
		return s.granted(s.nameOf(d), args.Keys, &res), err
	}
	args.Wait = time.Hour
	ctx, cancel := context.WithCancel(ctx)
	b := &background{cancel: cancel, done: make(chan struct{}), txn: s.nameOf(d), keys: args.Keys}
	if s.waiters == nil {
		s.waiters = map[string]*background{}
	}
	s.waiters[name] = b
	waits := s.WaitStats().Waits
	go func() {
		defer close(b.done)
		b.granted, b.err = s.AcquireLocks(ctx, admitAll{}, &args)
	}()
	for s.WaitStats().Waits == waits {
		select {
		case <-b.done:
			return s.join(d)
		case <-time.After(time.Millisecond):
		}
	}
	return "waits", nil
}

// granted formats what was locked, and names it.
func (s *transcript) granted(txn string, keys [][]byte, res *AcquireLocksResponse) string {
	var out []string
	for i, at := range res.LockedAt {
		if at == 0 {
			out = append(out, fmt.Sprintf("%s skipped", keys[i]))
			continue
		}
		s.ts[txn+"."+string(keys[i])] = at
		line := fmt.Sprintf("%s as of %s", keys[i], show(at))
		if res.Exists != nil && res.Exists[i] {
			line += ", exists"
		}
		out = append(out, line)
	}
	return strings.Join(out, "\n")
}

// join waits for a request in the background; with cancel its client goes away.
func (s *transcript) join(d *datadriven.TestData) (string, error) {
	b := s.waiters[s.arg(d, "bg")]
	if d.HasArg("cancel") {
		b.cancel()
	}
	<-b.done
	b.cancel()
	return s.granted(b.txn, b.keys, &b.granted), b.err
}

func (s *transcript) joinAll() {
	for _, b := range s.waiters {
		b.cancel()
		<-b.done
	}
}

func (s *transcript) secondaries(ctx context.Context, d *datadriven.TestData) (string, error) {
	args := CheckSecondaryLocksRequest{Keys: s.keys(d), StartTS: s.txn(d), Owner: d.HasArg("owner")}
	if d.HasArg("expired") {
		args.NowTS = s.now()
	}
	st, err := s.CheckSecondaryLocks(ctx, admitAll{}, &args)
	switch {
	case err != nil:
		return "", err
	case st.CommitTS != 0:
		return "committed at " + show(st.CommitTS), nil
	case st.RolledBack:
		return "rolled back", nil
	}
	out := fmt.Sprintf("%d of %d locked", len(st.Locks), len(args.Keys))
	for i := range st.Locks {
		out += "\n" + showLock(st.Locks[i].Key, &st.Locks[i].Lock)
	}
	return out, nil
}

// spans reads a list of keys and of spans start-end.
func (s *transcript) spans(d *datadriven.TestData, name string) (spans []Span) {
	for _, v := range s.list(d, name) {
		start, end, isSpan := strings.Cut(string(v), "-")
		if !isSpan {
			end = start + "\x00"
		}
		spans = append(spans, Span{Start: []byte(start), End: []byte(end)})
	}
	return spans
}

func (s *transcript) refresh(ctx context.Context, d *datadriven.TestData) error {
	args := RefreshRequest{Spans: s.spans(d, "reads"), StartTS: s.txn(d), FromTS: s.at(d, "from"), ToTS: s.at(d, "to")}
	if bypass := s.at(d, "bypass"); bypass != 0 {
		args.Bypass = append(args.Bypass, bypass)
	}
	if err := s.BeginRead(ctx, args.ToTS); err != nil {
		return err
	}
	return s.Refresh(ctx, &args)
}
