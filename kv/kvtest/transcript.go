package kvtest

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/percodb/percodb/internal/errkind"
	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/kv/mvcc"
	"github.com/percodb/percodb/tso"
)

// RunTranscript executes a file of requests and their answers against the engine that open opens, delivered in the ways of Run. Timestamps are shown
// by the names that the file has given them, so that the answers are the same on engines that use more of them, or fewer.
//
// A command with if=NAME is executed if the engine has what Case.Needs calls NAME, one with unless=NAME if it has not: so a file states where the
// answers of two engines differ.
//
//	begin NAME…                                          names timestamps that the oracle issues
//	prewrite txn=TS primary=KEY [read=TS]                the mutations are lines: put KEY VALUE [@LOCKED AT], lock KEY
//	write txn=TS primary=KEY [read=TS]                   the same, committed at TS.commit: in one phase where there is OnePhase, or else in two
//	commit, resolve txn=TS keys=(KEY,…) ts=TS [primary]
//	rollback txn=TS keys=(KEY,…)
//	status txn=TS keys=KEY [caller=TS] [decide]
//	acquire txn=TS keys=(KEY,…) [read=TS] [as=NAME]      the locks are as of TS.KEY, or NAME.KEY
//	release txn=TS keys=(KEY,…) bound=TS
//	get keys=(KEY,…) ts=TS [bypass=TS]
//	scan from=KEY to=KEY ts=TS [limit=N] [reverse]
//	scanlock ts=TS
//	refresh txn=TS keys=KEY from=TS to=TS
//	safepoint ts=TS, collect ts=TS
//	pass ms=N                                            has the oracle's time go on
//	restart                                              ends the engine and starts it again
//	lose txn=TS keys=(KEY,…)                             has the transaction's locks released without its knowledge
//	careless                                             the changes of the next command are made whatever is in their way (Engine.Careless)
//
// A TS is a name, new, future (one that was not issued), max, or NAME+1, the smallest timestamp above.
func RunTranscript(t *testing.T, path string, open Factory) {
	for _, d := range deliveries {
		t.Run(d.name, func(t *testing.T) {
			e := newEnv(t, open, &coverage{requests: map[string]bool{}, errors: map[reflect.Type]bool{}})
			defer e.cancel()
			e.recorder.twice = d.twice
			s := &transcript{env: e, ts: map[string]tso.Timestamp{}}
			datadriven.RunTest(t, path, s.step)
			if !t.Failed() {
				e.replay()
			}
		})
	}
}

// RunTranscripts is RunTranscript for every file of a directory.
func RunTranscripts(t *testing.T, dir string, open Factory) {
	files, err := os.ReadDir(dir)
	if err != nil || len(files) == 0 {
		t.Fatalf("transcripts in %s: %d, %v", dir, len(files), err)
	}
	for _, f := range files {
		t.Run(f.Name(), func(t *testing.T) { RunTranscript(t, filepath.Join(dir, f.Name()), open) })
	}
}

// transcript executes the commands of one file.
type transcript struct {
	*env
	names    []string // in the order in which they were given
	ts       map[string]tso.Timestamp
	careless bool // the changes of the next command are made whatever is in their way
}

// step executes a command, if its condition holds, and returns the answer.
func (s *transcript) step(t *testing.T, d *datadriven.TestData) (out string) {
	if need := argument(d, "if"); need != "" && !s.has(need) {
		return d.Expected
	}
	if need := argument(d, "unless"); need != "" && s.has(need) {
		return d.Expected
	}
	run := func() {
		var err error
		if out, err = s.command(d); err != nil {
			out = s.showError(err)
		}
	}
	if s.careless {
		s.careless = false
		s.engine.Careless(run)
	} else {
		run()
	}
	if out == "" {
		out = "ok"
	}
	return strings.TrimSuffix(out, "\n") + "\n"
}

