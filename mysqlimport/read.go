package mysqlimport

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/percodb/percodb/sql/mysql"
	"github.com/percodb/percodb/sql/pgerror"
)

// reader reads one file of a dump.
type reader struct {
	imp  *importer
	file *dumpFile
	s    *scanner

	db      string // of tables without a qualifier; "" is the schema of Options
	in      rules
	vars    map[string]string // user variables that keep settings of the session
	lit     literal
	convert converter
	cur     *batch
}

// read reads a file to its end.
func (i *importer) read(ctx context.Context, f *dumpFile, in io.Reader) error {
	r := &reader{imp: i, file: f, s: newScanner(in, f.path), db: f.db, vars: map[string]string{},
		in: rules{charset: "utf8mb4", zone: i.o.zone()}, convert: converter{zero: i.o.Zero}}
	if f.kind == fileOther {
		return r.keepWhole()
	}
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		done, err := r.statement(ctx)
		if err != nil {
			return err
		}
		if done {
			break
		}
	}
	if r.s.inCode {
		return r.s.truncated("a comment")
	}
	if r.s.headed && !r.s.completed {
		return r.s.fail("The dump is incomplete: dump again, or copy the file again. Then run the import with --restart.",
			"the file ends before mysqldump's line \"-- Dump completed\"")
	}
	return r.flush(ctx)
}

// statement reads one statement, and reports whether the file ends before it.
func (r *reader) statement(ctx context.Context) (done bool, err error) {
	s := r.s
	if err := s.skipBlanks(); err != nil {
		return false, err
	}
	if s.atEnd() {
		return true, nil
	}
	if s.atDelimiter() {
		s.pos += len(s.delimiter)
		return false, nil
	}
	line, version := s.line(), ""
	if s.inCode {
		version = s.codeVersion
	}
	word := s.word()
	if word == "" {
		return false, s.unexpected("a statement")
	}
	switch strings.ToUpper(word) {
	case "INSERT", "REPLACE":
		return false, r.insert(ctx)
	case "DELIMITER":
		return false, s.setDelimiter()
	}
	text, err := s.statement(word)
	if err != nil {
		return false, err
	}
	return false, r.other(ctx, text, line, version)
}

// other handles a statement that is not INSERT.
func (r *reader) other(ctx context.Context, text string, line int, version string) error {
	words := strings.Fields(strings.ToUpper(text[:min(len(text), 4096)]))
	switch words[0] {
	case "SET":
		return r.set(text)
	case "USE":
		r.db = unquote(strings.TrimSpace(text[3:]))
		return nil
	case "CREATE":
		return r.create(ctx, words, text, line, version)
	case "ALTER":
		if strings.HasSuffix(strings.TrimRight(text, " \t\r\n"), "ABLE KEYS") || len(words) > 1 && words[1] == "DATABASE" {
			return nil
		}
		r.leave("ALTER", line, text)
	case "DROP", "LOCK", "UNLOCK", "COMMIT", "BEGIN", "START", "FLUSH", "ANALYZE", "CHANGE", "ROLLBACK", "SELECT", "DO":
		// They concern MySQL's system tables or replication. The import drops no table of percodb because a dump says
		// so.
	case "GRANT", "REVOKE", "CALL":
		r.leave(words[0], line, text)
	default:
		return &PlaceError{File: r.s.file, Line: line, Text: "the statement " + words[0] + " is none that dumps have",
			Hint: "The import reads what mysqldump, mydumper and Dumpling write, and runs no other statements: dump again, and leave the file as it is."}
	}
	return nil
}

// leave adds a statement to the report.
func (r *reader) leave(kind string, line int, text string) {
	r.imp.leave(mysql.LeftOut{What: fmt.Sprintf("%s (%s:%d)", kind, r.s.file, line), Why: "it is MySQL's statement", Statement: commented(text)})
}

// commented formats MySQL's statement as an SQL comment.
func commented(text string) string {
	return "-- MySQL: " + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n-- ")
}

func (r *reader) create(ctx context.Context, words []string, text string, line int, version string) error {
	for i, w := range words[1:min(len(words), 12)] {
		switch w, _, _ = strings.Cut(w, "("); w {
		case "DATABASE", "SCHEMA":
			return r.createDatabase(text)
		case "TABLE":
			if i > 2 {
				continue
			}
			if version == "50001" || r.file.kind == fileViewStub { // mysqldump's placeholder of a view
				return nil
			}
			if err := r.flush(ctx); err != nil {
				return err
			}
			return r.createTable(ctx, text, line)
		case "VIEW", "TRIGGER", "PROCEDURE", "FUNCTION", "EVENT", "SEQUENCE", "SERVER", "USER", "ROLE", "PACKAGE":
			if w == "VIEW" && i == 0 && version == "50001" { // mysqldump's placeholder; the view follows later
				return nil
			}
			r.leave(w, line, text)
			return nil
		}
	}
	r.leave("CREATE", line, text)
	return nil
}

