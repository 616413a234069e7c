package sqllogic

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/percodb/percodb/node"
)

var (
	mutateFor  = flag.Duration("mutate-for", 3*time.Second, "how long TestMutants runs")
	mutateSeed = flag.Uint64("mutate-seed", 1, "seed of TestMutants; 0 takes one of the clock")
)

// answerTimeout bounds a mutant. The session's statement_timeout is mutantTimeout: a mutant that takes the difference
// longer is reported as hanging.
const (
	mutantTimeout = time.Second
	answerTimeout = 30 * time.Second
)

// TestMutants runs statements that differ from those of our files in a few tokens. Goal: for any text the server
// returns a result or a precise error: never an internal error (class XX), a lost connection or no answer. Method: run
// each file, with mutants of its statements after each of them, in the simple and the extended protocol, until the time
// is over; `-mutate-for 1h` by hand. A failure names the seed and the text.
func TestMutants(t *testing.T) {
	seed := *mutateSeed
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("seed %d", seed)
	paths, err := filepath.Glob("testdata/*.slt")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no test files: %v", err)
	}
	m := &mutants{t: t, dsn: startAll(t, node.Options{}), rng: rand.New(rand.NewPCG(seed, 0)), seen: map[string]bool{}}
	for i := range m.pools {
		m.pools[i] = &tokenPool{}
	}
	var files [][]record
	for _, path := range paths {
		records, err := load(testFile{name: path, path: path})
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, records)
		for i := range records {
			m.pools[0].add(records[i].sql)
		}
	}
	m.standing()
	m.end = time.Now().Add(*mutateFor)
	for m.more() {
		m.file(files[m.rng.IntN(len(files))])
	}
	t.Logf("%d mutants, %d of them succeeded", m.ran, m.succeeded)
	if m.ran >= 100 && m.succeeded*50 < m.ran { // Of a few, none may succeed by chance.
		t.Errorf("only %d of %d mutants succeeded: the others end before they reach what is to be tested", m.succeeded, m.ran)
	}
}

// mutants is one run of the test.
type mutants struct {
	t         *testing.T
	dsn       string
	rng       *rand.Rand
	end       time.Time
	pools     [2]*tokenPool // replacements for tokens: of all files, of the current one
	conn      *wire
	seen      map[string]bool // failures already reported
	ran       int
	succeeded int
}

// standing makes one object of each kind that commands look through for what depends on what they change. The files drop what they have made, so
// their commands would meet only objects of their own file.
func (m *mutants) standing() {
	m.connect()
	defer func() { m.conn.close() }()
	for _, sql := range []string{
		"SET statement_timeout = 0",
		"CREATE SCHEMA standing",
		"CREATE FUNCTION standing.f(int) RETURNS int LANGUAGE sql IMMUTABLE AS 'select $1'",
		"CREATE FUNCTION standing.tf() RETURNS trigger LANGUAGE plpgsql AS 'begin return new; end'",
		"CREATE DOMAIN standing.d AS int DEFAULT 1 CHECK (VALUE > 0)",
		"CREATE TYPE standing.c AS (a int, b standing.d)",
		"CREATE SEQUENCE standing.s",
		"CREATE TABLE standing.t (a serial PRIMARY KEY, b text UNIQUE, d standing.d, c standing.c, g int GENERATED ALWAYS AS (a + 1) STORED, j jsonb, CHECK (standing.f(a) > 0))",
		"CREATE TABLE standing.u (a int REFERENCES standing.t ON DELETE CASCADE, n int DEFAULT standing.f(1))",
		"CREATE INDEX ON standing.t (d)",
		"CREATE INDEX ON standing.t (standing.f(a), lower(b)) WHERE a > 1",
		"CREATE INDEX ON standing.t USING gin (j)",
		"CREATE VIEW standing.v AS SELECT standing.f(a), b FROM standing.t",
		"CREATE MATERIALIZED VIEW standing.m AS SELECT * FROM standing.v",
		"CREATE INDEX ON standing.m (b)",
		"CREATE POLICY p ON standing.t USING (standing.f(a) > 0)",
		"CREATE TRIGGER tr BEFORE UPDATE OF b ON standing.t FOR EACH ROW WHEN (old.a > 0) EXECUTE FUNCTION standing.tf()",
	} {
		if reply, err := m.conn.query(request{sql: sql}, nil); err != nil || reply.err != nil {
			m.t.Fatalf("%s: %v %v", sql, err, reply.err)
		}
	}
}

