package textsearch

import (
	"strings"

	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/tsparser"
	"github.com/percodb/percodb/sql/types/tsearch"
)

// lexemes returns what a configuration makes of a token: the lexemes of the first dictionary that knows it, none for a stop word.
// known is false for tokens that are not indexed.
func (c *Configuration) lexemes(kind tsparser.Kind, token string) (words []string, known bool) {
	if len(token) > tsearch.MaxWord {
		return nil, false
	}
	for _, d := range c.Dictionaries[kind] {
		if words, known = d.Lexize(token); !known {
			continue
		}
		if !d.filters() {
			return words, true
		}
		token = words[0]
	}
	return nil, false
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
		words, known := c.lexemes(kind, token)
		if !known {
			continue
		}
		pos++
		for _, w := range words {
			if err := f(w, pos); err != nil {
				return pos, err
			}
		}
	}
}

// Document collects the lexemes of a document that consists of several texts. A phrase never spans two of them.
type Document struct {
	c     *Configuration
	poll  func() error
	pos   int
	list  []tsearch.Lexeme
	index map[string]int
}

// NewDocument returns an empty document. poll is called from time to time and may end the work.
func (c *Configuration) NewDocument(poll func() error) *Document {
	return &Document{c: c, poll: poll, index: map[string]int{}}
}

// Add appends a text.
func (d *Document) Add(text string) error {
	indexed := false
	pos, err := d.c.each(text, d.pos, d.poll, func(word string, pos int) error {
		indexed = true
		d.add(word, pos)
		return nil
	})
	d.pos = pos
	if indexed {
		d.pos++
	}
	return err
}

// Continue appends a text to the one before it, as if they were one: a phrase may span them.
func (d *Document) Continue(text string) (err error) {
	d.pos, err = d.c.each(text, d.pos, d.poll, func(word string, pos int) error {
		d.add(word, pos)
		return nil
	})
	return err
}

// maxWordPositions is the number of positions that the words of documents have at most.
const maxWordPositions = tsearch.MaxPositions - 1

func (d *Document) add(word string, pos int) {
	p := tsearch.At(pos, 0)
	i, ok := d.index[word]
	if !ok {
		word = strings.Clone(word)
		d.index[word] = len(d.list)
		d.list = append(d.list, tsearch.Lexeme{Word: word, Pos: []tsearch.Position{p}})
		return
	}
	l := &d.list[i]
	if n := len(l.Pos); n < maxWordPositions && l.Pos[n-1].Pos() < p.Pos() {
		l.Pos = append(l.Pos, p)
	}
}

// Vector returns the vector of the document, which must not be used afterwards.
func (d *Document) Vector() (tsearch.Vector, error) { return tsearch.NewVector(d.list) }

// Vector returns the vector of a text.
func (c *Configuration) Vector(text string, poll func() error) (tsearch.Vector, error) {
	d := c.NewDocument(poll)
	if err := d.Add(text); err != nil {
		return nil, err
	}
	return d.Vector()
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
