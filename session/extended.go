package session

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/percodb/percodb/executor"
	"github.com/percodb/percodb/sql"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// prepared is a prepared statement, of the extended protocol or of PREPARE.
type prepared struct {
	name      string
	statement *sql.Statement // nil: the empty query
	tree      ast.Statement
	plan      *cachedPlan // nil for statements without plan
	declared  []types.Type
	params    []types.Type
	byName    bool // made by PREPARE; listed so in pg_prepared_statements
}

// portal is a statement bound to arguments, perhaps half run.
type portal struct {
	name     string
	prepared *prepared
	params   types.Row
	formats  []int16
	run      *execution // once begun: &exec
	exec     execution
	done     bool
	tag      Tag
	cursor   bool     // made by DECLARE
	depth    int      // how many savepoints there were: ROLLBACK TO one of them leaves it open
	columns  []Column // of taken, in a portal without plan
	fresh    bool     // made in the running transaction, with which it goes if that fails
	outlives bool     // its run is detached from its transaction (WITH HOLD)
	// taken are the rows of a statement without plan that is sent in parts.
	taken *executor.RowStore
}

// reads reports whether the portal may yet read in the open transaction.
func (po *portal) reads() bool { return po.run != nil && po.run.runner != nil && !po.outlives }

// BindRequest is the Bind message.
type BindRequest struct {
	Portal, Statement string
	ParamFormats      []int16
	Params            [][]byte // nil: NULL; valid during the call
	ResultFormats     []int16
}

// Parse makes a prepared statement; name "" replaces the unnamed one. Declared types may be fewer
// than the parameters, and 0 means to infer.
func (s *Session) Parse(name, text string, declared []types.OID) error {
	s.ctx.arm(s.settings.statementTimeout)
	defer s.endStatement()
	p, err := s.parse(name, text, declared)
	if err != nil {
		return s.reportError(err)
	}
	if name == "" {
		s.unnamed = p
	} else {
		s.statements[name] = p
	}
	return nil
}

func (s *Session) parse(name, text string, declared []types.OID) (*prepared, error) {
	if _, taken := s.statements[name]; taken && name != "" {
		return nil, pgerror.New(pgerror.DuplicatePreparedStatement, "prepared statement %q already exists", name)
	}
	p := &prepared{name: name, declared: make([]types.Type, len(declared))}
	for i, oid := range declared {
		if oid != 0 {
			p.declared[i] = types.Type{OID: oid, Mod: -1}
		}
	}
	if err := validText(text); err != nil {
		return nil, err
	}
	in := s.read(text)
	st, err := in.Next()
	if err == io.EOF {
		return p, nil
	}
	if err != nil {
		return nil, err
	}
	p.statement = st.Clone()
	s.alone = true
	defer func() { s.alone = false }()
	if _, err := in.Next(); err != io.EOF {
		if err != nil {
			return nil, err
		}
		return nil, pgerror.New(pgerror.SyntaxError, "cannot insert multiple commands into a prepared statement")
	}
	return p, s.prepare(s.ctx, p)
}

// prepare plans a statement anew, under the schema of now.
func (s *Session) prepare(ctx context.Context, p *prepared) error {
	s.startStatement()
	plan, tree, err := s.planStatement(ctx, p.statement, p.declared)
	if err != nil {
		return err
	}
	p.plan = plan
	if tree != nil {
		p.tree = tree
	}
	if s.tx.phase == failed && !endsBlock(p.tree) {
		return failedBlockError()
	}
	if plan != nil {
		p.params = plan.plan.ParamTypes
	}
	return nil
}

// current makes sure that the statement's plan holds under the transaction's schema.
func (s *Session) current(ctx context.Context, p *prepared) error {
	if p.plan == nil {
		return nil
	}
	if err := s.comeBack(); err != nil {
		return err
	}
	if err := s.beginFor(ctx, p.plan.plan, p.statement); err != nil {
		return err
	}
	ok, err := p.plan.holds(ctx, s.tx.resolver)
	if ok || err != nil {
		return err
	}
	// The client knows the types of parameters and columns, so those must stay.
	anew := *p
	anew.declared = p.params
	if err := s.prepare(ctx, &anew); err != nil {
		return err
	}
	if anew.plan != nil && !sameColumns(p.plan.plan.Root.Columns(), anew.plan.plan.Root.Columns()) {
		return pgerror.New(pgerror.FeatureNotSupported, "cached plan must not change result type")
	}
	*p = anew
	return nil
}

func sameColumns(a, b []Column) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i].Type != b[i].Type || a[i].Name != b[i].Name {
			return false
		}
	}
	return true
}

func (s *Session) findStatement(name string) (*prepared, error) {
	p := s.statements[name]
	if name == "" {
		p = s.unnamed
	}
	switch {
	case p != nil:
		return p, nil
	case name == "":
		return nil, pgerror.New(pgerror.InvalidSQLStatementName, "unnamed prepared statement does not exist")
	}
	return nil, pgerror.New(pgerror.InvalidSQLStatementName, "prepared statement %q does not exist", name)
}

