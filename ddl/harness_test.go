package ddl

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/catalog/pgcatalog"
	"github.com/percodb/percodb/check"
	"github.com/percodb/percodb/executor"
	"github.com/percodb/percodb/internal/tsotest"
	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/kv/mvcc"
	"github.com/percodb/percodb/kv/storage"
	"github.com/percodb/percodb/percolator"
	"github.com/percodb/percodb/planner"
	"github.com/percodb/percodb/rowenc"
	"github.com/percodb/percodb/sql"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/builtin"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
	"github.com/percodb/percodb/tso"
)

// server is a store in memory with a catalog.
type server struct {
	t       testing.TB
	db      *percolator.DB
	catalog *catalog.Catalog
	chunk   int  // ChunkBytes
	whole   bool // OneTransaction
	online  int  // OnlineRows
}

func newServer(t testing.TB, opts catalog.Options) *server {
	t.Helper()
	oracle := &tsotest.ClockOracle{}
	store := openStore(t, oracle, "one", true)
	return newServerOver(t, store.Router(), oracle, opts)
}

// newSplitServer makes a server whose keys lie in two stores, so that most transactions on a table with
// indexes commit in two phases: rows as they are first written in one, entries and rewritten rows of
// the first tables in the other.
func newSplitServer(t testing.TB, opts catalog.Options) *server {
	t.Helper()
	oracle := &tsotest.ClockOracle{}
	r := &splitRouter{bound: rowenc.AppendIndexPrefix(nil, 16384, 2)}
	for i, name := range []string{"low", "high"} {
		r.stores[i] = openStore(t, oracle, name, false)
	}
	return newServerOver(t, r, oracle, opts)
}

func openStore(t testing.TB, oracle tso.Oracle, name string, embedded bool) *kv.Store {
	t.Helper()
	store, err := kv.Open(context.Background(), kv.Options{
		Dir: "data", FS: storage.NewMemFS(), Oracle: oracle, EmbeddedOracle: embedded, ShardID: name,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	return store
}

func newServerOver(t testing.TB, router kv.Router, oracle tso.Oracle, opts catalog.Options) *server {
	t.Helper()
	s := &server{t: t, db: percolator.New(router, oracle, percolator.Options{SpillBytes: 4 << 10}), chunk: 512}
	t.Cleanup(func() { s.db.Close() })
	s.catalog = s.open(opts)
	return s
}

// splitRouter gives the keys below bound to one store and the others to another.
type splitRouter struct {
	stores [2]*kv.Store
	bound  []byte
}

func (r *splitRouter) clip(i int, d *kv.RangeDescriptor, shard kv.Shard, err error) (*kv.RangeDescriptor, kv.Shard, error) {
	if err != nil {
		return nil, nil, err
	}
	c := *d
	if i == 0 && (len(c.Span.End) == 0 || bytes.Compare(c.Span.End, r.bound) > 0) {
		c.Span.End = r.bound
	}
	if i == 1 && bytes.Compare(c.Span.Start, r.bound) < 0 {
		c.Span.Start = r.bound
	}
	return &c, shard, nil
}

func (r *splitRouter) Locate(ctx context.Context, key []byte) (*kv.RangeDescriptor, kv.Shard, error) {
	i := 0
	if bytes.Compare(key, r.bound) >= 0 {
		i = 1
	}
	d, shard, err := r.stores[i].Router().Locate(ctx, key)
	return r.clip(i, d, shard, err)
}

func (r *splitRouter) LocateEnd(ctx context.Context, end []byte) (*kv.RangeDescriptor, kv.Shard, error) {
	i := 1
	if len(end) > 0 && bytes.Compare(end, r.bound) <= 0 {
		i = 0
	}
	d, shard, err := r.stores[i].Router().LocateEnd(ctx, end)
	return r.clip(i, d, shard, err)
}

func (r *splitRouter) Invalidate(*kv.StaleRangeError) {}

func (r *splitRouter) CreateRange(context.Context, kv.Span) error { return nil }

func (r *splitRouter) Ranges(ctx context.Context) ([]kv.RangeDescriptor, error) {
	return r.stores[0].Router().Ranges(ctx)
}

func (r *splitRouter) RangeSizes(ctx context.Context) (map[uint64]int64, error) {
	return r.stores[0].Router().RangeSizes(ctx)
}

// open opens a catalog over the store, as another process would.
func (s *server) open(opts catalog.Options) *catalog.Catalog {
	s.t.Helper()
	opts.System = pgcatalog.Tables()
	c, err := catalog.New(context.Background(), s.db, opts)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = c.Close(context.Background()) })
	return c
}

