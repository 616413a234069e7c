package textsearch

import (
	"strconv"
	"strings"

	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/tsparser"
	"github.com/percodb/percodb/sql/types/tsearch"
)

// HeadlineOptions are the options of ts_headline.
type HeadlineOptions struct {
	maxWords, minWords, shortWord, maxFragments int
	highlightAll                                bool
	startSel, stopSel, delimiter                string
}

// ParseHeadlineOptions reads the text form of options; what it does not name has its default.
//
// Errors: 42601, 22023, 22P02, 22003.
func ParseHeadlineOptions(s string) (*HeadlineOptions, error) {
	o := &HeadlineOptions{maxWords: 35, minWords: 15, shortWord: 3, startSel: "<b>", stopSel: "</b>", delimiter: " ... "}
	list, err := parseOptions(s)
	if err != nil {
		return nil, err
	}
	for _, item := range list {
		if err := o.set(item.key, item.value); err != nil {
			return nil, err
		}
	}
	problem := ""
	switch {
	case o.highlightAll:
	case o.minWords >= o.maxWords:
		problem = "MinWords should be less than MaxWords"
	case o.minWords <= 0:
		problem = "MinWords should be positive"
	case o.shortWord < 0:
		problem = "ShortWord should be >= 0"
	case o.maxFragments < 0:
		problem = "MaxFragments should be >= 0"
	}
	if problem != "" {
		return nil, pgerror.New(pgerror.InvalidParameterValue, "%s", problem)
	}
	return o, nil
}

func (o *HeadlineOptions) set(key, value string) (err error) {
	switch strings.ToLower(key) {
	case "maxwords":
		o.maxWords, err = integer(value)
	case "minwords":
		o.minWords, err = integer(value)
	case "shortword":
		o.shortWord, err = integer(value)
	case "maxfragments":
		o.maxFragments, err = integer(value)
	case "startsel":
		o.startSel = value
	case "stopsel":
		o.stopSel = value
	case "fragmentdelimiter":
		o.delimiter = value
	case "highlightall":
		switch strings.ToLower(value) {
		case "1", "on", "true", "t", "y", "yes":
			o.highlightAll = true
		default:
			o.highlightAll = false
		}
	default:
		return pgerror.New(pgerror.InvalidParameterValue, "unrecognized headline parameter: \"%s\"", key)
	}
	return err
}

func integer(s string) (int, error) {
	n, err := strconv.ParseInt(strings.Trim(s, spaces), 10, 32)
	switch {
	case err == nil:
		return int(n), nil
	case err.(*strconv.NumError).Err == strconv.ErrRange:
		return 0, pgerror.New(pgerror.NumericValueOutOfRange, "value \"%s\" is out of range for type integer", s)
	}
	return 0, pgerror.New(pgerror.InvalidTextRepresentation, "invalid input syntax for type integer: \"%s\"", s)
}

// maxCover is the number of tokens that a cover spans at most.
func (o *HeadlineOptions) maxCover() int {
	n := max(10*o.maxWords, 100)
	if o.maxFragments > 0 {
		n *= o.maxFragments
	}
	return n
}

// headToken is a token of the text, and what of it is shown. A token that several operands of the query match is followed by
// copies of itself, one for each further operand.
type headToken struct {
	text    string
	kind    tsparser.Kind
	operand *tsearch.Node // nil: the query does not search for it
	pos     int
	copied  bool

	in, selected, blanked, skipped bool
}

// headTokenBytes is the memory that a token takes.
const headTokenBytes = 64

// isWord reports whether a token counts as a word of the headline: blanks, tags and compounds, whose parts follow, do not.
func (t *headToken) isWord() bool {
	return t.kind != tsparser.Blank && t.kind != tsparser.Tag && !t.compound()
}

func (t *headToken) compound() bool {
	switch t.kind {
	case tsparser.URL, tsparser.NumHWord, tsparser.AsciiHWord, tsparser.HWord:
		return true
	}
	return false
}

// found reports whether the token is one that the query searches for.
func (t *headToken) found() bool { return t.operand != nil && !t.copied }

