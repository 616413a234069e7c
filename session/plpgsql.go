package session

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/executor"
	"github.com/percodb/percodb/internal/errkind"
	"github.com/percodb/percodb/internal/memory"
	"github.com/percodb/percodb/planner"
	"github.com/percodb/percodb/plpgsql"
	"github.com/percodb/percodb/session/settings"
	"github.com/percodb/percodb/sql"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/builtin"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

var _ plpgsql.Host = (*procedural)(nil)

// procedural executes functions in PL/pgSQL within the session's transaction. It implements plpgsql.Host.
type procedural struct {
	tx       *transaction
	plans    *plans
	portals  *portals
	runner   *statementRunner
	commands *commands
	cursors  *cursors
	settings *settings.Settings
	env      *builtin.Env
	warnings *warnings
	stack    plpgsql.Stack
	codes    map[codeKey]*keptCode
	w        ResultWriter // of the statement of the client
	// calls counts the plans that are being executed and call functions: their snapshot stays.
	calls  int
	opened int // numbers the cursors without a name
	// transitions are what the statements of the trigger that is being executed may read; nil: nothing.
	transitions *statementRows
	triggers    int      // that are being executed within each other
	firing      []uint64 // the tables of these triggers, by id
	// settle is executor.TriggerCall.Settle of the trigger that is being executed; nil: there is nothing to do.
	settle func(ctx context.Context) error
}

// Planned implements plpgsql.Plan.
func (c *cachedPlan) Planned() *planner.Plan { return c.Plan }

// do is DO. Outside of a block its statements share a transaction, which it may end; ends is false where it must not.
func (h *procedural) do(ctx context.Context, n *ast.Do, w ResultWriter, ends bool) error {
	source, language := "", "plpgsql"
	sources, languages := 0, 0
	for _, o := range n.Options {
		if o.Kind == "LANGUAGE" {
			language = o.Values[0]
			languages++
		} else {
			source = o.Values[0]
			sources++
		}
		if sources > 1 || languages > 1 {
			return pgerror.New(pgerror.SyntaxError, "conflicting or redundant options").At(int(o.Pos))
		}
	}
	switch {
	case sources == 0:
		return pgerror.New(pgerror.SyntaxError, "no inline code specified")
	case language == "plpgsql":
	case language == "sql", language == "c", language == "internal":
		return pgerror.New(pgerror.FeatureNotSupported, "language \"%s\" does not support inline code execution", language)
	default:
		return pgerror.New(pgerror.UndefinedObject, "language \"%s\" does not exist", language)
	}
	if err := h.tx.use(ctx); err != nil {
		return err
	}
	f, err := plpgsql.Parse(ctx, plpgsql.Inline(), source, h.tx.resolver, h.plans.meter, h.Options(), nil)
	if err != nil {
		return err
	}
	outer := h.w
	h.w = w
	defer func() { h.w = outer }()
	_, err = plpgsql.NewCode(f).Execute(ctx, h, &plpgsql.Call{Atomic: !ends})
	return err
}

// Env implements plpgsql.Host.
func (h *procedural) Env() *builtin.Env { return h.env }

// Options implements plpgsql.Host.
func (h *procedural) Options() *plpgsql.Options { return &h.settings.Procedural }

// Meter implements plpgsql.Host.
func (h *procedural) Meter() *sql.Meter { return h.plans.meter }

// Stack implements plpgsql.Host.
func (h *procedural) Stack() *plpgsql.Stack { return &h.stack }

// Schema implements plpgsql.Host.
func (h *procedural) Schema(ctx context.Context) (catalog.Resolver, error) {
	if err := h.tx.begin(ctx); err != nil {
		return nil, err
	}
	return h.tx.resolver, nil
}

// Epoch implements plpgsql.Host.
func (h *procedural) Epoch() uint64 {
	if h.tx.resolver == nil {
		return 0 // No plan was found to hold then.
	}
	return h.tx.views
}

