package session

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/percodb/percodb/executor"
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
		err = s.statements.add(p, s.meter, 0)
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
	in := s.text.reset(text, s.settings)
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
	return p, s.plans.prepare(s.env.Ctx, p, true)
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
	if err := s.plans.validate(s.env.Ctx, p, true); err != nil {
		return err
	}
	if err := checkFormats(req.ParamFormats); err != nil {
		return err
	}
	po := s.portals.reuse()
	params, formats := po.params[:0], append(po.formats[:0], req.ResultFormats...)
	*po = portal{} // A literal with values would be made elsewhere and copied: most of it is zero.
	po.name, po.prepared, po.params, po.formats = req.Portal, p, params, formats
	po.depth, po.fresh, po.view, po.memory = len(s.tx.savepoints), true, s.tx.views, &s.memory
	err = parseParams(po, req, &s.env.Format)
	if err == nil {
		err = checkResultFormats(req.ResultFormats, s.describer.columns(p))
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
func parseParams(po *portal, req BindRequest, format *types.Format) error {
	row := slices.Grow(po.params, len(req.Params))[:len(req.Params)]
	clear(row)
	po.params = row
	for i, raw := range req.Params {
		if raw == nil {
			if err := types.CheckNull(po.prepared.params[i], format); err != nil {
				return badParam(err, req.Portal, i)
			}
			continue
		}
		t, isBinary := po.prepared.params[i], paramFormat(req.ParamFormats, i) == 1
		var err error
		if len(raw) < types.LargeBytes {
			row[i], err = parseParam(t, raw, isBinary, format)
		} else {
			row[i], err = po.parse(t, raw, isBinary, func() (types.Datum, error) { return parseParam(t, raw, isBinary, format) })
		}
		if err != nil {
			return badParam(err, req.Portal, i)
		}
	}
	return nil
}

// badParam returns the error of reading the ith argument.
func badParam(err error, portal string, i int) error {
	e := *ToPGError(err)
	e.Where = fmt.Sprintf("unnamed portal parameter $%d", i+1)
	if portal != "" {
		e.Where = fmt.Sprintf("portal %q parameter $%d", portal, i+1)
	}
	return &e
}

func parseParam(t types.Type, raw []byte, isBinary bool, format *types.Format) (types.Datum, error) {
	if sharesBytes(t) {
		raw = append(make([]byte, 0, len(raw)), raw...)
	}
	if isBinary {
		return types.ParseBinary(t, raw, format)
	}
	text := types.Bytes(raw).Text()
	if err := validText(text); err != nil {
		return types.Null, err
	}
	return types.ParseText(t, text, format)
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
	if err := checkFormats(formats); err != nil {
		return err
	}
	for i := range columns {
		if paramFormat(formats, i) == 1 {
			if err := types.RequireBinary(columns[i].Type); err != nil {
				return err
			}
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
	p, err := s.statements.find(name)
	if err != nil {
		return nil, nil, s.reportError(err)
	}
	cols := s.describer.columns(p)
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
	cols := s.describer.columns(po.prepared)
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
		err = po.sendTaken(maxRows, w)
	default:
		startStatement(&s.env)
		po.scroll.stop() // Its place is known to FETCH only.
		if !po.started {
			err = s.startPortal(po, maxRows, last, w)
		}
		if err == nil && p.plan == nil && maxRows > 0 && s.describer.command(p.tree) != nil {
			err = s.takeUtility(po, maxRows, w)
			break
		}
		if err == nil {
			po.run.maxRows = maxRows
			err = s.runner.execute(s.env.Ctx, &po.run, w)
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
	if s.describer.columns(po.prepared) == nil {
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
	r := &po.run // zero since Bind
	r.portal, r.tree, r.params, r.formats, r.completes, r.latest = po, p.tree, po.params, po.formats, true, last
	r.keeps = maxRows != 0 && p.plan != nil
	po.started = true
	if s.tx.phase.explicit() {
		return nil
	}
	return s.pipelines.join(&po.run, maxRows == 0 && (p.plan != nil || s.statements.executesChange(p.tree)), w)
}

// takeUtility runs a statement without plan whose rows are asked for in parts.
func (s *Session) takeUtility(po *portal, maxRows int, w ResultWriter) error {
	columns := s.describer.command(po.prepared.tree)
	taker := &taker{ResultWriter: w, rows: executor.NewRowStore(columns, &executor.Runtime{Env: &s.env})}
	if err := s.runner.execute(s.env.Ctx, &po.run, taker); err != nil {
		return errors.Join(err, taker.rows.Close())
	}
	po.columns, po.run.tag, po.taken = columns, taker.tag, taker.rows
	return po.sendTaken(maxRows, w)
}

// Sync ends the implicit transaction of a pipeline. The error is for the client; the session goes on.
func (s *Session) Sync(w ResultWriter) error {
	if po := s.deferred; po != nil {
		s.deferred = nil
		if err := s.executePortal(po, 0, true, w); err != nil {
			return err
		}
	}
	defer w.Commit()
	if s.tx.phase.explicit() {
		return nil
	}
	if s.tx.txn == nil && s.tx.pending.empty() {
		s.tx.end(true)
		return nil
	}
	s.beginMessage()
	defer s.endMessage()
	var err error
	if po := s.tx.pipeline.first; po != nil {
		// The run goes on with its commit, which is all that is missing, unless that meets a conflict.
		po.run.policy = alone
		err = s.runner.execute(s.env.Ctx, &po.run, w)
	} else {
		err = s.tx.commit(s.env.Ctx)
	}
	if err != nil {
		w.Abandon()
		return s.reportError(err)
	}
	return nil
}

// Flush makes what the client is about to be sent final. A statement that has run as if it were alone runs again, as it does
// when another one follows: with locks, and with its unique keys checked. The error is for the client; the session goes on.
func (s *Session) Flush(w ResultWriter) error {
	if s.tx.pipeline.first == nil || s.tx.pipeline.reads {
		return nil
	}
	s.beginMessage()
	defer s.endMessage()
	if err := s.pipelines.share(false, w); err != nil {
		w.Abandon()
		return s.reportError(err)
	}
	return nil
}

// ClosePortal forgets a portal; an unknown name is no error.
func (s *Session) ClosePortal(name string) { s.portals.remove(name) }

// CloseStatement forgets a prepared statement; an unknown name is no error.
func (s *Session) CloseStatement(name string) { s.statements.remove(name) }
