package session

import (
	"strings"

	"github.com/percodb/percodb/session/settings"
	"github.com/percodb/percodb/sql"
	"github.com/percodb/percodb/sql/mysql"
	"github.com/percodb/percodb/sql/pgerror"
)

// clientText splits a client's text into statements, in the dialect that the session had when the text came.
type clientText struct {
	postgres sql.Lexer
	mysql    *mysql.Lexer // nil: the text is PostgreSQL's
	text     string
	notices  []string // of MySQL's statements, until they are sent
	meter    *sql.Meter
}

// useMeter has the texts draw from m.
func (c *clientText) useMeter(m *sql.Meter) {
	c.meter = m
	c.postgres.UseMeter(m)
}

// reset begins a client's text, read by the settings.
func (c *clientText) reset(text string, by *settings.Settings) *clientText {
	c.mysql, c.text, c.notices = nil, text, nil
	if by.MySQL {
		c.mysql = mysql.NewLexer(c.meter)
		c.mysql.Reset(text)
	} else {
		c.postgres.UseStrings(stringsBy(by), by.EscapeStringWarning)
		c.postgres.Reset(text)
	}
	return c
}

// stringsBy is how texts are read by standard_conforming_strings.
func stringsBy(s *settings.Settings) sql.Strings {
	if s.BackslashStrings {
		return sql.BackslashStrings
	}
	return sql.StandardStrings
}

// drop drops the text and what it has been split into.
func (c *clientText) drop() {
	c.mysql, c.text, c.notices = nil, "", nil
	c.postgres.Reset("")
}

// Next returns the next statement, io.EOF after the last one.
func (c *clientText) Next() (*sql.Statement, error) {
	if c.mysql == nil {
		return c.postgres.Next()
	}
	st, notices, err := c.mysql.Next()
	c.notices = append(c.notices, notices...)
	return st, err
}

// onlyOne reports whether nothing but semicolons and blanks follows the first statement. A comment counts as more, which
// costs nothing but speed.
func (c *clientText) onlyOne(st *sql.Statement) bool {
	if c.mysql != nil {
		return !c.mysql.More()
	}
	return strings.Trim(c.text[st.Offset+len(st.Text):], "; \t\r\n") == ""
}

// sendNotices tells the client what of its MySQL statements has no effect, or another one, and which strings have nonstandard escapes.
func (c *clientText) sendNotices(w ResultWriter) {
	c.postgres.Warnings(w.Notice)
	for _, text := range c.notices {
		w.Notice(pgerror.New(pgerror.SuccessfulCompletion, "%s", text))
	}
	c.notices = nil
}