// Plan implements plpgsql.Host.
func (h *procedural) Plan(ctx context.Context, tree ast.Statement, opts planner.Options) (plpgsql.Plan, error) {
	r, err := h.Schema(ctx)
	if err != nil {
		return nil, err
	}
	if q, ok := tree.(*ast.Query); ok && q.AsOf() != nil {
		return nil, pgerror.Unsupported(asOfClause+" in a function", "Give it to the statement that calls the function, or to BEGIN.")
	}
	mark := h.plans.meter.Drawn()
	c, err := h.plans.buildWith(ctx, tree, h.transitions.over(r), opts)
	if err != nil {
		return nil, err
	}
	h.plans.meter.Release(mark)
	return c, nil
}

// Holds implements plpgsql.Host.
func (h *procedural) Holds(ctx context.Context, p plpgsql.Plan) (bool, error) {
	c := p.(*cachedPlan)
	if err := h.tx.begin(ctx); err != nil {
		return false, err
	}
	if ok, err := c.holds(ctx, h.tx, h.transitions.over(h.tx.resolver)); !ok || err != nil {
		return false, err
	}
	return true, h.tx.authorize(ctx, c)
}

// Begin implements plpgsql.Host. Functions that a plan calls keep its snapshot.
func (h *procedural) Begin(ctx context.Context, readOnly bool) error {
	if err := h.settleOuter(ctx); err != nil {
		return err
	}
	if h.calls > 0 || readOnly {
		return h.tx.begin(ctx)
	}
	if !h.tx.queried {
		return h.tx.use(ctx)
	}
	return h.tx.nextStatement(ctx)
}

// rowSink passes the rows of a statement of a function on, and its notices to the client.
type rowSink struct {
	rowCollector
	h       *procedural
	to      plpgsql.Sink
	columns []Column
	tag     Tag
}

func (s *rowSink) Columns(columns []Column, _ []int16, _ bool) error {
	s.columns = columns
	return nil
}

func (s *rowSink) Row(row types.Row) error { return s.to.Row(row) }

func (s *rowSink) Complete(tag Tag) error {
	s.tag = tag
	return nil
}

func (s *rowSink) Revoke() bool {
	s.to.Reset()
	return true
}

// RevokeRows implements ResultWriter.
func (s *rowSink) RevokeRows() { s.to.Reset() }

func (s *rowSink) Notice(n *pgerror.Error) {
	c := *n
	if c.Where == "" {
		c.Where = s.h.stack.Context()
	}
	s.h.Notice(&c)
}

// nested sets up the session for a statement within another one, and returns what undoes that.
func (h *procedural) nested() func() {
	to, pinned, stmtTime := h.warnings.to, h.env.PinAll(), h.env.StmtTime
	return func() {
		h.env.Pin(-pinned)
		h.warnings.to, h.env.StmtTime = to, stmtTime
	}
}

// settleOuter writes what the statement has changed that executes a trigger before a row.
func (h *procedural) settleOuter(ctx context.Context) error {
	if h.settle == nil {
		return nil
	}
	settle := h.settle
	h.settle = nil
	return settle(ctx)
}

// Run implements plpgsql.Host.
func (h *procedural) Run(ctx context.Context, p plpgsql.Plan, params types.Row, limit int, to plpgsql.Sink) (plpgsql.Result, error) {
	defer h.nested()()
	c := p.(*cachedPlan)
	if h.tx.resolver == nil || c.version != h.tx.resolver.Version() {
		ok, err := h.Holds(ctx, c)
		if err != nil {
			return plpgsql.Result{}, err
		}
		if !ok { // The statement's snapshot has another schema than the one under which it was bound.
			return plpgsql.Result{}, c.changedError()
		}
	}
	r := &run{planned: true, plan: c, params: params, keeps: true, quiet: true, maxRows: limit, nested: h.calls > 0}
	tag, err := h.runner.executePlan(ctx, r, &rowSink{h: h, to: to})
	if err == nil && r.suspended {
		err = r.close()
	}
	return plpgsql.Result{Verb: tag.Verb, Rows: tag.Rows}, err
}

// CallProcedure implements plpgsql.Host.
func (h *procedural) CallProcedure(ctx context.Context, p plpgsql.Plan, params types.Row, atomic bool, to plpgsql.Sink) error {
	defer h.nested()()
	r := &run{planned: true, plan: p.(*cachedPlan), params: params, keeps: true, quiet: true, nested: h.calls > 0, ends: !atomic}
	_, err := h.runner.executePlan(ctx, r, &rowSink{h: h, to: to})
	return err
}

