package mvcc

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/percodb/percodb/kv/storage"
	"github.com/percodb/percodb/tso"
)

// Goal: the protocol's requests behave as transactions.md says, case by case. Method: transcripts of requests and
// answers; the file names and comments describe the cases.
func TestTranscripts(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		if strings.Contains(path, "fuzz") || strings.Contains(path, "proto") {
			t.Skip("the corpus, and what TestProto_… runs")
		}
		runTranscript(t, path)
	})
}

// runTranscript runs one file, with and without packed locks. In a world whose file says so the oracle is remote.
func runTranscript(t *testing.T, path string) {
	for _, packLocks := range []int{0, packAll} {
		s := &transcript{world: newPackingWorld(t, !strings.Contains(path, "remote"), nil, packLocks), ts: map[string]tso.Timestamp{}}
		datadriven.RunTest(t, path, s.run)
		s.joinAll()
	}
}

// transcript runs commands in one world. ts contains the named timestamps, such as start_ts of transactions.
type transcript struct {
	*world
	ts      map[string]tso.Timestamp
	waiters map[string]*background
}

func (s *transcript) run(t *testing.T, d *datadriven.TestData) string {
	out, err := s.command(d)
	if err != nil {
		return showError(err) + "\n"
	}
	if out == "" {
		out = "ok"
	}
	return strings.TrimSuffix(out, "\n") + "\n"
}

func (s *transcript) command(d *datadriven.TestData) (string, error) {
	ctx := context.Background()
	switch d.Cmd {
	case "begin", "now": // name…
		var out []string
		for _, arg := range d.CmdArgs {
			s.ts[arg.Key] = s.now()
			out = append(out, arg.Key+" = "+show(s.ts[arg.Key]))
		}
		return strings.Join(out, "\n"), nil
	case "advance":
		var ms int64
		d.ScanArgs(s.t.(*testing.T), "ms", &ms)
		s.oracle.advance(ms)
		return "", nil
	case "crash":
		s.crash()
		return fmt.Sprintf("%d locks", s.NumLocks()), nil
	case "prewrite":
		return s.prewrite(ctx, d)
	case "commit":
		_, err := s.Commit(ctx, admitAll{}, s.keys(d), s.txn(d), s.at(d, "ts"), d.HasArg("primary"))
		return "", err
	case "rollback":
		return "", s.Rollback(ctx, admitAll{}, s.keys(d), s.txn(d))
	case "resolve":
		_, err := s.ResolveLock(ctx, admitAll{}, s.keys(d), s.txn(d), s.at(d, "ts"))
		return "", err
	case "status":
		return s.status(ctx, d)
	case "heartbeat":
		var ttl int
		d.ScanArgs(s.t.(*testing.T), "ttl", &ttl)
		inForce, err := s.Heartbeat(ctx, admitAll{}, s.keys(d)[0], s.txn(d), uint64(ttl), 0)
		return fmt.Sprintf("ttl %d", inForce), err
	case "get":
		return s.get(ctx, d)
	case "scan":
		return s.scan(ctx, d)
	case "scanlock":
		locks, err := s.ScanLock(ctx, nil, nil, s.at(d, "ts"), 0, 100)
		var out strings.Builder
		for i := range locks {
			fmt.Fprint(&out, showLock(locks[i].Key, &locks[i].Lock))
			for _, ts := range locks[i].Waiters {
				fmt.Fprint(&out, ", waited for by ", show(ts))
			}
			fmt.Fprintln(&out)
		}
		return out.String(), err
	case "acquire":
		return s.acquire(ctx, d)
	case "plant": // a lock that no request would be granted
		for _, key := range s.keys(d) {
			s.locks.grant([]*entry{{key: key, state: stateDurable, lock: Lock{Op: OpPessimistic, StartTS: s.txn(d), Primary: key,
				TTLMillis: 3000, ForUpdateTS: s.at(d, "at")}}}, 0)
		}
		return "", nil
	case "join":
		return s.join(d)
	case "release":
		bound := tso.Timestamp(tso.MaxTimestamp)
		if d.HasArg("bound") {
			bound = s.at(d, "bound")
		}
		return "", s.ReleaseLocks(admitAll{}, s.keys(d), s.txn(d), bound)
	case "secondaries":
		return s.secondaries(ctx, d)
	case "refresh":
		return "", s.refresh(ctx, d)
	case "notifyscan", "notifyclear", "notifyput", "notifydrop":
		return s.notify(ctx, d)
	case "dump":
		return s.dump(), nil
	case "check":
		findings, err := s.Check(ctx)
		return fmt.Sprint(findings), err
	default:
		return "", fmt.Errorf("unknown command %q", d.Cmd)
	}
}