// session is a small stand-in for package session: it runs statements alone or in a block.
type session struct {
	blocks percolator.TxnOptions // of transaction blocks
	*server
	guard   *catalog.Guard
	txn     *percolator.Txn // of the block, nil outside
	env     builtin.Env
	now     catalog.Resolver
	notices []string
	user    uint32 // the role that executes statements
	// committed is the commit_ts of the last statement outside of a block.
	committed tso.Timestamp
	// cancelRow, if set, is told of progress.
	cancelRow func(rows int64)
}

func (s *server) session() *session {
	c := &session{server: s, guard: s.catalog.NewGuard()}
	objects := &pgcatalog.Objects{Resolver: func() catalog.Resolver { return c.now }}
	c.env = builtin.Env{Catalog: objects, Sequences: c, Format: types.Format{Names: objects}}
	return c
}

func (s *session) Notice(n *pgerror.Error) {
	s.notices = append(s.notices, strings.TrimRight("NOTICE "+string(n.Code)+": "+n.Message+"\n"+n.Detail, "\n"))
}
func (s *session) Progress(_ string, rows int64) {
	if s.cancelRow != nil {
		s.cancelRow(rows)
	}
}

func (s *session) State(context.Context, types.OID, bool) (int64, bool, error) {
	return 0, false, nil
}
func (s *session) LastVal(context.Context) (int64, error)               { return 0, nil }
func (s *session) CurrVal(context.Context, types.OID) (int64, error)    { return 0, nil }
func (s *session) SetVal(context.Context, types.OID, int64, bool) error { return nil }

func (s *session) NextVal(ctx context.Context, oid types.OID) (int64, error) {
	t, err := s.now.RelationByID(ctx, uint64(oid))
	if err != nil || t == nil {
		return 0, fmt.Errorf("no sequence %d: %w", oid, err)
	}
	return s.catalog.NextVal(ctx, t)
}

// exec runs the statements of a text and returns what a client would see.
func (s *session) exec(text string) string { return s.execCtx(context.Background(), text) }

func (s *session) execCtx(ctx context.Context, text string) string {
	var out strings.Builder
	lexer := sql.NewLexer()
	lexer.Reset(text)
	for {
		st, err := lexer.Next()
		if err == io.EOF {
			return out.String()
		}
		if err == nil {
			var result string
			s.notices = nil
			if result, err = s.statement(ctx, st.Clone()); err == nil {
				for _, n := range s.notices {
					out.WriteString(n + "\n")
				}
				out.WriteString(result + "\n")
			}
		}
		if err != nil {
			out.WriteString(s.explain(err) + "\n")
			return out.String()
		}
	}
}

func (s *session) explain(err error) string {
	var pg *pgerror.Error
	var exists *mvcc.KeyExistsError
	if errors.As(err, &exists) && !errors.As(err, &pg) {
		pg = executor.UniqueViolation(context.Background(), s.now, s.now, 0, exists.Key)
	}
	if pg == nil && !errors.As(err, &pg) {
		return fmt.Sprintf("ERROR %T: %v", err, err)
	}
	text := "ERROR " + string(pg.Code) + ": " + pg.Message
	if pg.Detail != "" {
		text += "\nDETAIL: " + pg.Detail
	}
	if pg.Hint != "" {
		text += "\nHINT: " + pg.Hint
	}
	return text
}

func (s *session) statement(ctx context.Context, st *sql.Statement) (string, error) {
	tree, err := sql.Parse(st, nil)
	if err != nil {
		return "", err
	}
	switch tree.(type) {
	case *ast.Begin:
		s.txn, err = s.db.BeginTxn(ctx, s.blocks)
		s.guard.Reset(s.txn)
		return "BEGIN", err
	case *ast.Commit:
		return "COMMIT", s.commit(ctx)
	case *ast.Rollback:
		s.rollback()
		return "ROLLBACK", nil
	}
	if Handles(tree) {
		return s.ddl(ctx, tree)
	}
	if s.txn != nil {
		return s.query(ctx, s.txn, tree, st.Literals)
	}
	for {
		txn, err := s.db.Begin(ctx)
		if err != nil {
			return "", err
		}
		s.guard.Reset(txn)
		result, err := s.query(ctx, txn, tree, st.Literals)
		if err == nil {
			err = s.guard.Wait(ctx)
		}
		if err == nil {
			s.committed, err = s.guard.Commit(ctx)
		} else {
			s.guard.Done(ctx, 0, err)
		}
		var changed *catalog.SchemaChangedError
		var conflict *mvcc.WriteConflictError
		if !errors.As(err, &changed) && !errors.As(err, &conflict) && !errors.Is(err, percolator.ErrCommitTooLate) {
			return result, err
		}
	}
}