// Command implements plpgsql.Host.
func (h *procedural) Command(ctx context.Context, tree ast.Statement, to plpgsql.Sink) (plpgsql.Result, error) {
	if _, ok := tree.(*ast.CallProcedure); ok {
		p, err := h.Plan(ctx, tree, planner.Options{NoSlots: true})
		if err != nil {
			return plpgsql.Result{}, err
		}
		return h.Run(ctx, p, nil, 0, to)
	}
	if err := h.settleOuter(ctx); err != nil {
		return plpgsql.Result{}, err
	}
	if err := h.refuseInUse(ctx, tree); err != nil {
		return plpgsql.Result{}, err
	}
	defer h.nested()()
	s := &rowSink{h: h, to: to}
	if do, ok := tree.(*ast.Do); ok {
		return plpgsql.Result{Verb: "DO", Rows: -1}, h.do(ctx, do, h.w, false)
	}
	if h.calls > 0 && h.tx.pessimistic && !h.tx.phase.shared() { // The rest of the statement is as that of a block.
		h.tx.phase.on(share)
	}
	if h.calls > 0 && !h.tx.phase.shared() {
		return plpgsql.Result{}, pgerror.Unsupported(fmt.Sprintf("%s in a function that is called outside of a transaction block", changeName(tree)), "")
	}
	r := &run{tree: tree}
	run := func() (Tag, error) { return h.commands.run(ctx, tree, request{w: s}) }
	var tag Tag
	var err error
	if class := h.commands.audit.class(tree); class != "" {
		tag, err = h.commands.audit.run(r, class, run)
	} else {
		tag, err = run()
	}
	if err == nil && tag.Verb == "" { // EXECUTE has sent its own.
		tag = s.tag
	}
	return plpgsql.Result{Verb: tag.Verb, Rows: max(tag.Rows, 0), Columns: s.columns}, err
}

// Open implements plpgsql.Host.
func (h *procedural) Open(ctx context.Context, name string, p plpgsql.Plan, params types.Row, scroll plpgsql.Scroll) (string, error) {
	defer h.nested()()
	loop := name == "" && scroll.NoScroll
	for name == "" || loop && h.portals.byName[name] != nil {
		h.opened++
		name = fmt.Sprintf("<unnamed portal %d>", h.opened)
	}
	if err := h.portals.free(name); err != nil {
		return "", err
	}
	c := p.(*cachedPlan)
	po := &portal{name: name, prepared: &prepared{plan: c}, cursor: true, pinned: loop, at: h.env.StmtTime, memory: h.env.Memory}
	po.depth, po.fresh = len(h.tx.savepoints), true
	po.run = run{planned: true, plan: c, params: params, keeps: true, quiet: true, nested: h.calls > 0}
	if locks := c.Locks != ""; locks && scroll.Scroll {
		return "", pgerror.New(pgerror.FeatureNotSupported, "DECLARE SCROLL CURSOR ... FOR %s is not supported", c.Locks).WithDetail("Scrollable cursors must be READ ONLY.")
	} else if !scroll.NoScroll && !locks {
		po.scroll = scrollable(c, h.env, scroll.Scroll)
	}
	po.scroll.width = len(h.cursors.describer.columns(po.prepared))
	if err := h.cursors.open(ctx, po, false); err != nil {
		po.close()
		return "", err
	}
	h.portals.add(po)
	return name, nil
}

// scrollable makes the place of a cursor that can go back.
func scrollable(c *cachedPlan, env *builtin.Env, declared bool) scroll {
	return scroll{rows: executor.NewRowList(c.Root.Columns(), &executor.Runtime{Env: env}), bounded: !declared}
}

// Columns implements plpgsql.Host.
func (h *procedural) Columns(name string) ([]planner.Column, error) {
	po := h.portals.cursor(name)
	if po == nil {
		return nil, noCursor(name)
	}
	return h.cursors.describer.columns(po.prepared), nil
}

func noCursor(name string) error {
	return pgerror.New(pgerror.InvalidCursorName, "cursor \"%s\" does not exist", name)
}

