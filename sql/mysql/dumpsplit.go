package mysql

import (
	"fmt"
	"strconv"
	"strings"
)

// token is a word, a quoted name or string, or one other character of a definition.
type token struct {
	text       string
	start, end int
}

func (t token) is(word string) bool { return strings.EqualFold(t.text, word) }

// tokens splits a definition. Comments are left out, except those of TiDB and MySQL that hold code, which the tool that
// reads the dump has replaced.
func tokens(text string) []token {
	var out []token
	for i := 0; i < len(text); {
		start := i
		switch ch := text[i]; {
		case ch == ' ' || ch == '\t' || ch == '\n' || ch == '\r':
			i++
			continue
		case ch == '\'' || ch == '"' || ch == '`':
			for i = skipQuoted(text, i); i < len(text) && text[i] == ch; { // a doubled quote stands for one
				i = skipQuoted(text, i)
			}
		case strings.HasPrefix(text[i:], "/*"):
			end := strings.Index(text[i+2:], "*/")
			if end < 0 {
				return out
			}
			i += end + 4
			continue
		case wordByte(ch):
			for i < len(text) && wordByte(text[i]) {
				i++
			}
		default:
			i++
		}
		out = append(out, token{text: text[start:i], start: start, end: i})
	}
	return out
}

// definition is CREATE TABLE, split into its parts.
type definition struct {
	schema, name string
	elements     []string // columns, keys and constraints
	options      []token
	partitioned  bool
}

// split splits CREATE TABLE by its parentheses and commas. ok is false if it is not of that form.
func split(text string) (d definition, ok bool) {
	list := tokens(text)
	open := 0
	for open < len(list) && list[open].text != "(" {
		open++
	}
	if open == len(list) {
		return d, false
	}
	var name []string
	for _, t := range list[:open] {
		switch {
		case t.is("CREATE"), t.is("TABLE"), t.is("IF"), t.is("NOT"), t.is("EXISTS"), t.is("OR"), t.is("REPLACE"), t.text == ".":
		default:
			name = append(name, unquoteName(t.text))
		}
	}
	switch len(name) {
	case 1:
		d.name = name[0]
	case 2:
		d.schema, d.name = name[0], name[1]
	default:
		return d, false
	}
	depth, begin := 0, open+1
	for i := open; i < len(list); i++ {
		switch list[i].text {
		case "(":
			depth++
		case ")":
			depth--
		}
		if depth == 0 || depth == 1 && list[i].text == "," {
			if i > begin {
				d.elements = append(d.elements, text[list[begin].start:list[i-1].end])
			}
			begin = i + 1
		}
		if depth == 0 {
			d.options = list[i+1:]
			break
		}
	}
	for i, t := range d.options {
		if t.is("PARTITION") && i+1 < len(d.options) && d.options[i+1].is("BY") {
			d.partitioned, d.options = true, d.options[:i]
			break
		}
	}
	return d, depth == 0 && len(d.elements) > 0
}

// option is the value of a table's option, "" without it.
func (d *definition) option(names ...string) string {
	for i := 0; i+1 < len(d.options); i++ {
		for _, name := range names {
			if !d.options[i].is(name) {
				continue
			}
			next := d.options[i+1]
			if next.text == "=" && i+2 < len(d.options) {
				next = d.options[i+2]
			}
			return next.text
		}
	}
	return ""
}

// charset is the character set that the table's options name.
func (d *definition) charset() string {
	if set := d.option("CHARSET", "CHARACTER"); set != "" && !strings.EqualFold(set, "SET") {
		return strings.ToLower(set)
	}
	for i := 0; i+1 < len(d.options); i++ {
		if d.options[i].is("CHARACTER") && d.options[i+1].is("SET") {
			rest := definition{options: d.options[i+1:]}
			return strings.ToLower(rest.option("SET"))
		}
	}
	return charsetOf(d.option("COLLATE"))
}

// charsetOf is the character set of a collation: its first part.
func charsetOf(collation string) string {
	set, _, _ := strings.Cut(strings.ToLower(unquoteName(collation)), "_")
	return set
}

