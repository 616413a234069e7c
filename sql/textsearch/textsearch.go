// Package textsearch turns documents into vectors and texts into queries, by configurations: which dictionary takes which
// tokens of the parser. The configurations and dictionaries are those that PostgreSQL 15 is delivered with, with its OIDs.
package textsearch

import (
	"strings"
	"unicode"

	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/snowball"
	"github.com/percodb/percodb/sql/tsparser"
	"github.com/percodb/percodb/sql/types/tsearch"
)

// Configuration is a row of pg_ts_config: a language.
type Configuration struct {
	OID  uint32
	Name string
	// asciiStem stems words of ASCII letters, stem other words; "" is the dictionary simple.
	asciiStem, stem string
}

// Dictionary is a row of pg_ts_dict.
type Dictionary struct {
	OID  uint32
	Name string
	// language is that of the stemmer; "": none.
	language string
}

const (
	simpleConfiguration = 3748
	simpleDictionary    = 3765
	firstStemmer        = 13151 // the dictionary of the first language; its configuration follows
)

var languages = []string{"arabic", "armenian", "basque", "catalan", "danish", "dutch", "english", "finnish", "french", "german", "greek",
	"hindi", "hungarian", "indonesian", "irish", "italian", "lithuanian", "nepali", "norwegian", "portuguese", "romanian", "russian",
	"serbian", "spanish", "swedish", "tamil", "turkish", "yiddish"}

// Configurations and Dictionaries are sorted by OID.
var (
	Configurations = []Configuration{{OID: simpleConfiguration, Name: "simple"}}
	Dictionaries   = []Dictionary{{OID: simpleDictionary, Name: "simple"}}
)

func init() {
	for i, l := range languages {
		dictionary := uint32(firstStemmer + 2*i)
		c := Configuration{OID: dictionary + 1, Name: l, asciiStem: l, stem: l}
		if l == "hindi" || l == "russian" {
			c.asciiStem = "english" // Words of these languages are not of ASCII letters.
		}
		Configurations = append(Configurations, c)
		Dictionaries = append(Dictionaries, Dictionary{OID: dictionary, Name: l + "_stem", language: l})
	}
}

// ConfigurationNamed returns the configuration of a name without schema, nil if there is none.
func ConfigurationNamed(name string) *Configuration {
	for i := range Configurations {
		if Configurations[i].Name == name {
			return &Configurations[i]
		}
	}
	return nil
}

// DictionaryNamed returns the dictionary of a name without schema, nil if there is none.
func DictionaryNamed(name string) *Dictionary {
	for i := range Dictionaries {
		if Dictionaries[i].Name == name {
			return &Dictionaries[i]
		}
	}
	return nil
}

// ConfigurationByOID returns nil for an unknown OID.
func ConfigurationByOID(oid uint32) *Configuration {
	for i := range Configurations {
		if Configurations[i].OID == oid {
			return &Configurations[i]
		}
	}
	return nil
}

// DictionaryByOID returns nil for an unknown OID.
func DictionaryByOID(oid uint32) *Dictionary {
	for i := range Dictionaries {
		if Dictionaries[i].OID == oid {
			return &Dictionaries[i]
		}
	}
	return nil
}

// Lexize returns what a dictionary makes of a word; false for a stop word.
func (d *Dictionary) Lexize(word string) (string, bool) {
	return lexize(d.language, word)
}

func lexize(language, word string) (string, bool) {
	lower := strings.Map(unicode.ToLower, word)
	if language != "" && len(word) > snowball.MaxBytes {
		return lower, true
	}
	if lower == "" || snowball.IsStopWord(language, lower) {
		return "", false
	}
	return snowball.Stem(language, lower), true
}

// language returns the stemmer for the tokens of a kind; false: they are not searched for.
func (c *Configuration) language(k tsparser.Kind) (string, bool) {
	switch k {
	case tsparser.AsciiWord, tsparser.AsciiHWord, tsparser.HWordAsciiPart:
		return c.asciiStem, true
	case tsparser.Word, tsparser.HWord, tsparser.HWordPart:
		return c.stem, true
	case tsparser.Blank, tsparser.Tag, tsparser.Protocol, tsparser.Entity:
		return "", false
	}
	return "", true
}

// each calls f for every lexeme of a text, with its position counted from first. It returns the position of the last word.
func (c *Configuration) each(text string, first int, poll func() error, f func(word string, pos int) error) (int, error) {
	p := tsparser.New(text, poll)
	pos := first
	for {
		kind, token, ok, err := p.Next()
		if err != nil || !ok {
			return pos, err
		}
		language, ok := c.language(kind)
		if !ok || len(token) > tsearch.MaxWord {
			continue
		}
		pos++
		word, ok := lexize(language, token)
		if !ok {
			continue
		}
		if err := f(word, pos); err != nil {
			return pos, err
		}
	}
}

// Vector returns the vector of a document.
func (c *Configuration) Vector(text string, poll func() error) (tsearch.Vector, error) {
	var b builder
	if _, err := c.each(text, 0, poll, b.add); err != nil {
		return nil, err
	}
	return tsearch.NewVector(b.list)
}

// builder collects the lexemes of a document.
type builder struct {
	list  []tsearch.Lexeme
	index map[string]int
}

// maxWordPositions is the number of positions that the words of documents have at most.
const maxWordPositions = tsearch.MaxPositions - 1

func (b *builder) add(word string, pos int) error {
	if b.index == nil {
		b.index = map[string]int{}
	}
	p := tsearch.At(pos, 0)
	i, ok := b.index[word]
	if !ok {
		b.index[word] = len(b.list)
		b.list = append(b.list, tsearch.Lexeme{Word: strings.Clone(word), Pos: []tsearch.Position{p}})
		return nil
	}
	l := &b.list[i]
	if n := len(l.Pos); n < maxWordPositions && l.Pos[n-1].Pos() < p.Pos() {
		l.Pos = append(l.Pos, p)
	}
	return nil
}

// Morph returns how the operands of a query become lexemes: several words of an operand are joined by op.
func (c *Configuration) Morph(op tsearch.Op, poll func() error) tsearch.Morph {
	return func(text string, weights uint8, prefix bool) (*tsearch.Node, error) {
		var root *tsearch.Node
		last, depth := 0, 0
		join := func(n *tsearch.Node) error {
			if root == nil {
				root = n
				return nil
			}
			if depth++; depth > tsearch.MaxDepth {
				return pgerror.New(pgerror.ProgramLimitExceeded, "tsquery is too large")
			}
			root = tsearch.Join(op, 1, root, n)
			return nil
		}
		_, err := c.each(text, 0, poll, func(word string, pos int) error {
			if last > 0 {
				for last++; last < pos; last++ {
					if err := join(tsearch.Stop()); err != nil {
						return err
					}
				}
			}
			last = pos
			return join(tsearch.NewWord(strings.Clone(word), weights, prefix))
		})
		if err != nil {
			return nil, err
		}
		if root == nil {
			return tsearch.Stop(), nil
		}
		return root, nil
	}
}