// command executes a command; "" is the answer of one that has succeeded, and has no other.
func (s *transcript) command(d *datadriven.TestData) (string, error) {
	keys := s.keys(d)
	switch d.Cmd {
	case "begin":
		for _, arg := range d.CmdArgs {
			s.name(arg.Key, s.now())
		}
		return "", nil
	case "pass":
		s.pass(int64(number(s, d, "ms")))
		return "", nil
	case "restart":
		s.engine.Restart(s)
		return "", nil
	case "careless":
		s.careless = true
		return "", nil
	case "prewrite":
		res, err := s.prewrite(d, false)
		return "locked, min_commit_ts " + s.show(res.MinCommitTS), err
	case "write":
		return s.write(d)
	case "commit":
		return "", s.txn(d).tryCommit(s.at(d, "ts"), d.HasArg("primary"), keys...)
	case "resolve":
		return "", s.txn(d).resolve(s.at(d, "ts"), keys...)
	case "rollback":
		return "", s.txn(d).tryRollback(keys...)
	case "status":
		return s.status(d)
	case "acquire":
		return s.acquire(d)
	case "release":
		s.txn(d).release(s.at(d, "bound"), keys...)
		return "", nil
	case "lose":
		s.txn(d).release(tso.MaxTimestamp-1, keys...)
		return "", nil
	case "get":
		return s.read(d), nil
	case "scan":
		return s.readSpan(d)
	case "scanlock":
		return s.scanLock(d)
	case "refresh":
		return "", s.txn(d).refresh(s.at(d, "from"), s.at(d, "to"), point(keys[0]))
	case "safepoint":
		return s.show(s.safePoint(s.at(d, "ts"))), nil
	case "collect":
		res := s.collect(s.at(d, "ts"))
		return fmt.Sprintf("versions %d, statuses %d", res.Versions, res.Statuses), nil
	}
	return "", fmt.Errorf("unknown command %q", d.Cmd)
}

// argument returns the first value of an argument, "" if there is none.
func argument(d *datadriven.TestData, name string) string {
	for _, arg := range d.CmdArgs {
		if arg.Key == name && len(arg.Vals) > 0 {
			return arg.Vals[0]
		}
	}
	return ""
}

func number(s *transcript, d *datadriven.TestData, name string) (n int) {
	if _, err := fmt.Sscan(argument(d, name), &n); err != nil {
		s.Fatalf("%s: %s=%q is not a number", d.Pos, name, argument(d, name))
	}
	return n
}

func (s *transcript) keys(d *datadriven.TestData) []string {
	for _, arg := range d.CmdArgs {
		if arg.Key == "keys" {
			return arg.Vals
		}
	}
	return nil
}

// name names a timestamp. A name may be given again.
func (s *transcript) name(name string, ts tso.Timestamp) {
	if _, known := s.ts[name]; !known {
		s.names = append(s.names, name)
	}
	s.ts[name] = ts
}

// at returns the timestamp of an argument, 0 if there is none.
func (s *transcript) at(d *datadriven.TestData, name string) tso.Timestamp {
	return s.timestamp(d, argument(d, name))
}

func (s *transcript) timestamp(d *datadriven.TestData, text string) tso.Timestamp {
	switch text {
	case "", "0":
		return 0
	case "new":
		return s.now()
	case "future":
		return s.future()
	case "max":
		return tso.MaxTimestamp
	}
	name, above := strings.CutSuffix(text, "+1")
	ts, known := s.ts[name]
	if !known {
		s.Fatalf("%s: no timestamp has the name %s", d.Pos, name)
	}
	if above {
		ts++
	}
	return ts
}