// Bind makes a portal of a prepared statement and arguments.
func (s *Session) Bind(req BindRequest) error {
	s.ctx.arm(s.settings.statementTimeout)
	defer s.endStatement()
	if err := s.bind(req); err != nil {
		return s.reportError(err)
	}
	return nil
}

func (s *Session) bind(req BindRequest) error {
	p, err := s.findStatement(req.Statement)
	if err != nil {
		return err
	}
	if s.tx.phase == failed && !endsBlock(p.tree) {
		return failedBlockError()
	}
	if old := s.portals[req.Portal]; old != nil {
		if req.Portal != "" {
			return pgerror.New(pgerror.DuplicateCursor, "cursor %q already exists", req.Portal)
		}
		s.release(old)
	}
	if len(req.Params) != len(p.params) {
		return pgerror.New(pgerror.ProtocolViolation, "bind message supplies %d parameters, but prepared statement %q requires %d",
			len(req.Params), req.Statement, len(p.params))
	}
	if n := len(req.ParamFormats); n > 1 && n != len(req.Params) {
		return pgerror.New(pgerror.ProtocolViolation, "bind message has %d parameter formats but %d parameters", n, len(req.Params))
	}
	s.alone = true
	err = s.current(s.ctx, p)
	s.alone = false
	if err != nil {
		return err
	}
	if n := len(req.ResultFormats); n > 1 && n != len(s.columns(p)) {
		return pgerror.New(pgerror.ProtocolViolation, "bind message has %d result formats but query has %d columns", n, len(s.columns(p)))
	}
	if err := errors.Join(checkFormats(req.ParamFormats), checkFormats(req.ResultFormats)); err != nil {
		return err
	}
	po := s.newPortal(req, p)
	if err := s.parseParams(po, req); err != nil {
		return err
	}
	s.portals[req.Portal] = po
	return nil
}

// newPortal takes the portal that was closed last, since most clients use one at a time, or makes one.
func (s *Session) newPortal(req BindRequest, p *prepared) *portal {
	po := s.spare
	s.spare = nil
	if po == nil {
		po = &portal{}
	}
	*po = portal{
		name: req.Portal, prepared: p, params: po.params[:0], formats: append(po.formats[:0], req.ResultFormats...),
		depth: len(s.tx.savepoints), fresh: true,
	}
	return po
}

// release closes a portal that nobody can name any more and keeps it for the next Bind, unless it may
// have to run again.
func (s *Session) release(po *portal) {
	po.close()
	if !po.cursor && po != s.tx.alone {
		s.spare = po
	}
}

// parseParams reads the arguments. Bytes that their values would share are copied, since the message's
// buffer is used again.
func (s *Session) parseParams(po *portal, req BindRequest) error {
	row := slices.Grow(po.params, len(req.Params))[:len(req.Params)]
	clear(row)
	po.params = row
	for i, raw := range req.Params {
		if raw == nil {
			continue
		}
		t := po.prepared.params[i]
		if sharesBytes(t) {
			raw = append(make([]byte, 0, len(raw)), raw...)
		}
		var err error
		if paramFormat(req.ParamFormats, i) == 1 {
			row[i], err = types.ParseBinary(t, raw, &s.settings.format)
		} else {
			text := types.Bytes(raw).Text()
			if err = validText(text); err == nil {
				row[i], err = types.ParseText(t, text, &s.settings.format)
			}
		}
		if err != nil {
			e := *ToPGError(err)
			e.Where = fmt.Sprintf("unnamed portal parameter $%d", i+1)
			if req.Portal != "" {
				e.Where = fmt.Sprintf("portal %q parameter $%d", req.Portal, i+1)
			}
			return &e
		}
	}
	return nil
}

// sharesBytes reports whether a value of the type may point into the bytes it was parsed from.
func sharesBytes(t types.Type) bool {
	switch t.OID {
	case types.OIDInt4, types.OIDInt8, types.OIDInt2, types.OIDFloat8, types.OIDFloat4, types.OIDBool,
		types.OIDDate, types.OIDTimestamp, types.OIDTimestamptz:
		return false
	}
	return true
}

// checkFormats refuses format codes other than text and binary.
func checkFormats(formats []int16) error {
	for _, f := range formats {
		if f != 0 && f != 1 {
			return pgerror.New(pgerror.InvalidParameterValue, "unsupported format code: %d", f)
		}
	}
	return nil
}

func paramFormat(formats []int16, i int) int16 {
	switch len(formats) {
	case 0:
		return 0
	case 1:
		return formats[0]
	}
	return formats[i]
}

