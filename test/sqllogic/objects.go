package sqllogic

import (
	"slices"
	"strings"
)

// object is a table, view or sequence that a test file creates.
type object struct {
	kind string // TABLE, VIEW, MATERIALIZED VIEW or SEQUENCE
	name string // as written, quotes and schema included
}

// drop returns the statement that removes the object if it is there.
func (o object) drop() string {
	return "DROP " + o.kind + " IF EXISTS " + o.name + " CASCADE"
}

// createdObjects returns what the records may create on this dialect, each
// once, in the order in which it should be dropped: the last created first,
// so that a view goes before what it reads.
func createdObjects(records []record, dialect string) []object {
	var objects []object
	seen := make(map[object]bool)
	for i := range records {
		r := &records[i]
		if r.sql == "" || r.kind == kindStatementError || !r.runs(dialect) {
			continue
		}
		if o, ok := createdObject(r.sql); ok && !seen[o] {
			seen[o] = true
			objects = append(objects, o)
		}
	}
	slices.Reverse(objects)
	return objects
}

// createdObject reads the first words of a CREATE or ALTER … RENAME TO
// statement. Temporary objects leave with their connection.
func createdObject(sql string) (object, bool) {
	w := words{rest: sql}
	switch {
	case w.take("CREATE"):
		if w.take("OR") {
			w.take("REPLACE")
		}
		if w.take("TEMP") || w.take("TEMPORARY") {
			return object{}, false
		}
		w.take("UNLOGGED")
		kind, ok := w.kind()
		if !ok {
			return object{}, false
		}
		if w.take("IF") {
			w.take("NOT")
			w.take("EXISTS")
		}
		return w.object(kind)
	case w.take("ALTER"):
		kind, ok := w.kind()
		if !ok {
			return object{}, false
		}
		if w.take("IF") {
			w.take("EXISTS")
		}
		w.take("ONLY")
		if w.name() == "" || !w.take("RENAME") || !w.take("TO") {
			return object{}, false
		}
		return w.object(kind)
	}
	return object{}, false
}

// words reads a statement word by word.
type words struct{ rest string }

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }

func isNameByte(c byte) bool {
	return c == '_' || c == '$' || c >= 0x80 || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

func (w *words) skipSpace() {
	for w.rest != "" && isSpace(w.rest[0]) {
		w.rest = w.rest[1:]
	}
}

// take reads the keyword if it is next.
func (w *words) take(keyword string) bool {
	w.skipSpace()
	n := len(keyword)
	if len(w.rest) < n || !strings.EqualFold(w.rest[:n], keyword) || (len(w.rest) > n && isNameByte(w.rest[n])) {
		return false
	}
	w.rest = w.rest[n:]
	return true
}

// kind reads what sort of object the statement is about.
func (w *words) kind() (string, bool) {
	for _, kind := range []string{"TABLE", "VIEW", "SEQUENCE"} {
		if w.take(kind) {
			return kind, true
		}
	}
	if w.take("MATERIALIZED") && w.take("VIEW") {
		return "MATERIALIZED VIEW", true
	}
	return "", false
}

// object reads the name of an object of that kind.
func (w *words) object(kind string) (object, bool) {
	name := w.name()
	if name == "" {
		return object{}, false
	}
	return object{kind: kind, name: name}, true
}

// name reads an object's name as written: parts joined by dots, each a plain
// word or in double quotes.
func (w *words) name() string {
	w.skipSpace()
	n := 0
	for n < len(w.rest) {
		switch c := w.rest[n]; {
		case c == '"':
			end := strings.IndexByte(w.rest[n+1:], '"')
			if end < 0 {
				return ""
			}
			n += end + 2
		case c == '.' || isNameByte(c):
			n++
		default:
			name := w.rest[:n]
			w.rest = w.rest[n:]
			return name
		}
	}
	name := w.rest
	w.rest = ""
	return name
}