func (s *transcript) arg(d *datadriven.TestData, name string) string {
	for _, arg := range d.CmdArgs {
		if arg.Key == name && len(arg.Vals) > 0 {
			return arg.Vals[0]
		}
	}
	return ""
}

// at resolves an argument that names a timestamp, spells one, or is "new"; missing means 0.
func (s *transcript) at(d *datadriven.TestData, name string) tso.Timestamp {
	return s.resolveTS(s.arg(d, name))
}

func (s *transcript) resolveTS(v string) tso.Timestamp {
	if ts, ok := s.ts[v]; ok {
		return ts
	}
	switch v {
	case "", "0":
		return 0
	case "new":
		return s.now()
	case "latest":
		return tso.MaxTimestamp
	}
	ts, err := parseTS(v)
	if err != nil {
		s.t.Fatal(err)
	}
	return ts
}

func (s *transcript) txn(d *datadriven.TestData) tso.Timestamp { return s.at(d, "txn") }

func (s *transcript) keys(d *datadriven.TestData) [][]byte { return s.list(d, "keys") }

func (s *transcript) list(d *datadriven.TestData, name string) (keys [][]byte) {
	for _, arg := range d.CmdArgs {
		if arg.Key == name {
			for _, v := range arg.Vals {
				keys = append(keys, []byte(v))
			}
		}
	}
	return keys
}

func (s *transcript) prewrite(ctx context.Context, d *datadriven.TestData) (string, error) {
	args := PrewriteRequest{StartTS: s.txn(d), Primary: []byte(s.arg(d, "primary")), TTLMillis: 3000,
		TryOnePC: d.HasArg("onepc"), MaxCommitTS: s.at(d, "max"), ReadTS: s.at(d, "read"), FloorTS: s.at(d, "floor"),
		Async: d.HasArg("async"), Secondaries: s.list(d, "secondaries"), Reads: s.spans(d, "reads")}
	for _, line := range strings.Split(strings.TrimSpace(d.Input), "\n") {
		line, notify, _ := strings.Cut(line, " !")
		line, lockedAt, _ := strings.Cut(line, " @")
		f := strings.Fields(line)
		m := Mutation{Key: []byte(f[1]), LockedAt: s.resolveTS(lockedAt)}
		switch f[0] {
		case "put", "insert":
			m.Op, m.Value, m.MustBeNew = OpPut, []byte(f[2]), f[0] == "insert"
		case "delete":
			m.Op = OpDelete
		case "lock":
			m.Op = OpLock
		case "absent":
			m.Op = OpCheckNotExists
		default:
			return "", fmt.Errorf("unknown mutation %q", f[0])
		}
		if notify != "" {
			args.Notify = append(args.Notify, s.notifySet(notify))
			m.Notify = uint16(len(args.Notify))
		}
		args.Mutations = append(args.Mutations, m)
	}
	args.TxnSize = uint32(len(args.Mutations))
	res, err := s.Prewrite(ctx, admitAll{}, &args)
	if err != nil {
		return "", err
	}
	if res.OnePCCommitTS != 0 {
		s.ts["c"+s.arg(d, "txn")] = res.OnePCCommitTS
		return "committed at " + show(res.OnePCCommitTS), nil
	}
	if res.Async {
		return "locked, async, min_commit_ts " + show(res.MinCommitTS), nil
	}
	return "locked, min_commit_ts " + show(res.MinCommitTS), nil
}

func (s *transcript) status(ctx context.Context, d *datadriven.TestData) (string, error) {
	st, err := s.CheckTxnStatus(ctx, admitAll{}, &CheckTxnStatusRequest{Primary: s.keys(d)[0], StartTS: s.txn(d),
		CallerTS: s.at(d, "caller"), NowTS: s.now(), RollbackIfMissing: d.HasArg("decide"),
		ResolvingPessimistic: d.HasArg("pessimistic"), ForceSync: d.HasArg("force")})
	switch {
	case err != nil:
		return "", err
	case st.CommitTS != 0:
		return "committed at " + show(st.CommitTS), nil
	case st.Undecided:
		return "not locked, undecided", nil
	case st.RolledBack:
		return "rolled back", nil
	default:
		return "alive: " + showLock(s.keys(d)[0], st.Lock), nil
	}
}

