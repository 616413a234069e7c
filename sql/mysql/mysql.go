// Package mysql turns MySQL texts into percodb's syntax tree.
//
//	text ── TiDB's parser ──▶ MySQL's tree ── query.go, expr.go, func.go, dml.go ──▶ sql/ast
//	                                       ── table.go, alter.go, show.go, utility.go ──▶ PostgreSQL's text ── package sql ──▶ sql/ast
//
// Invariants:
//  1. A statement is converted node by node: what has no equal meaning in percodb is refused with 0A000. The
//     differences of meaning that remain are those listed in docs/mysql.md.
//  2. No input panics or exhausts the stack: the nesting of a text is bounded before it is parsed (54001), and a
//     panic of TiDB's parser answers 42601.
//  3. A tree printed by its String method parses back, in package sql, to an equal tree, except for what PostgreSQL has no
//     words for (ast.OnConflict.AnyKey, ast.CreateTable.Indexes).
//  4. Literals of these trees have no slots; Lexer gives statements with slots.
//
// Types and names of the schema are not known here: the planner resolves them as it does for PostgreSQL's texts.
package mysql

import (
	"regexp"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/pingcap/tidb/pkg/parser"
	tidb "github.com/pingcap/tidb/pkg/parser/ast"

	"github.com/percodb/percodb/sql"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/pgerror"
)

// Statement is one statement of a text, converted.
type Statement struct {
	Tree   ast.Statement
	Text   string // the MySQL statement's own text
	Offset int    // byte offset of Text in the whole text
	Params int    // the number of question marks, or the highest $n
	// Part is 0, and counts up over the further statements that one MySQL statement becomes, such as ALTER TABLE with
	// several changes.
	Part int
	// Notices say what of the statement has no effect in percodb, or another one.
	Notices []string
}

// parsers keeps TiDB's parsers, which hold large tables of state.
var parsers = sync.Pool{New: func() any { return parser.New() }}

// Parse gives the statements of a text. Errors are *pgerror.Error: 42601 for what MySQL's grammar refuses, 0A000
// for what has no equal meaning in percodb, 54001 for what is nested too deeply. Safe for concurrent use.
func Parse(text string) ([]Statement, error) { return parse(text, nil) }

// parse is Parse that draws the memory of the trees from m, before TiDB's parser makes them: that is not interrupted.
func parse(text string, m *sql.Meter) ([]Statement, error) {
	if i := strings.IndexByte(text, 0); i >= 0 {
		return nil, pgerror.New(pgerror.CharacterNotInRepertoire, "invalid byte sequence for encoding \"UTF8\": 0x00")
	}
	if !utf8.ValidString(text) {
		return nil, pgerror.New(pgerror.CharacterNotInRepertoire, "invalid byte sequence for encoding \"UTF8\"")
	}
	if err := boundSize(text, m); err != nil {
		return nil, err
	}
	written := text
	text, numbers, err := questionMarks(text)
	if err != nil {
		return nil, err
	}
	nodes, err := parseTiDB(text)
	if err != nil {
		return nil, err
	}
	var out []Statement
	rest := 0
	for _, node := range nodes {
		own := strings.Trim(node.OriginalText(), "; \t\r\n")
		offset := rest
		if i := strings.Index(text[rest:], own); i >= 0 {
			offset = rest + i
			rest = offset + len(own)
		}
		c := &converter{text: text, start: offset, numbers: numbers}
		statements, err := c.statement(node)
		if err != nil {
			return nil, err
		}
		for i, tree := range statements {
			st := Statement{Tree: tree, Text: written[offset : offset+len(own)], Offset: offset, Params: c.highest(), Part: i}
			if i == 0 {
				st.Notices = c.notices
			}
			out = append(out, st)
		}
	}
	return out, nil
}

// parseTiDB runs TiDB's parser. It panics on some texts, which are malformed in ways that its grammar's actions do not
// expect.
func parseTiDB(text string) (nodes []tidb.StmtNode, err error) {
	p := parsers.Get().(*parser.Parser)
	defer func() {
		if recover() != nil { // p is in an unknown state: it does not go back to the pool
			nodes, err = nil, pgerror.New(pgerror.SyntaxError, "syntax error in the MySQL statement")
		}
	}()
	parsed, _, parseErr := p.ParseSQL(text)
	if parseErr != nil {
		parsers.Put(p)
		return nil, syntaxError(text, parseErr)
	}
	nodes = append(nodes, parsed...) // p reuses its slice
	parsers.Put(p)
	return nodes, nil
}

var nearPattern = regexp.MustCompile(`(?s)line (\d+) column (\d+) near "(.*)"`)

