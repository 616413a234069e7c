package session

import (
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

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
	s.beginMessage()
	defer s.endMessage()
	if name == "" {
		s.statements.remove(name) // Also if the new one is refused.
	}
	p, err := s.parse(name, text, declared)
	if err == nil {
		err = s.statements.free(name)
	}
	if err == nil {
		err = s.statements.add(p)
	}
	if err != nil {
		return s.reportError(err)
	}
	return nil
}

func (s *Session) parse(name, text string, declared []types.OID) (*prepared, error) {
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
	if _, err := in.Next(); err != io.EOF {
		if err != nil {
			return nil, err
		}
		return nil, pgerror.New(pgerror.SyntaxError, "cannot insert multiple commands into a prepared statement")
	}
	return p, s.prepare(s.ctx, p, true)
}

// prepare plans a statement anew, under the schema of now.
func (s *Session) prepare(ctx context.Context, p *prepared, latest bool) error {
	s.startStatement()
	plan, tree, err := s.planStatement(ctx, p.statement, p.declared, latest)
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
		p.params = plan.ParamTypes
	}
	return nil
}

// current makes sure that the statement's plan holds under the transaction's schema.
func (s *Session) current(ctx context.Context, p *prepared, latest bool) error {
	if p.plan == nil {
		return nil
	}
	if err := s.resetAsOf(); err != nil {
		return err
	}
	if err := s.beginFor(ctx, p.plan.Plan, p.statement, latest); err != nil {
		return err
	}
	ok, err := p.plan.holds(ctx, s.tx.resolver)
	if ok || err != nil {
		return err
	}
	// The client knows the types of parameters and columns, so those must stay.
	anew := *p
	anew.declared = p.params
	if err := s.prepare(ctx, &anew, latest); err != nil {
		return err
	}
	if anew.plan != nil && !sameColumns(p.plan.Root.Columns(), anew.plan.Root.Columns()) {
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

// Bind makes a portal of a prepared statement and arguments.
func (s *Session) Bind(req BindRequest) error {
	s.beginMessage()
	defer s.endMessage()
	if err := s.bind(req); err != nil {
		return s.reportError(err)
	}
	return nil
}

func (s *Session) bind(req BindRequest) error {
	p, err := s.statements.find(req.Statement)
	if err != nil {
		return err
	}
	if s.tx.phase == failed && !endsBlock(p.tree) {
		return failedBlockError()
	}
	if err := s.portals.free(req.Portal); err != nil {
		return err
	}
	if len(req.Params) != len(p.params) {
		return pgerror.New(pgerror.ProtocolViolation, "bind message supplies %d parameters, but prepared statement %q requires %d",
			len(req.Params), req.Statement, len(p.params))
	}
	if n := len(req.ParamFormats); n > 1 && n != len(req.Params) {
		return pgerror.New(pgerror.ProtocolViolation, "bind message has %d parameter formats but %d parameters", n, len(req.Params))
	}
	if err := s.current(s.ctx, p, true); err != nil {
		return err
	}
	if err := checkFormats(req.ParamFormats); err != nil {
		return err
	}
	po := s.portals.reuse()
	*po = portal{
		name: req.Portal, prepared: p, params: po.params[:0], formats: append(po.formats[:0], req.ResultFormats...),
		depth: len(s.tx.savepoints), fresh: true, view: s.views, memory: &s.memory,
	}
	err = s.parseParams(po, req)
	if err == nil {
		err = checkResultFormats(req.ResultFormats, s.columns(p))
	}
	if err != nil {
		po.close()
		return err
	}
	s.portals.add(po)
	return nil
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
		t, isBinary := po.prepared.params[i], paramFormat(req.ParamFormats, i) == 1
		var err error
		if len(raw) < types.LargeBytes {
			row[i], err = s.parseParam(t, raw, isBinary)
		} else {
			row[i], err = po.parse(t, raw, isBinary, func() (types.Datum, error) { return s.parseParam(t, raw, isBinary) })
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

func (s *Session) parseParam(t types.Type, raw []byte, isBinary bool) (types.Datum, error) {
	if sharesBytes(t) {
		raw = append(make([]byte, 0, len(raw)), raw...)
	}
	if isBinary {
		return types.ParseBinary(t, raw, &s.settings.format)
	}
	text := types.Bytes(raw).Text()
	if err := validText(text); err != nil {
		return types.Null, err
	}
	return types.ParseText(t, text, &s.settings.format)
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

// checkResultFormats checks the formats asked for; a statement without rows has no use for them.
func checkResultFormats(formats []int16, columns []Column) error {
	if columns == nil {
		return nil
	}
	if n := len(formats); n > 1 && n != len(columns) {
		return pgerror.New(pgerror.ProtocolViolation, "bind message has %d result formats but query has %d columns", n, len(columns))
	}
	return checkFormats(formats)
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
	p, err := s.statements.find(name)
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
	po := s.portals.byName[name]
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
	po := s.portals.byName[name]
	if po == nil {
		return s.reportError(pgerror.New(pgerror.InvalidCursorName, "portal %q does not exist", name))
	}
	if maxRows == 0 && s.deferrable(po) {
		s.deferred = po
		return nil
	}
	return s.executePortal(po, maxRows, false, w)
}

// executePortal begins a portal, or goes on with it. last: Sync follows.
func (s *Session) executePortal(po *portal, maxRows int, last bool, w ResultWriter) error {
	s.beginMessage()
	defer s.endMessage()
	p := po.prepared
	var err error
	switch {
	case p.statement == nil:
		err = w.Empty()
	case s.tx.phase == failed && !endsBlock(p.tree):
		err = failedBlockError()
	case po.done:
		err = s.executeAgain(po, w)
	case po.taken != nil:
		err = s.sendTaken(po, maxRows, w)
	default:
		s.startStatement()
		if !po.started {
			err = s.startPortal(po, maxRows, last, w)
		}
		if err == nil && p.plan == nil && maxRows > 0 && s.utilityColumns(p.tree) != nil {
			err = s.takeUtility(po, maxRows, w)
			break
		}
		if err == nil {
			po.run.maxRows = maxRows
			err = s.execute(s.ctx, &po.run, w)
		}
		if po.done = err == nil && !po.run.suspended; err == nil && po.run.suspended {
			err = w.Suspended()
		}
	}
	if err != nil {
		w.Abandon()
		return s.reportError(err)
	}
	w.Seal()
	return nil
}

// executeAgain answers Execute of a portal that has run to its end: it has no more rows, and what yields none runs once.
func (s *Session) executeAgain(po *portal, w ResultWriter) error {
	if s.columns(po.prepared) == nil {
		return pgerror.New(pgerror.ObjectNotInPrerequisite, "portal %q cannot be run", po.name)
	}
	tag := po.run.tag
	if tag.Verb == "" { // EXECUTE has sent its own.
		tag.Verb = "SELECT"
	}
	tag.Rows = min(tag.Rows, 0) // -1: the tag has no count.
	return w.Complete(tag)
}

// startPortal makes a portal ready for its first attempt, as the first of its pipeline or another one.
func (s *Session) startPortal(po *portal, maxRows int, last bool, w ResultWriter) error {
	p := po.prepared
	po.run = run{
		portal: po, tree: p.tree, params: po.params, formats: po.formats, completes: true, keeps: maxRows != 0 && p.plan != nil, latest: last,
	}
	po.started = true
	if s.tx.phase.explicit() {
		return nil
	}
	return s.joinPipeline(&po.run, maxRows == 0 && (p.plan != nil || s.executesChange(p.tree)), w)
}

// planPortal finds the plan of a portal. Bind has checked it under the schema of now, unless another statement has moved
// the snapshot or the schema since then.
func (s *Session) planPortal(ctx context.Context, r *run) error {
	po := r.portal
	p := po.prepared
	if p.plan == nil {
		return nil
	}
	if r.retries == 0 {
		s.lockFirst(p.plan)
		if err := s.nextStatement(ctx); err != nil {
			return err
		}
	} else {
		s.startStatement()
	}
	if po.view != s.views || s.tx.resolver == nil || s.tx.latest && !r.latest {
		if err := s.current(ctx, p, r.latest); err != nil {
			return err
		}
		po.view = s.views
	}
	r.plan, r.tree, r.literals = p.plan, nil, p.statement.Literals
	return nil
}

// ClosePortal forgets a portal; an unknown name is no error.
func (s *Session) ClosePortal(name string) { s.portals.remove(name) }

// CloseStatement forgets a prepared statement; an unknown name is no error.
func (s *Session) CloseStatement(name string) { s.statements.remove(name) }