// show shows a timestamp by the name of the newest one that is not above it.
func (s *transcript) show(ts tso.Timestamp) string {
	switch ts {
	case 0:
		return "0"
	case tso.MaxTimestamp:
		return "max"
	}
	below, distance := "", tso.Timestamp(math.MaxUint64)
	for _, name := range s.names {
		if at := s.ts[name]; at <= ts && ts-at < distance {
			below, distance = name, ts-at
		}
	}
	switch {
	case below == "":
		return "before all"
	case distance == 0:
		return below
	case distance < tso.Tick:
		return fmt.Sprintf("%s+%d", below, distance)
	}
	return "after " + below
}

// txn is the transaction of a command.
func (s *transcript) txn(d *datadriven.TestData) *txn {
	x := &txn{e: s.env, start: s.at(d, "txn"), primary: argument(d, "primary")}
	if keys := s.keys(d); x.primary == "" && len(keys) > 0 {
		x.primary = keys[0]
	}
	return x
}

// mutations reads the lines of a command.
func (s *transcript) mutations(d *datadriven.TestData) (all []mvcc.Mutation) {
	for _, line := range strings.Split(strings.TrimSpace(d.Input), "\n") {
		line, at, _ := strings.Cut(line, " @")
		var m mvcc.Mutation
		switch f := strings.Fields(line); {
		case len(f) == 3 && f[0] == "put":
			m = put(f[1], f[2])
		case len(f) == 2 && f[0] == "lock":
			m = lockOnly(f[1])
		default:
			s.Fatalf("%s: %q is no mutation", d.Pos, line)
		}
		all = append(all, locked(m, s.timestamp(d, at)))
	}
	return all
}

func (s *transcript) prewrite(d *datadriven.TestData, onePhase bool) (kv.PrewriteResponse, error) {
	change := func(r *kv.PrewriteRequest) { r.ReadTS, r.TryOnePC = s.at(d, "read"), onePhase }
	return s.txn(d).tryPrewrite(change, s.mutations(d)...)
}

// write is a whole transaction, in as few phases as the engine has for it.
func (s *transcript) write(d *datadriven.TestData) (string, error) {
	res, err := s.prewrite(d, s.caps.OnePhase)
	if err != nil {
		return "", err
	}
	ts := res.OnePCCommitTS
	if ts == 0 {
		ts = s.txn(d).commit(keysOf(s.mutations(d))...)
	}
	s.name(argument(d, "txn")+".commit", ts)
	return "committed", nil
}

func (s *transcript) status(d *datadriven.TestData) (string, error) {
	st, err := s.txn(d).status(func(r *kv.CheckTxnStatusRequest) {
		r.CallerTS, r.RollbackIfMissing = s.at(d, "caller"), d.HasArg("decide")
		r.NowTS = s.now()
	})
	switch {
	case err != nil:
		return "", err
	case st.CommitTS != 0:
		return "committed at " + s.show(st.CommitTS), nil
	case st.RolledBack:
		return "rolled back", nil
	}
	return "alive: " + s.showLock([]byte(s.keys(d)[0]), st.Lock), nil
}

// acquire acquires locks, and names the timestamps that they are as of.
func (s *transcript) acquire(d *datadriven.TestData) (string, error) {
	keys, name := s.keys(d), argument(d, "as")
	if name == "" {
		name = argument(d, "txn")
	}
	res, err := s.txn(d).tryAcquire(func(r *kv.AcquireLocksRequest) { r.ReadTS = s.at(d, "read") }, keys...)
	if err != nil {
		return "", err
	}
	var out []string
	for i, at := range res.LockedAt {
		out = append(out, fmt.Sprintf("%s as of %s", keys[i], s.show(at)))
		s.name(name+"."+keys[i], at)
	}
	return strings.Join(out, "\n"), nil
}

// read reads keys one by one.
func (s *transcript) read(d *datadriven.TestData) string {
	o := kv.ReadOptions{ReadTS: s.at(d, "ts")}
	if bypass := s.at(d, "bypass"); bypass != 0 {
		o.Bypass = append(o.Bypass, bypass)
	}
	var out []string
	for _, key := range s.keys(d) {
		value, err := s.tryGet(key, o)
		switch {
		case err != nil:
			out = append(out, s.showError(err))
		case value == nil:
			out = append(out, key+" is absent")
		default:
			out = append(out, fmt.Sprintf("%s = %s", key, value))
		}
	}
	return strings.Join(out, "\n")
}

