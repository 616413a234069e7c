package plpgsql

import (
	"strings"

	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// raise executes RAISE.
func (a *activation) raise(s *raiseStmt) error {
	if s.again {
		if a.handled == nil {
			return pgerror.New(noActiveHandler, "RAISE without parameters cannot be used outside an exception handler")
		}
		return a.handled
	}
	r := &raised{a: a, set: map[string]string{}}
	if s.cond != "" {
		code, err := stateOf(s.cond, true)
		if err != nil {
			return err
		}
		r.code, r.condition = code, s.cond
	}
	if s.hasText {
		text, err := a.message(s)
		if err != nil {
			return err
		}
		r.set["MESSAGE"] = text
	}
	for _, o := range s.options {
		if err := r.option(o); err != nil {
			return err
		}
	}
	e := r.error(s.level)
	if s.level == "ERROR" {
		return e
	}
	e.Severity = s.level
	e.Where = a.host.Stack().Context()
	a.host.Notice(e)
	return nil
}

// message puts the parameters of RAISE in its text.
func (a *activation) message(s *raiseStmt) (string, error) {
	var b strings.Builder
	next := 0
	for i := 0; i < len(s.message); i++ {
		c := s.message[i]
		if c != '%' {
			b.WriteByte(c)
			continue
		}
		if i+1 < len(s.message) && s.message[i+1] == '%' {
			b.WriteByte('%')
			i++
			continue
		}
		d, t, err := a.eval(s.params[next])
		if err != nil {
			return "", err
		}
		next++
		if d.IsNull() {
			b.WriteString("<NULL>")
			continue
		}
		text, err := a.text(d, t)
		if err != nil {
			return "", err
		}
		b.WriteString(text)
	}
	return b.String(), nil
}

// raised is a message that RAISE is making.
type raised struct {
	a         *activation
	code      pgerror.Code
	condition string
	set       map[string]string
}

func (r *raised) option(o raiseOption) error {
	d, t, err := r.a.eval(o.value)
	if err != nil {
		return err
	}
	if d.IsNull() {
		return pgerror.New(pgerror.NullValueNotAllowed, "RAISE statement option cannot be null")
	}
	text, err := r.a.text(d, t)
	if err != nil {
		return err
	}
	if o.kind == "ERRCODE" {
		if r.code != "" {
			return alreadySpecified(o.kind)
		}
		r.code, err = stateOf(text, true)
		r.condition = text
		return err
	}
	if _, twice := r.set[o.kind]; twice {
		return alreadySpecified(o.kind)
	}
	r.set[o.kind] = text
	return nil
}

func alreadySpecified(option string) error {
	return pgerror.New(pgerror.SyntaxError, "RAISE option already specified: %s", option)
}

// error makes the message.
func (r *raised) error(level string) *pgerror.Error {
	if r.code == "" && level == "ERROR" {
		r.code = raiseException
	}
	text, ok := r.set["MESSAGE"]
	if !ok {
		if text = r.condition; text == "" {
			text = string(r.code)
		}
	}
	if r.code == "" {
		if r.code = pgerror.SuccessfulCompletion; level == "WARNING" {
			r.code = pgerror.Warning
		}
	}
	return &pgerror.Error{
		Code: r.code, Message: text, Detail: r.set["DETAIL"], Hint: r.set["HINT"], Column: r.set["COLUMN"], Constraint: r.set["CONSTRAINT"],
		DataType: r.set["DATATYPE"], Table: r.set["TABLE"], Schema: r.set["SCHEMA"],
	}
}

// diagnostics executes GET DIAGNOSTICS.
func (a *activation) diagnostics(s *diagStmt) error {
	if s.stacked && a.handled == nil {
		return pgerror.New(noActiveHandler, "GET STACKED DIAGNOSTICS cannot be used outside an exception handler")
	}
	for _, item := range s.items {
		d, t := types.Null, types.TText
		e := a.handled
		switch item.kind {
		case "row_count":
			d, t = types.Int(a.rows), types.TInt8
		case "pg_context":
			d = types.Text(a.host.Stack().Context())
		case "returned_sqlstate":
			d = types.Text(string(e.Code))
		case "column_name":
			d = types.Text(e.Column)
		case "constraint_name":
			d = types.Text(e.Constraint)
		case "pg_datatype_name":
			d = types.Text(e.DataType)
		case "message_text":
			d = types.Text(e.Message)
		case "table_name":
			d = types.Text(e.Table)
		case "schema_name":
			d = types.Text(e.Schema)
		case "pg_exception_detail":
			d = types.Text(e.Detail)
		case "pg_exception_hint":
			d = types.Text(e.Hint)
		case "pg_exception_context":
			d = types.Text(e.Where)
		}
		if err := a.assign(item.into, d, t); err != nil {
			return err
		}
	}
	return nil
}
