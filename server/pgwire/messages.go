package pgwire

import (
	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/percodb/percodb/internal/errkind"
	"github.com/percodb/percodb/session"
	"github.com/percodb/percodb/sql/types"
)

// query runs a simple query (55.2.2).
func (c *Conn) query(m *pgproto3.Query) error {
	if err := c.session.Query(m.String, c.w); err != nil {
		if errkind.Of(err) == errkind.ClientGone {
			return err
		}
		if err := c.failed(err); err != nil {
			return err
		}
	}
	return c.ready()
}

// ready ends a cycle. It first sends notifications and reports settings that changed, as PostgreSQL 15 does.
func (c *Conn) ready() error {
	if err := c.notify(); err != nil {
		return err
	}
	c.session.ReportSettings(c.w)
	c.waiting = true
	return c.w.readyForQuery(c.session.Status())
}

func (c *Conn) parse(m *pgproto3.Parse) error {
	params := make([]types.OID, len(m.ParameterOIDs))
	for i, oid := range m.ParameterOIDs {
		params[i] = types.OID(oid)
	}
	if err := c.session.Parse(m.Name, m.Query, params); err != nil {
		return err
	}
	c.w.end(c.w.begin('1'))
	return nil
}

func (c *Conn) bind(m *pgproto3.Bind) error {
	err := c.session.Bind(session.BindRequest{
		Portal: m.DestinationPortal, Statement: m.PreparedStatement,
		ParamFormats: m.ParameterFormatCodes, Params: m.Parameters, ResultFormats: m.ResultFormatCodes,
	})
	if err != nil {
		return err
	}
	c.w.end(c.w.begin('2'))
	return nil
}

func (c *Conn) describe(m *pgproto3.Describe) error {
	if m.ObjectType == 'P' {
		cols, formats, err := c.session.DescribePortal(m.Name)
		if err != nil {
			return err
		}
		c.describeColumns(cols, formats)
		return nil
	}
	params, cols, err := c.session.DescribeStatement(m.Name)
	if err != nil {
		return err
	}
	oids := make([]uint32, len(params))
	for i, t := range params {
		oids[i] = uint32(t.OID)
	}
	c.w.send(&pgproto3.ParameterDescription{ParameterOIDs: oids})
	c.describeColumns(cols, nil)
	return nil
}

// describeColumns sends the columns of a row set; nil columns mean that there is none.
func (c *Conn) describeColumns(cols []session.Column, formats []int16) {
	if cols == nil {
		c.w.end(c.w.begin('n'))
		return
	}
	c.w.rowDescription(cols, formats)
}

func (c *Conn) close(m *pgproto3.Close) error {
	if m.ObjectType == 'P' {
		c.session.ClosePortal(m.Name)
	} else {
		c.session.CloseStatement(m.Name)
	}
	c.w.end(c.w.begin('3'))
	return nil
}

// sync ends the implicit transaction and the skipping (55.2.3).
func (c *Conn) sync() error {
	c.skipping = false
	if err := c.session.Sync(c.w); err != nil {
		c.w.error(session.ToPGError(err), "ERROR")
	}
	return c.ready()
}
