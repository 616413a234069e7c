package session

import (
	"context"
	"strings"

	"github.com/percodb/percodb/ddl"
	"github.com/percodb/percodb/planner"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// endsBlock tells the statements that a failed block still takes.
func endsBlock(tree ast.Statement) bool {
	switch tree.(type) {
	case *ast.Commit, *ast.Rollback, *ast.RollbackTo:
		return true
	}
	return false
}

func failedBlockError() error {
	return pgerror.New(pgerror.InFailedSQLTransaction,
		"current transaction is aborted, commands ignored until end of transaction block")
}

// runUtility runs a statement that has no plan. An empty tag says that the statement has completed
// itself.
func (s *Session) runUtility(ctx context.Context, tree ast.Statement, w ResultWriter) (Tag, error) {
	if s.tx.phase == failed && !endsBlock(tree) {
		return Tag{}, failedBlockError()
	}
	if err := s.resetAsOf(); err != nil && !endsBlock(tree) {
		return Tag{}, err
	}
	if readsRows(tree) {
		if err := s.nextStatement(ctx); err != nil {
			return Tag{}, err
		}
	}
	switch n := tree.(type) {
	case *ast.Begin:
		tag := verb("BEGIN")
		if n.Start {
			tag.Verb = "START TRANSACTION"
		}
		return tag, s.beginBlock(n, w)
	case *ast.Commit:
		return s.commitBlock(ctx, n, w)
	case *ast.Rollback:
		return s.rollbackBlock(n, w)
	case *ast.Savepoint:
		return verb("SAVEPOINT"), s.setSavepoint(ctx, n.Name)
	case *ast.ReleaseSavepoint:
		return verb("RELEASE"), s.releaseSavepoint(n.Name)
	case *ast.RollbackTo:
		return verb("ROLLBACK"), s.rollbackTo(n.Name)
	case *ast.SetTransaction:
		return verb("SET"), s.setTransaction(n, w)
	case *ast.Set:
		return s.runSet(n, w)
	case *ast.SetConstraints:
		return verb("SET CONSTRAINTS"), s.setConstraints(ctx, n, w)
	case *ast.AlterSystem:
		return verb("ALTER SYSTEM"), s.alterSystem(ctx, n)
	case *ast.Show:
		return verb("SHOW"), s.runShow(n, w)
	case *ast.Prepare:
		return verb("PREPARE"), s.runPrepare(ctx, n)
	case *ast.Execute:
		return Tag{}, s.runExecute(ctx, n, w)
	case *ast.Deallocate:
		return s.runDeallocate(n)
	case *ast.Explain:
		return verb("EXPLAIN"), s.runExplain(ctx, n, w)
	case *ast.Copy:
		return s.runCopy(ctx, n, w)
	case *ast.DeclareCursor:
		return verb("DECLARE CURSOR"), s.declareCursor(ctx, n)
	case *ast.Fetch:
		return s.fetch(ctx, n, w)
	case *ast.CloseCursor:
		return s.closeCursor(n)
	case *ast.Discard:
		return s.runDiscard(n, w)
	case *ast.LockTable:
		return Tag{}, pgerror.Unsupported("LOCK TABLE", "Snapshots need no table locks; write conflicts answer 40001.")
	}
	return s.runDDL(ctx, tree, w)
}

// readsRows tells the statements without plan that run one, which have a snapshot of their own where
// every statement has. FETCH goes on with its cursor's.
func readsRows(tree ast.Statement) bool {
	switch tree.(type) {
	case *ast.Explain, *ast.Copy, *ast.DeclareCursor, *ast.Execute:
		return true
	}
	return ddl.Handles(tree)
}

// columns returns a statement's output columns, nil when it yields no rows.
func (s *Session) columns(p *prepared) []Column {
	if p.plan != nil {
		if !p.plan.Returns {
			return nil
		}
		return p.plan.Root.Columns()
	}
	return s.utilityColumns(p.tree)
}

// utilityColumns returns the output columns of a statement without plan, nil when it yields no rows.
func (s *Session) utilityColumns(tree ast.Statement) []Column {
	switch n := tree.(type) {
	case *ast.Show:
		if n.Name == "all" {
			return textColumns("name", "setting", "description")
		}
		if def := s.settings.defs[strings.ToLower(n.Name)]; def != nil {
			return textColumns(def.name)
		}
		return textColumns(strings.ToLower(n.Name))
	case *ast.Explain:
		return textColumns("QUERY PLAN")
	case *ast.Execute:
		if target := s.statements.named[n.Name]; target != nil {
			return s.columns(target)
		}
	case *ast.Fetch:
		if po := s.portals.byName[n.Name]; po != nil && !n.Move {
			return s.columns(po.prepared)
		}
	}
	return nil
}

func textColumns(names ...string) []Column {
	cols := make([]Column, len(names))
	for i, name := range names {
		cols[i] = Column{Name: name, Type: types.TText}
	}
	return cols
}

func (s *Session) runSet(n *ast.Set, w ResultWriter) (Tag, error) {
	tag := verb("SET")
	if n.Default {
		tag = verb("RESET")
	}
	s.noteSettings()
	if n.Default && n.Name == "all" {
		for _, def := range s.settings.defs {
			if !def.fixed {
				if err := s.settings.reset(def.name); err != nil {
					return tag, err
				}
			}
		}
		s.refreshEnv()
		return tag, nil
	}
	if _, ok := s.modeSetting(strings.ToLower(n.Name)); ok && len(n.Values) <= 1 {
		if n.Default && !s.inBlock() {
			w.Notice(pgerror.New(pgerror.NoActiveSQLTransaction, "RESET TRANSACTION can only be used in transaction blocks"))
		}
		return tag, s.setModeSetting(strings.ToLower(n.Name), strings.Join(n.Values, ""), n.Default)
	}
	if n.Local {
		return tag, s.setLocal(n, w)
	}
	delete(s.tx.locals, strings.ToLower(n.Name)) // A SET outlives the SET LOCAL before it.
	if n.Default {
		return tag, s.resetSetting(n.Name)
	}
	return tag, s.changeSetting(n.Name, strings.Join(n.Values, ", "))
}

// noteSettings keeps the settings as they were, so that a rollback brings them back.
func (s *Session) noteSettings() {
	if s.tx.settings == nil {
		s.tx.settings = s.settings.snapshot()
	}
}

// setLocal changes a setting until the transaction ends.
func (s *Session) setLocal(n *ast.Set, w ResultWriter) error {
	if !s.inBlock() {
		w.Notice(pgerror.New(pgerror.NoActiveSQLTransaction, "SET LOCAL can only be used in transaction blocks"))
		return nil
	}
	s.noteLocal(n.Name)
	if n.Default {
		return s.resetSetting(n.Name)
	}
	return s.changeSetting(n.Name, strings.Join(n.Values, ", "))
}

// noteLocal keeps the value that a change until the end of the transaction hides.
func (s *Session) noteLocal(name string) {
	key := strings.ToLower(name)
	before, known := s.settings.get(key)
	if _, noted := s.tx.locals[key]; noted || !known {
		return
	}
	if s.tx.locals == nil {
		s.tx.locals = map[string]string{}
	}
	s.tx.locals[key] = before
}

func (s *Session) changeSetting(name, value string) error {
	_, err := s.settings.set(name, value)
	s.refreshEnv()
	return err
}

func (s *Session) resetSetting(name string) error {
	err := s.settings.reset(name)
	s.refreshEnv()
	return err
}

func (s *Session) runShow(n *ast.Show, w ResultWriter) error {
	cols := s.utilityColumns(n)
	if n.Name == "all" {
		rows := make([]types.Row, 0, len(s.settings.defs))
		for _, r := range s.settings.all() {
			if live, ok := s.gcSetting(r[0]); ok {
				r[1] = live
			}
			rows = append(rows, types.Row{types.Text(r[0]), types.Text(r[1]), types.Text(r[2])})
		}
		return s.sendRows(cols, rows, w)
	}
	value, err := s.showSetting(n.Name)
	if err != nil {
		return err
	}
	return s.sendRows(cols, []types.Row{{types.Text(value)}}, w)
}

// showSetting returns a setting's value as SHOW and current_setting print it.
func (s *Session) showSetting(name string) (string, error) {
	if value, ok := s.modeSetting(strings.ToLower(name)); ok {
		return value, nil
	}
	if value, ok := s.gcSetting(strings.ToLower(name)); ok {
		return value, nil
	}
	value, ok := s.settings.get(name)
	if !ok {
		return "", unknownSetting(name)
	}
	return value, nil
}

// sendRows sends a row set made here; the caller completes it.
func (s *Session) sendRows(cols []Column, rows []types.Row, w ResultWriter) error {
	if err := w.Columns(cols, s.formats, s.simple); err != nil {
		return err
	}
	for _, row := range rows {
		if err := w.Row(row); err != nil {
			return err
		}
	}
	return nil
}

func (s *Session) runDiscard(n *ast.Discard, w ResultWriter) (Tag, error) {
	tag := verb("DISCARD " + n.What)
	switch n.What {
	case "ALL":
		if !s.inBlock() && s.tx.pipeline.executed > 1 {
			return Tag{}, pgerror.New(pgerror.ActiveSQLTransaction, "DISCARD ALL cannot be executed within a pipeline")
		}
		if s.inBlock() {
			return Tag{}, pgerror.New(pgerror.ActiveSQLTransaction, "DISCARD ALL cannot run inside a transaction block")
		}
		s.portals.removeCursors()
		s.statements.removeAll()
		s.plans.clear()
		_, err := s.runSet(&ast.Set{Name: "all", Default: true}, w)
		s.sequences.discard()
		return tag, err
	case "SEQUENCES":
		s.sequences.discard()
	case "PLANS":
		s.plans.clear()
	}
	return tag, nil
}

func (s *Session) runPrepare(ctx context.Context, n *ast.Prepare) error {
	if err := s.statements.free(n.Name); err != nil {
		return err
	}
	declared := make([]types.Type, len(n.Types))
	for i := range n.Types {
		t, err := planner.ResolveType(&n.Types[i])
		if err != nil {
			return err
		}
		declared[i] = t
	}
	p := &prepared{name: n.Name, declared: declared}
	s.lexer.Reset(n.Text)
	st, err := s.lexer.Next()
	if err != nil {
		return err
	}
	p.statement = st.Clone()
	if err := s.prepare(ctx, p, false); err != nil {
		return err
	}
	return s.statements.add(p)
}

// runExecute is EXECUTE: the arguments are expressions, cast to the parameters' types.
func (s *Session) runExecute(ctx context.Context, n *ast.Execute, w ResultWriter) error {
	p, err := s.statements.find(n.Name)
	if err != nil {
		return err
	}
	s.lockFirst(p.plan)
	if err := s.current(ctx, p, false); err != nil {
		return err
	}
	if len(n.Args) != len(p.params) {
		e := pgerror.New(pgerror.SyntaxError, "wrong number of parameters for prepared statement %q", n.Name)
		return e.WithDetail("Expected %d parameters but got %d.", len(p.params), len(n.Args))
	}
	if p.plan == nil {
		return s.execute(ctx, &run{planned: true, tree: p.tree, formats: s.formats, completes: true}, w)
	}
	params, err := s.evalArguments(ctx, n.Args, p.params)
	if err != nil {
		return err
	}
	r := &run{
		portal: &portal{prepared: p}, planned: true, plan: p.plan, literals: p.statement.Literals, params: params, formats: s.formats, announce: s.simple, completes: true,
		begun: s.tx.pipeline.first != nil,
	}
	if !s.inBlock() && s.simple {
		r.policy = alone
	}
	return s.execute(ctx, r, w)
}

func (s *Session) runDeallocate(n *ast.Deallocate) (Tag, error) {
	if n.Name == "" {
		s.statements.removeNamed()
		return verb("DEALLOCATE ALL"), nil
	}
	if _, err := s.statements.find(n.Name); err != nil {
		return Tag{}, err
	}
	s.statements.remove(n.Name)
	return verb("DEALLOCATE"), nil
}