// mayEnd reports whether a headline may begin or end with the token: found ones, and words that are long enough and no numbers.
func (t *headToken) mayEnd(shortWord int) bool {
	if t.found() {
		return true
	}
	switch t.kind {
	case tsparser.SFloat, tsparser.Version, tsparser.Float, tsparser.Int, tsparser.UInt, tsparser.Protocol, tsparser.Entity:
		return false
	}
	return t.isWord() && len(t.text) > shortWord
}

// Highlighter makes headlines of texts for one query.
type Highlighter struct {
	c        *Configuration
	query    *tsearch.Query
	operands []*tsearch.Node
	options  *HeadlineOptions
	poll     func() error
	reserve  func(bytes int) error

	tokens []headToken
}

// NewHighlighter returns a Highlighter. poll is called from time to time, reserve before memory is used; both may end the work.
func (c *Configuration) NewHighlighter(q *tsearch.Query, o *HeadlineOptions, poll func() error, reserve func(bytes int) error) *Highlighter {
	return &Highlighter{c: c, query: q, operands: q.Operands(), options: o, poll: poll, reserve: reserve}
}

// Headline appends the headline of a text.
func (h *Highlighter) Headline(dst []byte, text string) ([]byte, error) {
	if err := h.read(text); err != nil {
		return nil, err
	}
	var err error
	switch {
	case h.options.highlightAll && h.options.maxFragments == 0:
		h.show(0, len(h.tokens)-1)
	case h.options.maxFragments == 0:
		err = h.showBest()
	default:
		err = h.showFragments()
	}
	if err != nil {
		return nil, err
	}
	return h.append(dst)
}

// read divides the text into tokens and finds those that operands match.
func (h *Highlighter) read(text string) error {
	h.tokens = h.tokens[:0]
	p := tsparser.New(text, h.poll)
	pos := 0
	for {
		kind, token, ok, err := p.Next()
		if err != nil || !ok {
			return err
		}
		if len(token) > tsearch.MaxWord {
			continue
		}
		if n := len(h.tokens); n == cap(h.tokens) {
			if err := h.reserve(2 * n * headTokenBytes); err != nil {
				return err
			}
		}
		h.tokens = append(h.tokens, headToken{text: token, kind: kind})
		words, known := h.c.lexemes(kind, token)
		if !known {
			continue
		}
		pos++
		for _, w := range words {
			h.match(w, pos)
		}
	}
}

// match notes which operands match a lexeme of the last token.
func (h *Highlighter) match(word string, pos int) {
	last := len(h.tokens) - 1
	h.tokens[last].pos = tsearch.At(pos, 0).Pos()
	for _, n := range h.operands {
		if n.Word != word && !(n.Prefix && strings.HasPrefix(word, n.Word)) {
			continue
		}
		if h.tokens[last].operand == nil {
			h.tokens[last].operand = n
			continue
		}
		again := h.tokens[last]
		again.operand, again.copied = n, true
		h.tokens = append(h.tokens, again)
	}
}

// next returns the first token from i on that an operand matches, -1 for none.
func (h *Highlighter) next(i int) int {
	for ; i < len(h.tokens); i++ {
		if h.tokens[i].operand != nil {
			return i
		}
	}
	return -1
}

// cover finds the first part of the text from token i on that satisfies the query and is as short as possible. It begins and ends
// with tokens that operands match.
func (h *Highlighter) cover(i int) (first, last int, found bool, err error) {
	limit := h.options.maxCover()
	for first = h.next(i); first >= 0; {
		following := h.next(first + 1)
		for last = first; last >= 0 && (last == first || last-first < limit); last = h.next(last + 1) {
			if err := h.poll(); err != nil {
				return 0, 0, false, err
			}
			if h.query.HoldsAt(h.positionsIn(h.tokens[first : last+1])) {
				return first, last, true, nil
			}
		}
		first = following
	}
	return 0, 0, false, nil
}

// positionsIn returns where an operand matches tokens.
func (h *Highlighter) positionsIn(tokens []headToken) func(*tsearch.Node) []int {
	return func(n *tsearch.Node) (list []int) {
		for i := range tokens {
			if t := &tokens[i]; t.operand == n && (len(list) == 0 || list[len(list)-1] < t.pos) {
				list = append(list, t.pos)
			}
		}
		return list
	}
}

