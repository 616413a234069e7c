package percolator

import (
	"context"
	"errors"
	"fmt"
	"sort"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/kv/mvcc"
	"github.com/percodb/percodb/tso"
)

// Goal: readable transcripts of the protocol: which transaction encounters which lock, and its requests and actions.
// Method: testdata/*.txt; -rewrite writes the outputs. Every transaction has its own coordinator,
// which can be made to crash in the middle of a commit; its later requests are not sent.
//
//	stores [bounds=(m,t)]            start with new stores, one more than bounds
//	begin T                          a transaction; at=T2 reads at T2's start_ts
//	put|insert|delete|lock T k[=v]…  write
//	get T k…    scan T [reverse]     read
//	commit T [dies=WHEN]             WHEN: before-primary (only secondaries are locked),
//	                                 after-prewrite, after-primary
//	advance 5s                       advance the oracle's time
//	restart I                        restart store I, which loses its memory
//	locks                            list the locks by transaction
func TestTranscripts(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		tr := &transcript{t: t}
		datadriven.RunTest(t, path, tr.run)
	})
}

type transcript struct {
	t     *testing.T
	c     *cluster
	txns  map[string]*coordinator
	names map[tso.Timestamp]string
}

// coordinator is one transaction and its DB.
type coordinator struct {
	txn *Txn
	db  *DB

	secondaries chan struct{} // closed when some have been prewritten

	mu    sync.Mutex
	dies  string
	dead  bool
	trace []string
}

var errDead = errors.New("the coordinator is dead")

func (tr *transcript) run(t *testing.T, d *datadriven.TestData) string {
	arg := func(i int) string {
		if i >= len(d.CmdArgs) {
			d.Fatalf(t, "%s needs more arguments", d.Cmd)
		}
		return d.CmdArgs[i].Key
	}
	switch d.Cmd {
	case "stores":
		var bounds []string
		for _, a := range d.CmdArgs {
			bounds = append(bounds, a.Vals...)
		}
		tr.c = newCluster(t, nil, bounds...)
		tr.c.twoPhases = true // the transcripts show both phases
		tr.txns, tr.names = map[string]*coordinator{}, map[tso.Timestamp]string{}
		return ""
	case "begin":
		tr.begin(d, arg(0))
		return ""
	case "advance":
		pause, err := time.ParseDuration(arg(0))
		if err != nil {
			d.Fatalf(t, "%v", err)
		}
		tr.c.step.advance(pause)
		return ""
	case "restart":
		i, err := strconv.Atoi(arg(0))
		if err != nil {
			d.Fatalf(t, "%v", err)
		}
		tr.c.stores[i].Close()
		tr.c.open(i)
		return ""
	case "locks":
		return tr.locks()
	}
	co := tr.txns[arg(0)]
	if co == nil {
		d.Fatalf(t, "no transaction %s", arg(0))
	}
	out := tr.step(d, co)
	co.db.waitIdle()
	co.mu.Lock()
	defer co.mu.Unlock()
	trace := co.trace
	co.trace = nil
	return strings.Join(append(trace, out...), "\n")
}

func (tr *transcript) begin(d *datadriven.TestData, name string) {
	co := &coordinator{secondaries: make(chan struct{})}
	tr.txns[name] = co
	co.db = tr.c.db(Options{RetryBudget: 100 * time.Millisecond, Workers: 1}, func(s kv.Shard) kv.Shard {
		return &hookShard{Shard: s,
			before: func(_ context.Context, req any) error { return co.before(req) },
			after: func(_ context.Context, req, res any, err error) error {
				tr.note(co, req, res, err)
				return nil
			}}
	})
	var of string
	if d.MaybeScanArgs(tr.t, "at", &of) {
		co.txn = co.db.BeginAt(tr.txns[of].txn.StartTS())
		return
	}
	co.txn = mustBegin(tr.t, co.db)
	tr.names[co.txn.StartTS()] = name
}

// before crashes the coordinator at the chosen point.
func (co *coordinator) before(req any) error {
	if prewrite, ok := req.(*kv.PrewriteRequest); ok && co.dies == "before-primary" && holdsPrimary(prewrite) {
		<-co.secondaries
		return errDead
	}
	co.mu.Lock()
	defer co.mu.Unlock()
	if co.dead {
		return errDead
	}
	switch req := req.(type) {
	case *kv.CommitRequest:
		if co.dies == "after-prewrite" || co.dies == "after-primary" && !req.Primary {
			co.dead = true
			return errDead
		}
	case *kv.RollbackRequest, *kv.HeartbeatRequest:
		if co.dies != "" {
			co.dead = true
			return errDead
		}
	}
	return nil
}

func holdsPrimary(req *kv.PrewriteRequest) bool {
	for _, m := range req.Mutations {
		if string(m.Key) == string(req.Primary) {
			return true
		}
	}
	return false
}