func (s *transcript) readOptions(d *datadriven.TestData) (o ReadOptions) {
	o.ReadTS, o.FloorTS = s.at(d, "ts"), s.at(d, "floor")
	for _, arg := range d.CmdArgs {
		for _, v := range arg.Vals {
			switch arg.Key {
			case "bypass":
				o.Bypass = append(o.Bypass, s.resolveTS(v))
			case "resolved":
				txn, commit, _ := strings.Cut(v, "@")
				o.Resolved = append(o.Resolved, CommittedTxn{StartTS: s.resolveTS(txn), CommitTS: s.resolveTS(commit)})
			}
		}
	}
	return o
}

func (s *transcript) get(ctx context.Context, d *datadriven.TestData) (string, error) {
	o := s.readOptions(d)
	if err := errors.Join(s.BeginRead(ctx, o.ReadTS), s.BeginRead(ctx, o.FloorTS)); err != nil {
		return "", err
	}
	var out []string
	for _, key := range s.keys(d) {
		value, err := s.getOrLatest(ctx, key, &o)
		switch {
		case err != nil:
			out = append(out, showError(err))
		case value == nil:
			out = append(out, fmt.Sprintf("%s is absent", key))
		default:
			out = append(out, fmt.Sprintf("%s = %s", key, value))
		}
	}
	return strings.Join(out, "\n"), nil
}

func (s *transcript) scan(ctx context.Context, d *datadriven.TestData) (string, error) {
	args := ScanRequest{Spans: spanOf(s.arg(d, "from"), s.arg(d, "to")), Reverse: d.HasArg("reverse"),
		KeysOnly: d.HasArg("keysonly"), Limit: 100, MaxBytes: 1 << 20, ReadOptions: s.readOptions(d)}
	if d.HasArg("limit") {
		d.ScanArgs(s.t.(*testing.T), "limit", &args.Limit)
	}
	if err := s.BeginRead(ctx, args.ReadTS); err != nil {
		return "", err
	}
	page, err := s.Scan(ctx, &args)
	if err != nil {
		return "", err
	}
	var out strings.Builder
	for _, row := range page.Rows {
		fmt.Fprintf(&out, "%s = %s\n", row.Key, row.Value)
	}
	for i := range page.Locked {
		fmt.Fprintln(&out, "locked "+showLock(page.Locked[i].Key, &page.Locked[i].Lock))
	}
	if page.ResumeKey != nil {
		fmt.Fprintf(&out, "resume at %q\n", page.ResumeKey)
	}
	if out.Len() == 0 {
		return "nothing", nil
	}
	return out.String(), nil
}

// dump lists all records.
func (s *transcript) dump() string {
	var out strings.Builder
	it, err := s.eng.NewRangeIter([]byte{tagLock, 0}, []byte{tagNotify + 1, 0})
	if err != nil {
		s.t.Fatal(err)
	}
	defer it.Close()
	for ok := it.First(); ok; ok = it.Next() {
		key := it.Key()
		value, err := it.Value()
		if err != nil {
			s.t.Fatal(err)
		}
		prefix, version, _ := storage.SplitVersion(key)
		ts := tso.Timestamp(version)
		switch key[0] {
		case tagLock:
			l, long, err := decodeLock(value)
			if err != nil {
				s.t.Fatal(err)
			}
			fmt.Fprintf(&out, "L %s value=%q long=%v\n", showLock(userKey(key), &l), l.Value, long)
		case tagWrite:
			w, err := decodeWrite(ts, value)
			if err != nil {
				s.t.Fatal(err)
			}
			fmt.Fprintf(&out, "W %s @ %s ← %s %s value=%q long=%v\n", userKey(prefix), show(ts), show(w.startTS), showOp(w.op), w.value, w.longValue)
		case tagData:
			fmt.Fprintf(&out, "D %s @ %s value=%q\n", userKey(prefix), show(ts), value)
		case tagStatus:
			kind, startTS, err := decodeStatus(value)
			if err != nil {
				s.t.Fatal(err)
			}
			fmt.Fprintf(&out, "S %s @ %s %s of %s\n", userKey(prefix), show(ts), map[byte]string{statusRollback: "rollback", statusLockCommit: "lock commit"}[kind], show(startTS))
		case tagNotify:
			observer, key, err := splitNotifyKey(key)
			if err != nil {
				s.t.Fatal(err)
			}
			c, err := decodeNotifyCell(value)
			if err != nil {
				s.t.Fatal(err)
			}
			fmt.Fprintf(&out, "N %d %s %s\n", observer, key, showCell(c.latest, c.hop))
		}
	}
	return out.String()
}