// part is a part of the text, with its words and those of them that are found.
type part struct {
	first, last  int
	words, found int
	whole        bool // it contains its cover
}

func (p *part) count(t *headToken, by int) {
	if t.isWord() {
		p.words += by
	}
	if t.found() {
		p.found += by
	}
}

// showBest shows one part of the text: the best around any cover.
func (h *Highlighter) showBest() error {
	best := part{found: -1}
	for i := 0; ; {
		first, last, ok, err := h.cover(i)
		if err != nil {
			return err
		}
		if !ok {
			break
		}
		p := h.around(first, last)
		switch {
		case best.found < 0, p.whole && !best.whole:
			best = p
		case p.whole != best.whole:
		case p.found > best.found, p.found == best.found && h.mayEnd(p.last) && !h.mayEnd(best.last):
			best = p
		}
		i = first + 1
	}
	if best.found < 0 {
		h.showBeginning()
		return nil
	}
	h.show(best.first, best.last)
	return nil
}

func (h *Highlighter) mayEnd(i int) bool { return h.tokens[i].mayEnd(h.options.shortWord) }

// around returns the part of the text to show for a cover: it grows to the right, then to the left, up to the least number of words, or is
// cut at the largest.
func (h *Highlighter) around(first, last int) part {
	o := h.options
	p := part{first: first, last: first}
	i := first
	for ; i <= last && p.words < o.maxWords; i++ {
		p.count(&h.tokens[i], 1)
		p.last = i
	}
	if p.words < o.maxWords {
		h.grow(&p, i-1, last)
	} else {
		for i = min(i, last); p.words > o.minWords && !h.mayEnd(i); i-- {
			p.count(&h.tokens[i], -1)
			p.last = i - 1
		}
	}
	p.whole = p.first <= first && p.last >= last
	return p
}

// grow lengthens a part whose cover ends at last. It begins at token i.
func (h *Highlighter) grow(p *part, i, last int) {
	o := h.options
	for ; i < len(h.tokens) && p.words < o.maxWords; i++ {
		if i > last {
			p.count(&h.tokens[i], 1)
		}
		p.last = i
		if h.mayEnd(i) && p.words >= o.minWords {
			break
		}
	}
	if p.words >= o.minWords {
		return
	}
	for i = p.first - 1; i >= 0; i-- {
		p.count(&h.tokens[i], 1)
		if p.words >= o.maxWords || h.mayEnd(i) && p.words >= o.minWords {
			break
		}
	}
	p.first = max(i, 0)
}

// showBeginning shows the least number of words from the beginning of the text.
func (h *Highlighter) showBeginning() {
	words, last := 0, 0
	for i := 0; i < len(h.tokens) && words < h.options.minWords; i++ {
		if h.tokens[i].isWord() {
			words++
		}
		last = i
	}
	h.show(0, last)
}

// show marks tokens as parts of the headline.
func (h *Highlighter) show(first, last int) {
	for i := first; i <= last && i < len(h.tokens); i++ {
		t := &h.tokens[i]
		t.selected = t.selected || t.operand != nil
		t.blanked = t.blanked || t.kind == tsparser.Tag && !h.options.highlightAll
		t.skipped = t.skipped || t.compound()
		t.in = !t.copied
	}
}

// append appends the tokens that are shown.
func (h *Highlighter) append(dst []byte) ([]byte, error) {
	o := h.options
	within, fragments := false, 0
	start := len(dst)
	for i := range h.tokens {
		t := &h.tokens[i]
		if t.copied {
			continue
		}
		if !t.in {
			within = false
			continue
		}
		if !within {
			within = true
			if fragments++; fragments > 1 {
				dst = append(dst, o.delimiter...)
			}
		}
		switch {
		case t.blanked:
			dst = append(dst, ' ')
		case t.skipped:
		case t.selected:
			dst = append(append(append(dst, o.startSel...), t.text...), o.stopSel...)
		default:
			dst = append(dst, t.text...)
		}
		if len(dst) == cap(dst) {
			if err := h.reserve(2 * (len(dst) - start)); err != nil {
				return nil, err
			}
		}
	}
	return dst, nil
}