// Fetch implements plpgsql.Host.
func (h *procedural) Fetch(ctx context.Context, name string, f *ast.Fetch, to plpgsql.Sink) (int64, error) {
	defer h.nested()()
	po := h.portals.cursor(name)
	if po == nil {
		return 0, noCursor(name)
	}
	m := &movement{c: h.cursors, ctx: ctx, po: po, w: &rowSink{h: h, to: to}}
	if f.Move {
		m.w = discarded
	}
	return m.run(f)
}

// Close implements plpgsql.Host.
func (h *procedural) Close(name string) error {
	if h.portals.cursor(name) == nil {
		return noCursor(name)
	}
	h.portals.remove(name)
	return nil
}

// Savepoint implements plpgsql.Host.
func (h *procedural) Savepoint(ctx context.Context) error {
	if err := h.settleOuter(ctx); err != nil {
		return err
	}
	if err := h.tx.begin(ctx); err != nil {
		return err
	}
	h.tx.queried = true
	h.tx.mark("")
	return nil
}

// Release implements plpgsql.Host.
func (h *procedural) Release() {
	if n := len(h.tx.savepoints); n > 0 {
		h.tx.savepoints = h.tx.savepoints[:n-1]
		h.portals.releaseSavepoint(n - 1)
	}
}

// RollbackTo implements plpgsql.Host.
func (h *procedural) RollbackTo() {
	if n := len(h.tx.savepoints); n > 0 {
		h.tx.undoTo(n - 1)
		h.Release()
	}
}

// EndTransaction implements plpgsql.Host.
func (h *procedural) EndTransaction(ctx context.Context, commit, chain bool) error {
	for _, po := range h.portals.byName {
		if !po.pinned || po.outlives {
			continue
		}
		if p := po.run.plan; p.Tag != "SELECT" || len(p.Modifying) > 0 {
			return pgerror.New(pgerror.ObjectNotInPrerequisite, "cannot perform transaction commands inside a cursor loop that is not read-only")
		}
		if po.run.runner != nil {
			if err := po.run.runner.Detach(ctx); err != nil {
				return err
			}
		}
		po.outlives, po.fresh = true, false
	}
	h.w.Commit() // What has been done is not repeated.
	modes := h.tx.modes
	if commit {
		if err := h.tx.commit(ctx); err != nil {
			return err
		}
	} else {
		h.tx.abort()
	}
	h.tx.phase.on(share)
	if chain {
		h.tx.modes, h.tx.fixed = modes, true
	}
	return h.tx.begin(ctx) // SET TRANSACTION may follow.
}

// messageLevels are the severities of messages, in the order of client_min_messages.
var messageLevels = map[string]int{
	"debug5": 0, "debug4": 1, "debug3": 2, "debug2": 3, "debug1": 4, "debug": 4, "log": 5, "notice": 6, "warning": 7, "error": 8,
}

// Notice implements plpgsql.Host.
func (h *procedural) Notice(n *pgerror.Error) {
	severity := n.Severity
	if severity == "" {
		if severity = "NOTICE"; strings.HasPrefix(string(n.Code), "01") {
			severity = "WARNING"
		}
	}
	least, _ := h.settings.Get("client_min_messages")
	if severity != "INFO" && messageLevels[strings.ToLower(severity)] < messageLevels[least] {
		return
	}
	if severity == "DEBUG" {
		c := *n
		c.Severity = "DEBUG1"
		n = &c
	}
	if h.w != nil {
		h.w.Notice(n)
	}
}

// Explain implements plpgsql.Host. Handlers do not catch what ends the client's statement or has it run again.
func (h *procedural) Explain(err error) (*pgerror.Error, bool) {
	var pg *pgerror.Error
	if errors.As(err, &pg) {
		canceled := pg.Code == pgerror.QueryCanceled && h.env.Ctx.Err() != nil // Else RAISE has made it.
		return pg, !canceled && pg.Code != pgerror.AdminShutdown && pg.Code != pgerror.ConnectionFailure
	}
	if _, full := errkind.As[*memory.ExceededError](err); full {
		return ToPGError(err), true
	}
	if errkind.Of(err) == errkind.LockNotAvailable {
		e := explainError(h.env.Ctx, err, errorContext{resolver: h.tx.resolver, inForce: h.tx.knownInForce, role: h.tx.acting.current, format: &h.settings.Format})
		return ToPGError(e), true
	}
	return ToPGError(err), false
}