func (s *session) commit(ctx context.Context) error {
	if s.txn == nil {
		return nil
	}
	err := s.guard.Wait(ctx)
	if err == nil {
		_, err = s.guard.Commit(ctx)
	} else {
		s.guard.Done(ctx, 0, err)
	}
	s.txn = nil
	return err
}

func (s *session) rollback() {
	if s.txn != nil {
		_ = s.txn.Rollback(context.Background())
		s.guard.Done(context.Background(), 0, nil)
		s.txn = nil
	}
}

func (s *session) deps() Deps {
	d := Deps{Database: "percodb", DB: s.db, Catalog: s.catalog, Env: &s.env, Report: s, ChunkBytes: s.chunk, OneTransaction: s.whole, OnlineRows: s.online, ProgressRows: 1, User: s.user, SessionUser: s.user}
	if s.txn != nil {
		d.Txn, d.Guard = s.txn, s.guard
	}
	d.CheckSetting = func(name, _ string) (string, error) { return name, nil }
	d.SuperuserSetting = func(string) bool { return false }
	d.Exec = func(ctx context.Context, e Execution) ([]types.Row, int64, error) {
		under := e.PlanUnder
		if under == nil {
			under = e.Resolver
		}
		plan, err := planner.Build(ctx, e.Statement, under, &s.env, planner.Options{NoSlots: true})
		if err != nil {
			return nil, 0, err
		}
		_, rows, err := s.execute(ctx, e.Txn, e.Resolver, plan, nil)
		return nil, rows, err
	}
	return d
}

func (s *session) ddl(ctx context.Context, tree ast.Statement) (string, error) {
	if s.txn == nil {
		txn, err := s.db.Begin(ctx)
		if err != nil {
			return "", err
		}
		if s.now, err = s.catalog.At(ctx, txn); err != nil {
			return "", err
		}
	} else {
		var err error
		if s.now, err = s.catalog.At(ctx, s.txn); err != nil {
			return "", err
		}
	}
	return Run(ctx, tree, s.deps())
}

// query runs a statement that has a plan; rows come one a line.
func (s *session) query(ctx context.Context, txn *percolator.Txn, tree ast.Statement, literals []sql.Literal) (string, error) {
	r, err := s.catalog.At(ctx, txn)
	if err != nil {
		return "", err
	}
	s.now = r
	plan, err := planner.Build(ctx, tree, r, &s.env, planner.Options{Literals: literals})
	if err != nil {
		return "", err
	}
	if !plan.ReadOnly {
		for _, t := range plan.Relations {
			s.guard.Writes(t, 1)
		}
	}
	inputs, err := planner.Inputs(plan, literals, nil, &s.env, nil)
	if err != nil {
		return "", err
	}
	lines, rows, err := s.execute(ctx, txn, r, plan, inputs)
	if err != nil || plan.Returns {
		return strings.Join(lines, "\n"), err
	}
	return fmt.Sprintf("%s %d", plan.Tag, rows), nil
}

func (s *session) execute(ctx context.Context, txn *percolator.Txn, r catalog.Resolver, plan *planner.Plan, inputs types.Row) ([]string, int64, error) {
	op, err := executor.Build(plan, &executor.Runtime{Txn: txn, Resolver: r, Env: &s.env, Inputs: inputs, RowIDs: s.catalog, EagerUnique: s.txn != nil})
	if err != nil {
		return nil, 0, err
	}
	defer op.Close()
	if err := op.Open(ctx); err != nil {
		return nil, 0, err
	}
	var lines []string
	for {
		row, err := op.Next(ctx)
		if err != nil {
			return nil, 0, err
		}
		if row == nil {
			break
		}
		var fields []string
		for i, c := range plan.Root.Columns() {
			if row[i].IsNull() {
				fields = append(fields, "NULL")
				continue
			}
			fields = append(fields, string(types.AppendText(nil, row[i], c.Type, &s.env.Format)))
		}
		lines = append(lines, strings.Join(fields, "|"))
	}
	return lines, op.Affected(), nil
}

// verify runs package check and returns its findings.
func (s *server) verify() string {
	s.t.Helper()
	ctx := context.Background()
	txn, err := s.db.Begin(ctx)
	if err != nil {
		s.t.Fatal(err)
	}
	resolver, err := s.catalog.At(ctx, txn)
	if err != nil {
		s.t.Fatal(err)
	}
	env := &builtin.Env{TextSearch: func() builtin.TextSearch { return resolver.TextSearch() }}
	var out strings.Builder
	_, err = check.Run(ctx, check.Source{Resolver: resolver, Txn: txn, Env: env}, check.Report{Finding: func(f check.Finding) error {
		out.WriteString("FINDING " + f.String() + "\n")
		return nil
	}})
	if err != nil {
		s.t.Fatal(err)
	}
	return out.String()
}