// syntaxError words an error of TiDB's parser as PostgreSQL words its own.
func syntaxError(text string, err error) error {
	m := nearPattern.FindStringSubmatch(err.Error())
	if m == nil {
		return pgerror.New(pgerror.SyntaxError, "syntax error: %s", firstLine(err.Error()))
	}
	e := pgerror.New(pgerror.SyntaxError, "syntax error at end of input")
	if near := strings.Fields(m[3]); len(near) > 0 {
		word := near[0]
		if len(word) > 40 {
			word = strings.ToValidUTF8(word[:40], "")
		}
		e.Message = "syntax error at or near \"" + word + "\""
	}
	if strings.HasSuffix(text, m[3]) { // what TiDB's parser quotes begins at the token, its column is the token's end
		return e.At(utf8.RuneCountInString(text[:len(text)-len(m[3])]) + 1)
	}
	line, _ := strconv.Atoi(m[1])
	column, _ := strconv.Atoi(m[2])
	return e.At(positionOf(text, line, column))
}

func firstLine(s string) string {
	s, _, _ = strings.Cut(s, "\n")
	return s
}

// positionOf is the 1-based character position of a line and column, both counted from 1, columns in bytes.
func positionOf(text string, line, column int) int {
	offset := 0
	for ; line > 1; line-- {
		i := strings.IndexByte(text[offset:], '\n')
		if i < 0 {
			break
		}
		offset += i + 1
	}
	return utf8.RuneCountInString(text[:min(offset+max(column-1, 0), len(text))]) + 1
}

// maxNesting bounds how many tokens may lie in one another. TiDB's parser keeps its stack on the heap, but walks over
// its tree recurse.
const maxNesting = 50_000

// Each time drawnTokens tokens have been counted, tokenBytes are drawn for each: about what TiDB's tree and the converted
// one take.
const drawnTokens, tokenBytes = 1 << 12, 256

// boundSize draws the memory of a text's trees, and refuses a text whose tree may be deeper than maxNesting: it counts the
// tokens since the last comma, at each level of parentheses, which is never less than the tree's depth.
func boundSize(text string, m *sql.Meter) error {
	levels, sum, tokens := []int{0}, 0, 0
	for i := 0; i < len(text); {
		if tokens++; tokens == drawnTokens {
			if err := m.Grow(drawnTokens * tokenBytes); err != nil {
				return err
			}
			tokens = 0
		}
		top := len(levels) - 1
		switch ch := text[i]; {
		case ch == ' ' || ch == '\t' || ch == '\n' || ch == '\r':
			i++
			continue
		case ch == '\'' || ch == '"' || ch == '`':
			i = skipQuoted(text, i)
		case ch == '#', ch == '-' && strings.HasPrefix(text[i:], "-- "), ch == '-' && strings.HasPrefix(text[i:], "--\n"):
			end := strings.IndexByte(text[i:], '\n')
			if end < 0 {
				return nil
			}
			i += end
			continue
		case ch == '/' && plainComment(text[i:]):
			end := strings.Index(text[i+2:], "*/")
			if end < 0 {
				return nil
			}
			i += end + 4
			continue
		case ch == '(':
			levels = append(levels, 0)
			top++
			i++
		case ch == ')':
			if top > 0 {
				sum -= levels[top]
				levels = levels[:top]
				top--
			}
			i++
		case ch == ',' || ch == ';':
			sum -= levels[top]
			levels[top] = 0
			i++
			continue
		case wordByte(ch):
			for i < len(text) && wordByte(text[i]) {
				i++
			}
		default:
			i++
		}
		levels[top]++
		if sum++; sum > maxNesting {
			return pgerror.New(pgerror.StatementTooComplex, "the statement is nested too deeply").
				WithHint("Split it into several statements.")
		}
	}
	return nil
}

func wordByte(ch byte) bool {
	return ch == '_' || ch == '$' || ch >= utf8.RuneSelf ||
		'0' <= ch && ch <= '9' || 'a' <= ch && ch <= 'z' || 'A' <= ch && ch <= 'Z'
}

// plainComment reports whether a comment begins whose content TiDB's parser does not read.
func plainComment(rest string) bool {
	if !strings.HasPrefix(rest, "/*") {
		return false
	}
	return len(rest) < 3 || !strings.ContainsRune("!+TM", rune(rest[2]))
}

// skipQuoted returns the index after a quoted string or name that begins at i.
func skipQuoted(text string, i int) int {
	quote := text[i]
	for i++; i < len(text); i++ {
		switch {
		case text[i] == '\\' && quote != '`':
			i++
		case text[i] == quote:
			return i + 1
		}
	}
	return len(text)
}