// createDatabase records a database and its character set.
func (r *reader) createDatabase(text string) error {
	fields := strings.Fields(text)
	for i, f := range fields {
		if f == "EXISTS" || i > 0 && f != "IF" && f != "NOT" && !strings.HasPrefix(f, "/") {
			if f == "EXISTS" {
				continue
			}
			name := unquote(strings.TrimSuffix(f, ";"))
			set := ""
			for j := i + 1; j+2 < len(fields); j++ {
				if strings.EqualFold(fields[j], "CHARACTER") && strings.EqualFold(fields[j+1], "SET") {
					set = strings.ToLower(strings.Trim(fields[j+2], "=; "))
				}
			}
			r.imp.setCharset(name, set)
			return nil
		}
	}
	return nil
}

func unquote(text string) string {
	if len(text) >= 2 && (text[0] == '`' || text[0] == '"') {
		q := text[:1]
		return strings.ReplaceAll(strings.TrimSuffix(text[1:], q), q+q, q)
	}
	return text
}

func (r *reader) createTable(ctx context.Context, text string, line int) error {
	if !isUTF8(r.in.charset) && r.in.charset != "binary" {
		decoded, err := r.convert.decoder.decode(r.in.charset, []byte(text))
		if err != nil {
			return &PlaceError{File: r.s.file, Line: line, Text: err.Error(), Hint: "Dump with --default-character-set=utf8mb4."}
		}
		text = string(decoded)
	}
	if err := r.imp.createTable(ctx, r.db, text); err != nil {
		if ctx.Err() != nil {
			return err
		}
		place := &PlaceError{File: r.s.file, Line: line, Text: err.Error()}
		var e *pgerror.Error
		if errors.As(err, &e) {
			place.Text, place.Hint = e.Message, e.Hint
		}
		return place
	}
	return nil
}

// set handles SET: the settings that determine the meaning of strings and times, and the variables that save them.
func (r *reader) set(text string) error {
	for _, part := range splitCommas(text[3:]) {
		part = strings.TrimSpace(part)
		if fields := strings.Fields(part); len(fields) >= 2 && strings.EqualFold(fields[0], "NAMES") {
			r.in.charset = strings.ToLower(strings.Trim(fields[1], "'\"; "))
			continue
		}
		name, value, ok := strings.Cut(part, "=")
		if !ok {
			continue
		}
		name, value = settingName(name), strings.TrimSpace(value)
		if strings.HasPrefix(name, "@") {
			r.vars[name] = r.get(settingName(value))
			continue
		}
		if strings.HasPrefix(value, "@") {
			if value, ok = r.vars[settingName(value)]; !ok {
				continue
			}
		}
		r.assign(name, strings.Trim(value, "'\"; "))
	}
	return r.known()
}

// splitCommas splits at commas outside of strings.
func splitCommas(text string) []string {
	var parts []string
	var quote byte
	from := 0
	for i := range len(text) {
		switch ch := text[i]; {
		case quote != 0:
			if ch == quote {
				quote = 0
			}
		case ch == '\'' || ch == '"':
			quote = ch
		case ch == ',':
			parts = append(parts, text[from:i])
			from = i + 1
		}
	}
	return append(parts, text[from:])
}

// known checks that the character set is supported.
func (r *reader) known() error {
	set := r.in.charset
	if isUTF8(set) || set == "binary" || charsets[set] != nil {
		return nil
	}
	return r.s.fail("Dump with --default-character-set=utf8mb4.", "the character set %s is not known", set)
}

// settingName returns the name of a setting or variable in lower case, without its scope.
func settingName(text string) string {
	name := strings.ToLower(strings.TrimSpace(text))
	for _, scope := range []string{"@@session.", "@@", "session ", "local "} {
		name = strings.TrimPrefix(name, scope)
	}
	return strings.TrimSpace(name)
}

// get returns the value of a setting that assign handles.
func (r *reader) get(name string) string {
	switch name {
	case "character_set_client":
		return r.in.charset
	case "time_zone":
		return r.in.zone
	case "sql_mode":
		if r.s.noBackslash {
			return "NO_BACKSLASH_ESCAPES"
		}
	}
	return ""
}

func (r *reader) assign(name, value string) {
	switch name {
	case "character_set_client":
		if value != "" {
			r.in.charset = strings.ToLower(value)
		}
	case "time_zone":
		switch {
		case value == r.imp.o.zone(): // a variable has saved it
			r.in.zone = value
		case value != "" && !strings.EqualFold(value, "SYSTEM"):
			r.in.zone = zoneSuffix(value)
		}
	case "sql_mode":
		r.s.noBackslash = strings.Contains(strings.ToUpper(value), "NO_BACKSLASH_ESCAPES")
	}
}

// zoneSuffix returns the suffix that gives a time its zone.
func zoneSuffix(zone string) string {
	if zone == "" {
		return ""
	}
	if zone[0] == '+' || zone[0] == '-' {
		return zone
	}
	return " " + strings.TrimSpace(zone)
}

// maxKept bounds a file that is copied as a whole into the report.
const maxKept = 1 << 20

// keepWhole copies a file of views, triggers or routines into the report.
func (r *reader) keepWhole() error {
	text, err := io.ReadAll(io.LimitReader(r.s.in, maxKept+1))
	if err != nil {
		r.s.err = err
		return r.s.fail("", "")
	}
	if len(text) > maxKept {
		text = append(text[:maxKept], "…"...)
	}
	r.imp.leave(mysql.LeftOut{What: "the file " + r.file.path, Why: "views, triggers and routines are MySQL's statements",
		Statement: commented(strings.ToValidUTF8(string(text), "?"))})
	return nil
}