// DescribeStatement returns the types of parameters and output columns; nil columns mean no rows.
func (s *Session) DescribeStatement(name string) ([]types.Type, []Column, error) {
	p, err := s.findStatement(name)
	if err != nil {
		return nil, nil, s.reportError(err)
	}
	cols := s.columns(p)
	if s.tx.phase == failed && cols != nil {
		return nil, nil, s.reportError(failedBlockError())
	}
	return p.params, cols, nil
}

// DescribePortal returns the output columns and the formats asked for.
func (s *Session) DescribePortal(name string) ([]Column, []int16, error) {
	po := s.portals[name]
	if po == nil {
		return nil, nil, s.reportError(pgerror.New(pgerror.InvalidCursorName, "portal %q does not exist", name))
	}
	cols := s.columns(po.prepared)
	if s.tx.phase == failed && cols != nil {
		return nil, nil, s.reportError(failedBlockError())
	}
	return cols, po.formats, nil
}

// Execute runs a portal for up to maxRows rows (0: all). The error is for the client; the session goes on.
func (s *Session) Execute(name string, maxRows int, w ResultWriter) error {
	po := s.portals[name]
	if po == nil {
		return s.reportError(pgerror.New(pgerror.InvalidCursorName, "portal %q does not exist", name))
	}
	if maxRows == 0 && s.deferrable(po) {
		s.deferred = po
		return nil
	}
	return s.executeNow(po, maxRows, w)
}

func (s *Session) executeNow(po *portal, maxRows int, w ResultWriter) error {
	s.ctx.arm(s.settings.statementTimeout)
	defer s.endStatement()
	suspended, err := s.executePortal(po, maxRows, w)
	if err != nil {
		w.Abandon()
		return s.reportError(err)
	}
	if suspended {
		err = w.Suspended()
	}
	w.Seal()
	return err
}

func (s *Session) executePortal(po *portal, maxRows int, w ResultWriter) (bool, error) {
	p := po.prepared
	if p.statement == nil {
		return false, w.Empty()
	}
	if s.tx.phase == failed && !endsBlock(p.tree) {
		return false, failedBlockError()
	}
	s.startStatement()
	if p.plan == nil {
		return s.executeUtility(po, maxRows, w)
	}
	if po.done {
		return false, w.Complete(Tag{Verb: po.tag.Verb, Rows: 0})
	}
	for attempt := 0; ; attempt++ {
		suspended, err := s.runPortal(po, maxRows, w)
		if err == nil || s.tx.alone != po || !s.retryAlone(po, err, attempt, w) {
			return suspended, err
		}
	}
}

// runPortal begins a portal, or goes on with it.
func (s *Session) runPortal(po *portal, maxRows int, w ResultWriter) (bool, error) {
	if po.run == nil {
		if err := s.beginPortal(po, maxRows, w); err != nil {
			return false, err
		}
	}
	return s.pullPortal(po, maxRows, w)
}

// beginPortal makes a portal ready for its first row.
func (s *Session) beginPortal(po *portal, maxRows int, w ResultWriter) error {
	p := po.prepared
	if err := s.joinPipeline(po, pipelineUse{again: maxRows == 0, reads: p.plan.plan.ReadOnly}, w); err != nil {
		return err
	}
	s.lockFirst(p.plan)
	if err := s.nextStatement(s.ctx); err != nil {
		return err
	}
	if err := s.current(s.ctx, p); err != nil {
		return err
	}
	po.exec = execution{
		plan: p.plan, literals: p.statement.Literals, params: po.params, formats: po.formats,
		keeps: maxRows != 0, held: s.tx.alone == po,
	}
	po.run = &po.exec
	return nil
}

func (s *Session) pullPortal(po *portal, maxRows int, w ResultWriter) (bool, error) {
	po.run.maxRows = maxRows
	tag, err := s.runPlan(s.ctx, po.run, w)
	if err != nil {
		return false, err
	}
	if po.run.suspended {
		return true, nil
	}
	po.done, po.tag = true, tag
	return false, w.Complete(tag)
}

// ClosePortal forgets a portal; an unknown name is no error.
func (s *Session) ClosePortal(name string) {
	if po := s.portals[name]; po != nil {
		delete(s.portals, name)
		s.release(po)
	}
}

// CloseStatement forgets a prepared statement; an unknown name is no error.
func (s *Session) CloseStatement(name string) {
	if name == "" {
		s.unnamed = nil
		return
	}
	delete(s.statements, name)
}

func (s *Session) dropUnnamed() {
	s.unnamed = nil
	s.ClosePortal("")
}

func (po *portal) close() {
	if po.run != nil {
		// The transaction ends, or the client has closed the portal: nobody waits for its error.
		_ = po.run.close()
	}
	if po.taken != nil {
		_ = po.taken.Close()
	}
}

// closePortals ends every portal at the end of its transaction, save the held ones of transactions
// that committed, which have all their rows.
func (s *Session) closePortals(committed bool) {
	for name, po := range s.portals {
		if po.outlives && (committed || !po.fresh) {
			po.fresh = false
			continue
		}
		delete(s.portals, name)
		s.release(po)
	}
}