func (m *mutants) more() bool { return time.Now().Before(m.end) && len(m.seen) < 20 }

// file runs a file's records with mutants among them.
func (m *mutants) file(records []record) {
	m.pools[1] = &tokenPool{}
	for i := range records {
		m.pools[1].add(records[i].sql)
	}
	m.connect()
	defer func() { m.conn.close() }()
	for i := range records {
		r := &records[i]
		if r.sql == "" || r.connection != "" || !r.runs("postgresql") || !m.more() {
			continue
		}
		m.run(request{sql: r.sql, data: r.data}, "")
		for range 3 {
			m.mutant(r)
		}
	}
	m.run(request{sql: "ROLLBACK"}, "")
	for _, o := range createdObjects(records, "postgresql") {
		m.run(request{sql: o.drop()}, "")
	}
}

func (m *mutants) connect() {
	w, err := dial(context.Background(), m.dsn, answerTimeout)
	if err != nil {
		m.t.Fatal(err)
	}
	m.conn = w
	m.run(request{sql: fmt.Sprintf("SET statement_timeout = %d", mutantTimeout.Milliseconds())}, "")
}

// mutant runs one mutant, usually so that its changes are rolled back.
func (m *mutants) mutant(r *record) {
	text := m.wrap(m.mutate(r.sql))
	if changesTimeout.MatchString(text) {
		return
	}
	q := request{sql: text, data: r.data, extended: m.rng.IntN(2) == 0}
	if m.rng.IntN(8) > 0 && !endsTransaction.MatchString(text) {
		m.run(request{sql: "BEGIN"}, "")
		m.run(request{sql: "SAVEPOINT mutant"}, "")
		defer m.run(request{sql: "ROLLBACK TO mutant"}, "")
	}
	m.ran++
	m.run(q, r.sql)
}

// changesTimeout matches mutants that could remove their own time limit, endsTransaction those that end the transaction
// of a savepoint.
var (
	changesTimeout  = regexp.MustCompile(`(?i)statement_timeout|\b(reset|discard|set)\b.*\ball\b|set_config|\bshutdown\b|lock_timeout`)
	endsTransaction = regexp.MustCompile(`(?i)\b(commit|rollback|abort|end|begin|start|vacuum)\b`)
)

// run sends a statement and reports violations; of is the statement from which the mutant was derived.
func (m *mutants) run(q request, of string) {
	reply, err := m.conn.query(q, nil)
	switch {
	case errors.Is(err, errTimeout):
		m.conn.cancel()
		m.fail(q, of, "does not end")
		m.connect()
	case err != nil:
		m.fail(q, of, err.Error())
		m.connect()
	case reply.err != nil && strings.HasPrefix(reply.err.code, "XX"):
		m.fail(q, of, reply.err.Error())
	case reply.err == nil && of != "":
		m.succeeded++
	}
}

func (m *mutants) fail(q request, of, what string) {
	if m.seen[what] {
		return
	}
	m.seen[what] = true
	m.t.Errorf("%s\n  extended %v: %s\n  made of: %s", what, q.extended, q.sql, of)
}

// token is a piece of a statement; kind is its first byte's class.
type token struct {
	text string
	kind byte // 'w' word, 'n' number, 's' string, 'p' other
}

var tokenPattern = regexp.MustCompile(`(?s)--[^\n]*|/\*.*?\*/|[eEbBxXuU]?&?'(?:[^']|'')*'|"(?:[^"]|"")*"|\d+(?:\.\d+)?(?:[eE][-+]?\d+)?|[\pL_][\pL\d_$]*(?:\.[\pL_][\pL\d_$]*)*|\$\d+|[-+*/<>=~!@#%^&|` + "`" + `?]+|::|:=|.`)

func tokenise(text string) []token {
	var out []token
	for _, s := range tokenPattern.FindAllString(text, -1) {
		if strings.TrimSpace(s) == "" || strings.HasPrefix(s, "--") || strings.HasPrefix(s, "/*") {
			continue
		}
		t := token{text: s, kind: 'p'}
		switch c := s[0]; {
		case strings.HasSuffix(s, "'"):
			t.kind = 's'
		case c >= '0' && c <= '9':
			t.kind = 'n'
		case c == '"' || c == '_' || c|0x20 >= 'a' && c|0x20 <= 'z' || c >= 0x80:
			t.kind = 'w'
		}
		out = append(out, t)
	}
	return out
}