func unquoteName(text string) string {
	if len(text) < 2 || text[0] != '`' && text[0] != '"' {
		return text
	}
	q := text[:1]
	return strings.ReplaceAll(text[1:len(text)-1], q+q, q)
}

// replacedTypes are types that TiDB's grammar does not have, with one that it reads in their place.
var replacedTypes = map[string]string{
	"uuid": "binary(16)", "inet4": "binary(4)", "inet6": "binary(16)",
	"geometry": "longblob", "point": "longblob", "linestring": "longblob", "polygon": "longblob", "multipoint": "longblob",
	"multilinestring": "longblob", "multipolygon": "longblob", "geometrycollection": "longblob", "geomcollection": "longblob",
	"vector": "longblob",
}

// element is a column's definition, without what TiDB's grammar does not read.
type element struct {
	text      string
	replaced  string   // the type that stood there, if it is one of replacedTypes
	charset   string   // "" if it is the table's
	shortened string   // the name, the type, and NOT NULL and AUTO_INCREMENT if they are there
	mysqlType string   // the type as written
	dropped   []string // options that were taken out and that mean something
}

// readColumn reads a column's definition. ok is false if it does not begin with a name and a type.
func readColumn(text string) (e element, ok bool) {
	list := tokens(text)
	if len(list) < 2 {
		return e, false
	}
	typeEnd := 2
	if typeEnd < len(list) && list[typeEnd].text == "(" {
		for typeEnd < len(list) && list[typeEnd].text != ")" {
			typeEnd++
		}
		typeEnd = min(typeEnd+1, len(list))
	}
	for typeEnd < len(list) && (list[typeEnd].is("UNSIGNED") || list[typeEnd].is("ZEROFILL") || list[typeEnd].is("PRECISION")) {
		typeEnd++
	}
	e.mysqlType = strings.ToLower(list[1].text) + text[list[1].end:list[typeEnd-1].end]
	typeName := e.mysqlType
	if with, found := replacedTypes[strings.ToLower(list[1].text)]; found {
		e.replaced, typeName = strings.ToLower(list[1].text), with
	}
	var kept []string
	e.shortened = list[0].text + " " + typeName
	for i := typeEnd; i < len(list); i++ {
		t, more := list[i], len(list)-i-1
		switch {
		case t.is("CHARACTER") && more >= 2 && list[i+1].is("SET"):
			e.charset = strings.ToLower(unquoteName(list[i+2].text))
			i += 2
		case t.is("CHARSET") && more >= 1:
			e.charset = strings.ToLower(unquoteName(list[i+1].text))
			i++
		case t.is("COLLATE") && more >= 1:
			if e.charset == "" {
				e.charset = charsetOf(list[i+1].text)
			}
			i++
		case t.is("SRID") && more >= 1:
			i++
		case t.is("COMPRESSED"):
			if more >= 1 && list[i+1].text == "=" {
				i += 2
			}
		case t.is("INVISIBLE"), t.is("VISIBLE"):
			if t.is("INVISIBLE") {
				e.dropped = append(e.dropped, "INVISIBLE has no effect")
			}
		case t.is("PERSISTENT"):
			kept = append(kept, "STORED")
		default:
			if t.is("NULL") && list[i-1].is("NOT") {
				e.shortened += " NOT NULL"
			}
			if t.is("AUTO_INCREMENT") {
				e.shortened += " AUTO_INCREMENT"
			}
			kept = append(kept, text[list[i-1].end:t.end])
		}
	}
	e.text = list[0].text + " " + typeName + " " + strings.Join(kept, "")
	return e, true
}

// autoIncrement is the table option's value, 0 without it.
func (d *definition) autoIncrement() uint64 {
	n, _ := strconv.ParseUint(d.option("AUTO_INCREMENT"), 10, 64)
	return n
}

// comment is the table's comment.
func (d *definition) comment() string {
	text := d.option("COMMENT")
	if len(text) < 2 {
		return ""
	}
	nodes, err := parseTiDB(fmt.Sprintf("CREATE TABLE t (a INT COMMENT %s)", text))
	if err != nil {
		return ""
	}
	return commentOf(nodes[0])
}
