package pgquery

import (
	"flag"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	pg "github.com/pganalyze/pg_query_go/v5"
)

var (
	mutants    = flag.Int("mutants", 5000, "how many statements TestMutants makes")
	mutantSeed = flag.Uint64("mutantseed", 1, "what they are drawn from")
)

// collector takes statements in place of an oracle.
type collector struct {
	texts []string
	known map[string]bool
}

func (c *collector) add(text string) {
	text = strings.TrimSpace(text)
	if !c.known[text] && len(text) < 2000 {
		c.known[text] = true
		c.texts = append(c.texts, text)
	}
}

// Goal: a statement that differs from a valid one in a token is accepted or refused by percodb's parser as it is by
// PostgreSQL's, and means the same. Method: the statements of our files; one of their tokens, or two, are deleted, doubled, swapped,
// replaced or added, the new ones taken from all statements' tokens; half of those that replace one are of its kind.
func TestMutants(t *testing.T) {
	o := newOracle(t)
	c := &collector{known: map[string]bool{}}
	for _, pattern := range []string{"../../sql/testdata/seeds.sql", "../sqllogic/testdata/*.slt"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatal(files, err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if filepath.Ext(file) == ".slt" {
				eachSLT(string(text), c.add)
				continue
			}
			for line := range strings.Lines(string(text)) {
				c.add(line)
			}
		}
	}
	var seeds [][]token
	all := pool{kinds: map[int32][]token{}}
	for _, text := range c.texts {
		if tokens := tokensOf(text); tokens != nil {
			seeds = append(seeds, tokens)
			all.add(tokens)
		}
	}
	if len(seeds) < 1000 {
		t.Fatalf("%d statements", len(seeds))
	}
	rng := rand.New(rand.NewPCG(*mutantSeed, uint64(*mutants)))
	for range *mutants {
		tokens := seeds[rng.IntN(len(seeds))]
		for range 1 + rng.IntN(4)/3 {
			tokens = all.mutate(rng, tokens)
		}
		texts := make([]string, len(tokens))
		for i, t := range tokens {
			texts[i] = t.text
		}
		if text := strings.Join(texts, " "); text != "" {
			o.add(text)
		}
	}
	o.report("mutants")
}

// token is a token's text and its kind: which keyword category, or which token.
type token struct {
	text string
	kind int32
}

// tokensOf cuts a statement into tokens by PostgreSQL's scanner; nil where it refuses the statement or finds several.
func tokensOf(text string) []token {
	result, err := pg.Scan(text)
	if err != nil {
		return nil
	}
	var tokens []token
	for _, t := range result.Tokens {
		switch t.Token {
		case pg.Token_SQL_COMMENT, pg.Token_C_COMMENT:
			continue
		case pg.Token_ASCII_59: // ;
			return nil
		}
		kind := int32(t.Token)
		if t.KeywordKind != pg.KeywordKind_NO_KEYWORD {
			kind = -int32(t.KeywordKind)
		}
		tokens = append(tokens, token{text[t.Start:t.End], kind})
	}
	return tokens
}

// pool has the tokens that mutants are made of.
type pool struct {
	tokens []token
	kinds  map[int32][]token
}

func (p *pool) add(tokens []token) {
	p.tokens = append(p.tokens, tokens...)
	for _, t := range tokens {
		p.kinds[t.kind] = append(p.kinds[t.kind], t)
	}
}

// mutate changes one token. The list it is given stays as it is.
func (p *pool) mutate(rng *rand.Rand, tokens []token) []token {
	if len(tokens) == 0 {
		return tokens
	}
	at := rng.IntN(len(tokens))
	out := append([]token(nil), tokens[:at]...)
	switch rng.IntN(6) {
	case 0:
	case 1:
		out = append(out, tokens[at], tokens[at])
	case 2:
		if at+1 < len(tokens) {
			out = append(out, tokens[at+1], tokens[at])
			at++
		}
	case 3:
		same := p.kinds[tokens[at].kind]
		out = append(out, same[rng.IntN(len(same))])
	case 4:
		out = append(out, p.tokens[rng.IntN(len(p.tokens))])
	default:
		out = append(out, p.tokens[rng.IntN(len(p.tokens))], tokens[at])
	}
	return append(out, tokens[at+1:]...)
}