func join(tokens []token) string {
	var b strings.Builder
	for i, t := range tokens {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(t.text)
	}
	return b.String()
}

// tokenPool holds the replacements: tokens by kind, groups in parentheses, whole statements.
type tokenPool struct {
	byKind  map[byte][]token
	groups  [][]token
	calls   []token // names that an argument list follows
	names   []token // words that are not keywords of queries: mostly columns and tables
	queries []string
}

// keywords are the most frequent words of queries.
var keywords = map[string]bool{}

func init() {
	for _, w := range strings.Fields("select from where and or not in exists as on by group order having limit offset join left right full inner cross lateral union all any except intersect distinct case when then else end null is between like with insert into values update set delete returning create table index primary key int integer text true false asc desc using") {
		keywords[w] = true
	}
}

func (p *tokenPool) add(text string) {
	if p.byKind == nil {
		p.byKind = map[byte][]token{}
	}
	tokens := tokenise(text)
	for i, t := range tokens {
		p.byKind[t.kind] = append(p.byKind[t.kind], t)
		if t.kind == 'w' && !keywords[strings.ToLower(t.text)] {
			if i+1 < len(tokens) && tokens[i+1].text == "(" {
				p.calls = append(p.calls, t)
			} else {
				p.names = append(p.names, t)
			}
		}
		if t.text == "(" {
			if end := closing(tokens, i); end > 0 && end-i < 60 {
				p.groups = append(p.groups, tokens[i:end+1])
			}
		}
	}
	if len(tokens) > 0 && strings.EqualFold(tokens[0].text, "select") && len(tokens) < 80 {
		p.queries = append(p.queries, strings.TrimRight(strings.TrimSpace(text), ";"))
	}
}

