package session

import (
	"context"
	"errors"
	"strings"

	"github.com/percodb/percodb/ddl"
	"github.com/percodb/percodb/sql"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// commands runs the statements that have no plan of their own. Each family of them is a part with what it needs.
type commands struct {
	tx        *transaction
	travel    *timeTravel
	portals   *portals
	plans     *plans
	sequences *sequences

	notifications *notifications

	blocks   blocks
	settings settingCommands
	prepared preparedCommands
	cursors  cursors
	copies   copyCommands
	explain  explainCommands
	schema   schemaCommands
	audit    *auditor

	procedural procedural
	routines   routines
	observers  observerCommands
	system     systemCommands
}

// request is how a statement without plan answers.
type request struct {
	w       ResultWriter
	formats []int16        // of its rows
	simple  bool           // it came as a simple query: its columns are announced
	text    *sql.Statement // the statement; nil: it is part of another one
}

// placing moves the positions of notices to the statement's text.
type placing struct {
	ResultWriter
	text *sql.Statement
}

// Notice implements ResultWriter.
func (p placing) Notice(n *pgerror.Error) {
	var placed *pgerror.Error
	if errors.As(p.text.PlaceError(n), &placed) {
		p.ResultWriter.Notice(placed)
	}
}

// rows sends a row set; the caller completes it.
func (q request) rows(cols []Column, rows []types.Row) error {
	if err := q.w.Columns(cols, q.formats, q.simple); err != nil {
		return err
	}
	for _, row := range rows {
		if err := q.w.Row(row); err != nil {
			return err
		}
	}
	return nil
}

// endsBlock reports whether a failed block still takes the statement.
func endsBlock(tree ast.Statement) bool {
	switch tree.(type) {
	case *ast.Commit, *ast.Rollback, *ast.RollbackTo, *ast.PreparedTransaction:
		return true
	}
	return false
}

func failedBlockError() error {
	return pgerror.New(pgerror.InFailedSQLTransaction,
		"current transaction is aborted, commands ignored until end of transaction block")
}

// run runs a statement. An empty tag means that the statement has completed itself.
func (c *commands) run(ctx context.Context, tree ast.Statement, q request) (Tag, error) {
	if c.tx.phase == failed && !endsBlock(tree) {
		return Tag{}, failedBlockError()
	}
	if err := c.travel.reset(); err != nil && !endsBlock(tree) {
		return Tag{}, err
	}
	if err := c.tx.acting.refuseRestricted(tree); err != nil {
		return Tag{}, err
	}
	if err := c.authorize(ctx, tree); err != nil {
		return Tag{}, err
	}
	if readsRows(tree) {
		if err := c.tx.nextStatement(ctx); err != nil {
			return Tag{}, err
		}
	}
	switch n := tree.(type) {
	case *ast.Begin:
		tag := verb("BEGIN")
		if n.Start {
			tag.Verb = "START TRANSACTION"
		}
		return tag, c.blocks.begin(ctx, n, q.w)
	case *ast.Commit:
		return c.blocks.commit(ctx, n, q.w)
	case *ast.Rollback:
		return c.blocks.rollback(n, q.w)
	case *ast.Savepoint:
		return verb("SAVEPOINT"), c.blocks.savepoint(ctx, n.Name)
	case *ast.ReleaseSavepoint:
		return verb("RELEASE"), c.blocks.release(n.Name)
	case *ast.RollbackTo:
		return verb("ROLLBACK"), c.blocks.rollbackTo(n.Name)
	case *ast.SetTransaction:
		return verb("SET"), c.blocks.setTransaction(ctx, n, q.w)
	case *ast.Set:
		return c.settings.set(n, q.w)
	case *ast.SetConstraints:
		return verb("SET CONSTRAINTS"), setConstraints(ctx, c.tx, n, q.w)
	case *ast.AlterSystem:
		return verb("ALTER SYSTEM"), c.system.alter(ctx, n)
	case *ast.Show:
		return verb("SHOW"), c.settings.show(n, q)
	case *ast.Prepare:
		return verb("PREPARE"), c.prepared.prepare(ctx, n)
	case *ast.Execute:
		return Tag{}, c.prepared.execute(ctx, n, q)
	case *ast.Deallocate:
		return c.prepared.deallocate(n)
	case *ast.Explain:
		return verb("EXPLAIN"), c.explain.run(ctx, n, q)
	case *ast.Copy:
		return c.copies.run(ctx, n, q)
	case *ast.DeclareCursor:
		return verb("DECLARE CURSOR"), c.cursors.declare(ctx, n, q.text)
	case *ast.Fetch:
		return c.cursors.fetch(ctx, n, q)
	case *ast.CloseCursor:
		return c.cursors.close(n)
	case *ast.Discard:
		return c.discard(ctx, n)
	case *ast.Do:
		return verb("DO"), c.do(ctx, n, q)
	case *ast.Checkpoint: // What is committed is in the log.
		return verb("CHECKPOINT"), nil
	case *ast.PreparedTransaction:
		return c.blocks.prepared(n)
	case *ast.Load:
		return verb("LOAD"), load(n)
	case *ast.SecurityLabel:
		return Tag{}, pgerror.New(pgerror.InvalidParameterValue, "no security label providers have been loaded")
	case *ast.Listen, *ast.Unlisten, *ast.Notify:
		return c.notifications.run(tree)
	case *ast.NotifyObserver:
		return c.observers.notify(ctx, n)
	case *ast.WaitObserver:
		return verb("WAIT"), c.observers.wait(ctx, n, q.w)
	}
	tag, err := c.schema.run(ctx, tree, placing{q.w, q.text})
	return tag, q.text.PlaceError(err)
}

// do is DO. Outside of a transaction block its statements share a transaction.
func (c *commands) do(ctx context.Context, n *ast.Do, q request) error {
	t := c.tx
	alone := !t.phase.shared() && t.pipeline.executed <= 1
	if !t.phase.shared() {
		t.forgetUnused()
		t.phase.on(share)
	}
	return q.text.PlaceError(c.procedural.do(ctx, n, q.w, alone))
}

// load is LOAD: of the libraries that PostgreSQL's clients load, percodb has PL/pgSQL built in, and no others.
func load(n *ast.Load) error {
	name := strings.TrimPrefix(n.File, "$libdir/")
	if name == "plpgsql" {
		return nil
	}
	return pgerror.New(pgerror.UndefinedFile, "could not access file %q: No such file or directory", n.File)
}

// readsRows reports whether a statement without plan runs one: it has a snapshot of its own where every statement has. FETCH
// uses its cursor's.
func readsRows(tree ast.Statement) bool {
	switch tree.(type) {
	case *ast.Explain, *ast.Copy, *ast.DeclareCursor, *ast.Execute:
		return true
	}
	return ddl.Handles(tree)
}

// discard is DISCARD.
func (c *commands) discard(ctx context.Context, n *ast.Discard) (Tag, error) {
	tag := verb("DISCARD " + n.What)
	switch n.What {
	case "ALL":
		if !c.tx.phase.shared() && c.tx.pipeline.executed > 1 {
			return Tag{}, pgerror.New(pgerror.ActiveSQLTransaction, "DISCARD ALL cannot be executed within a pipeline")
		}
		if c.tx.phase.shared() {
			return Tag{}, pgerror.New(pgerror.ActiveSQLTransaction, "DISCARD ALL cannot run inside a transaction block")
		}
		c.portals.removeCursors()
		c.notifications.unlistenAll()
		c.tx.advisory.unlockAll(ctx)
		c.prepared.statements.removeAll()
		c.plans.clear()
		c.sequences.discard()
		c.tx.abort() // It has read nothing but the schema.
		if err := c.tx.dropTemporary(); err != nil {
			return tag, err
		}
		if err := c.settings.resetRoles(); err != nil {
			return tag, err
		}
		return tag, c.settings.settings.ResetAll()
	case "TEMP":
		return tag, c.tx.discardTemporary(ctx)
	case "SEQUENCES":
		c.sequences.discard()
	case "PLANS":
		c.plans.clear()
	}
	return tag, nil
}