// note records the coordinator's requests about other transactions' locks.
func (tr *transcript) note(co *coordinator, req, res any, err error) {
	co.mu.Lock()
	defer co.mu.Unlock()
	add := func(format string, args ...any) {
		line := fmt.Sprintf(format, args...)
		again := line + ", again and again"
		if n := len(co.trace); n > 0 && (co.trace[n-1] == line || co.trace[n-1] == again) {
			co.trace[n-1] = again // the number of repetitions depends on the waiting time
			return
		}
		co.trace = append(co.trace, line)
	}
	switch req := req.(type) {
	case *kv.PrewriteRequest:
		if co.dies == "before-primary" && err == nil {
			close(co.secondaries)
		}
	case *kv.CheckTxnStatusRequest:
		add("ask %s's primary %s: %s", tr.names[req.StartTS], req.Primary, tr.status(res.(mvcc.TxnStatus), req, err))
	case *kv.ResolveLockRequest:
		how := "back"
		if req.CommitTS != 0 {
			how = "forward"
		}
		add("roll %s %s of %s", join(req.Keys), how, tr.names[req.StartTS])
	}
}

func (tr *transcript) status(st mvcc.TxnStatus, req *kv.CheckTxnStatusRequest, err error) string {
	var missing *mvcc.TxnNotFoundError
	switch {
	case errors.As(err, &missing):
		return "nothing there yet"
	case err != nil:
		return err.Error()
	case st.CommitTS != 0:
		return "committed"
	case st.RolledBack:
		return "rolled back"
	case req.CallerTS != 0 && st.Lock.MinCommitTS > req.CallerTS:
		return "alive, will commit after us"
	}
	return "alive"
}

func (tr *transcript) locks() string {
	var out []string
	for _, l := range tr.c.locks() {
		out = append(out, fmt.Sprintf("%s: %s, primary %s", l.Key, tr.names[l.Lock.StartTS], l.Lock.Primary))
	}
	if len(out) == 0 {
		return "none"
	}
	return strings.Join(out, "\n")
}

// step runs a command of one transaction.
func (tr *transcript) step(d *datadriven.TestData, co *coordinator) []string {
	ctx := context.Background()
	switch d.Cmd {
	case "get":
		var out []string
		for _, a := range d.CmdArgs[1:] {
			value, err := co.txn.Get(ctx, []byte(a.Key))
			out = append(out, fmt.Sprintf("%s = %s", a.Key, show(value, err)))
		}
		return out
	case "scan":
		it := co.txn.Scan(ctx, kv.Span{}, ScanOptions{Reverse: d.HasArg("reverse")})
		defer it.Close()
		var out []string
		for it.Next(ctx) {
			out = append(out, fmt.Sprintf("%s = %s", it.Key(), it.Value()))
		}
		if it.Err() != nil {
			out = append(out, describe(it.Err()))
		}
		return out
	case "commit":
		d.MaybeScanArgs(tr.t, "dies", &co.dies)
		if _, err := co.txn.Commit(ctx); err != nil {
			return []string{describe(err)}
		}
		return []string{"committed"}
	}
	for _, a := range d.CmdArgs[1:] {
		if err := tr.write(d, co.txn, a); err != nil {
			return []string{describe(err)}
		}
	}
	return nil
}

func (tr *transcript) write(d *datadriven.TestData, txn *Txn, a datadriven.CmdArg) error {
	key := []byte(a.Key)
	var value []byte
	if len(a.Vals) > 0 {
		value = []byte(a.Vals[0])
	}
	switch d.Cmd {
	case "put":
		return txn.Put(key, value)
	case "insert":
		return txn.Insert(key, value)
	case "delete":
		return txn.Delete(key)
	case "lock":
		return txn.LockKeys(context.Background(), key)
	}
	d.Fatalf(tr.t, "unknown command %s", d.Cmd)
	return nil
}

func show(value []byte, err error) string {
	switch {
	case err != nil:
		return describe(err)
	case value == nil:
		return "nothing"
	}
	return string(value)
}

// describe returns an error's text without timestamps.
func describe(err error) string {
	var (
		conflict     *mvcc.WriteConflictError
		exists       *mvcc.KeyExistsError
		locked       *mvcc.KeyLockedError
		undetermined *UndeterminedError
	)
	switch {
	case errors.As(err, &undetermined):
		return "undetermined"
	case errors.As(err, &conflict):
		return fmt.Sprintf("write conflict on %s", conflict.Key)
	case errors.As(err, &exists):
		return fmt.Sprintf("%s exists", exists.Key)
	case errors.As(err, &locked):
		return fmt.Sprintf("%s is locked", locked.Key)
	}
	return err.Error()
}

func join(keys [][]byte) string {
	words := make([]string, len(keys))
	for i, k := range keys {
		words[i] = string(k)
	}
	sort.Strings(words)
	return strings.Join(words, ",")
}