// closing returns the index of the parenthesis that closes the one at i, 0 for none.
func closing(tokens []token, i int) int {
	depth := 0
	for ; i < len(tokens); i++ {
		switch tokens[i].text {
		case "(":
			depth++
		case ")":
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return 0
}

func pick[T any](rng *rand.Rand, list []T) (out T) {
	if len(list) > 0 {
		out = list[rng.IntN(len(list))]
	}
	return out
}

// mutate changes a few places of a statement.
func (m *mutants) mutate(text string) string {
	tokens := tokenise(text)
	for n := 1 + m.rng.IntN(2); n > 0 && len(tokens) > 0; n-- {
		pool := m.pools[min(m.rng.IntN(4), 1)] // usually of the same file, whose names exist
		i := m.rng.IntN(len(tokens))
		switch m.rng.IntN(12) {
		case 0: // another token of the kind
			tokens = splice(tokens, i, i+1, pick(m.rng, pool.byKind[tokens[i].kind]))
		case 1:
			tokens = splice(tokens, i, i+1)
		case 2:
			tokens = splice(tokens, i, i, tokens[i])
		case 3: // two tokens swapped
			j := m.rng.IntN(len(tokens))
			tokens[i], tokens[j] = tokens[j], tokens[i]
		case 4, 5: // a group for a group
			if group := pick(m.rng, pool.groups); group != nil {
				for k := range tokens {
					if j := (i + k) % len(tokens); tokens[j].text == "(" && closing(tokens, j) > 0 {
						tokens = splice(tokens, j, closing(tokens, j)+1, group...)
						break
					}
				}
			}
		case 6: // a value replaced by an expression in parentheses
			if group := pick(m.rng, pool.groups); group != nil && tokens[i].kind != 'p' {
				tokens = splice(tokens, i, i+1, group...)
			}
		case 7: // an extreme value
			if tokens[i].kind == 'n' || tokens[i].kind == 's' {
				tokens = splice(tokens, i, i+1, token{kind: 'w', text: pick(m.rng, extremes)})
			}
		case 8, 9: // a name for a name, or a call of it
			if at := m.name(tokens, i); at >= 0 && m.rng.IntN(2) == 0 {
				tokens[at] = pick(m.rng, pool.names)
			} else if at >= 0 {
				call := pick(m.rng, append(pool.calls, aggregates...))
				tokens = splice(tokens, at, at+1, call, token{text: "("}, tokens[at], token{text: ")"})
			}
		case 10, 11: // one more clause at the end of a query
			at := len(tokens)
			for k := range tokens {
				if j := (i + k) % len(tokens); tokens[j].text == "(" && j+1 < len(tokens) && strings.EqualFold(tokens[j+1].text, "select") && closing(tokens, j) > 0 {
					at = closing(tokens, j)
					break
				}
			}
			tokens = splice(tokens, at, at, tokenise(fmt.Sprintf(pick(m.rng, clauses), pick(m.rng, pool.names).text))...)
		}
	}
	return join(tokens)
}

// name returns the index of the first word at or after i that is not a keyword; -1 for none.
func (m *mutants) name(tokens []token, i int) int {
	for k := range tokens {
		j := (i + k) % len(tokens)
		if tokens[j].kind == 'w' && !keywords[strings.ToLower(tokens[j].text)] {
			return j
		}
	}
	return -1
}

// correlate replaces some of a query's names by those of an enclosing query's item.
func (m *mutants) correlate(text, item string) string {
	tokens := tokenise(text)
	for range 1 + m.rng.IntN(2) {
		if len(tokens) == 0 {
			break
		}
		if at := m.name(tokens, m.rng.IntN(len(tokens))); at >= 0 && !strings.Contains(tokens[at].text, ".") {
			tokens[at].text = item + "." + tokens[at].text
		}
	}
	return join(tokens)
}

var (
	aggregates = []token{{text: "max"}, {text: "count"}, {text: "min"}, {text: "sum"}, {text: "array_agg"}, {text: "generate_series"}}
	clauses    = []string{"GROUP BY %s", "ORDER BY %s", "HAVING count(%s) > 0", "HAVING max(%s) IS NULL", "LIMIT 1 + %s", "FOR UPDATE OF %s", "UNION ALL SELECT %s"}
)

// extremes are values at the limits of types.
var extremes = []string{
	"NULL", "0", "-1", "2147483647", "(-2147483648)", "9223372036854775807", "9223372036854775808", "1e308", "1e-400", "'NaN'", "''",
	"'infinity'", "'-infinity'::timestamp", "'{}'", "'294276-12-31'::timestamp", "1e131071", "true", "ARRAY[NULL]", "'\\x00'", "row(1,2)",
}

func splice(tokens []token, from, to int, with ...token) []token {
	out := make([]token, 0, len(tokens)+len(with))
	out = append(append(out, tokens[:from]...), with...)
	return append(out, tokens[to:]...)
}

// wrap sometimes embeds a statement in another.
func (m *mutants) wrap(text string) string {
	other := pick(m.rng, m.pools[1].queries)
	if m.rng.IntN(2) == 0 {
		return text
	}
	inner := m.correlate(text, "mutant")
	forms := []string{
		"SELECT * FROM (" + text + ") mutant",
		"SELECT *, (" + inner + ") FROM (" + other + ") mutant",
		"SELECT (" + inner + "), count(*) FROM (" + other + ") mutant GROUP BY 1",
		"SELECT * FROM (" + other + ") mutant, LATERAL (" + inner + ") inner_mutant",
		"SELECT * FROM (" + other + ") mutant LEFT JOIN LATERAL (" + inner + ") inner_mutant ON true",
		"SELECT * FROM (" + other + ") mutant WHERE EXISTS (" + inner + ")",
		"SELECT * FROM (" + other + ") mutant WHERE 1 IN (" + inner + ")",
		"SELECT * FROM (" + other + ") mutant ORDER BY (" + inner + ")",
		"EXPLAIN ANALYZE " + text,
		"CREATE TABLE mutant AS " + text,
		"CREATE VIEW mutant AS " + text,
		"WITH mutant AS (" + text + ") SELECT * FROM mutant a, mutant b LIMIT 10",
		"(" + text + ") UNION (" + other + ") ORDER BY 1",
		"(" + text + ") EXCEPT ALL (" + other + ")",
		"DECLARE mutant CURSOR FOR " + text,
		"PREPARE mutant AS " + text,
	}
	return pick(m.rng, forms)
}