func (s *transcript) readSpan(d *datadriven.TestData) (string, error) {
	page, err := s.scan(argument(d, "from"), argument(d, "to"), func(r *kv.ScanRequest) {
		r.ReadTS, r.Reverse = s.at(d, "ts"), d.HasArg("reverse")
		if d.HasArg("limit") {
			r.Limit = number(s, d, "limit")
		}
	})
	if err != nil {
		return "", err
	}
	var out []string
	for i := range page.Rows {
		out = append(out, fmt.Sprintf("%s = %s", page.Rows[i].Key, page.Rows[i].Value))
	}
	for i := range page.Locked {
		out = append(out, "locked "+s.showLock(page.Locked[i].Key, &page.Locked[i].Lock))
	}
	if page.ResumeKey != nil {
		out = append(out, fmt.Sprintf("resume at %q", page.ResumeKey))
	}
	if len(out) == 0 {
		return "nothing", nil
	}
	return strings.Join(out, "\n"), nil
}

func (s *transcript) scanLock(d *datadriven.TestData) (string, error) {
	ref, shard := s.env.at("a")
	locks, err := shard.ScanLock(s.ctx, &kv.ScanLockRequest{Range: ref, MaxTS: s.at(d, "ts"), Limit: 100})
	var out []string
	for i := range locks {
		out = append(out, s.showLock(locks[i].Key, &locks[i].Lock))
	}
	if err == nil && len(out) == 0 {
		return "nothing", nil
	}
	return strings.Join(out, "\n"), err
}

func (s *transcript) showLock(key []byte, l *mvcc.Lock) string {
	text := fmt.Sprintf("%s by %s, primary %s, ", key, s.show(l.StartTS), l.Primary)
	if l.Op == mvcc.OpPessimistic {
		return text + "locked as of " + s.show(l.ForUpdateTS)
	}
	return text + fmt.Sprintf("min_commit_ts %s, %s", s.show(l.MinCommitTS), map[mvcc.Op]string{mvcc.OpPut: "put", mvcc.OpLock: "lock"}[l.Op])
}

// showError shows an error of the protocol.
func (s *transcript) showError(err error) string {
	if e, ok := errkind.As[*mvcc.KeyLockedError](err); ok {
		return "locked " + s.showLock(e.Key, &e.Lock)
	}
	if e, ok := errkind.As[*mvcc.WriteConflictError](err); ok {
		return fmt.Sprintf("write conflict on %s with %s, committed at %s", e.Key, s.show(e.ConflictingStartTS), s.show(e.ConflictingCommitTS))
	}
	if e, ok := errkind.As[*mvcc.AlreadyCommittedError](err); ok {
		return "already committed at " + s.show(e.CommitTS)
	}
	if e, ok := errkind.As[*mvcc.LockNotFoundError](err); ok {
		return fmt.Sprintf("no lock on %s", e.Key)
	}
	if e, ok := errkind.As[*mvcc.CommitTSExpiredError](err); ok {
		return "commit_ts expired, minimum " + s.show(e.MinCommitTS)
	}
	if e, ok := errkind.As[*mvcc.TooOldError](err); ok {
		return "too old, safe point " + s.show(e.SafePoint)
	}
	if e, ok := errkind.As[*mvcc.LockLostError](err); ok {
		return fmt.Sprintf("lost the lock on %s", e.Key)
	}
	switch errkind.Of(err) {
	case errkind.RolledBack:
		return "rolled back"
	case errkind.TxnNotFound:
		return "transaction not found"
	case errkind.Future:
		return "timestamp in the future"
	}
	return "error: " + err.Error()
}
