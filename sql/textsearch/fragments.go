package textsearch

import "math"

// fragment is a part of a cover, of which the headline may consist.
type fragment struct {
	part
	used bool // it is shown, or overlaps one that is
}

// showFragments shows several parts of the text: those with most of what the query searches for.
func (h *Highlighter) showFragments() error {
	list, err := h.fragments()
	if err != nil {
		return err
	}
	shown := 0
	for ; shown < h.options.maxFragments; shown++ {
		if err := h.poll(); err != nil {
			return err
		}
		best := bestFragment(list)
		if best == nil {
			break
		}
		h.widen(best)
		h.show(best.first, best.last)
		for i := range list {
			f := &list[i]
			f.used = f.used || f.first <= best.last && f.last >= best.first
		}
	}
	if shown == 0 {
		h.showBeginning()
	}
	return nil
}

// fragments divides all covers into parts of at most the largest number of words.
func (h *Highlighter) fragments() ([]fragment, error) {
	var list []fragment
	for i := 0; ; {
		first, last, ok, err := h.cover(i)
		if err != nil || !ok {
			return list, err
		}
		for from := first; from <= last; {
			f := h.cut(from, last)
			if n := len(list); n == cap(list) {
				if err := h.reserve(2 * n * headTokenBytes); err != nil {
					return nil, err
				}
			}
			list = append(list, f)
			from = f.last + 1
		}
		i = first + 1
	}
}

// cut returns the first part of the tokens from first to last that begins and ends with found ones and is not too long.
func (h *Highlighter) cut(first, last int) fragment {
	for first < last && !h.tokens[first].found() {
		first++
	}
	f := fragment{part: part{first: first, last: last}}
	i := first
	for ; i <= last && f.words < h.options.maxWords; i++ {
		f.count(&h.tokens[i], 1)
	}
	if last <= i {
		return f
	}
	for ; ; i-- {
		f.last = i
		if i == first || h.tokens[i].found() {
			return f
		}
		if h.tokens[i].isWord() {
			f.words--
		}
	}
}

// bestFragment returns the unused fragment with most found words, and of those the shortest; nil: there is none.
func bestFragment(list []fragment) (best *fragment) {
	found, words := 0, math.MaxInt
	for i := range list {
		f := &list[i]
		if !f.used && (f.found > found || f.found == found && f.words < words) {
			best, found, words = f, f.found, f.words
		}
	}
	return best
}

// widen lengthens a fragment on both sides, as far as other fragments permit, up to a token that may end a headline.
func (h *Highlighter) widen(f *fragment) {
	room := h.options.maxWords - f.words
	if room <= 0 {
		return
	}
	first := f.first
	for i, added := first-1, 0; i >= 0 && added < room/2 && !h.tokens[i].in; i-- {
		if h.tokens[i].isWord() {
			f.words++
			added++
		}
		first = i
	}
	for ; first < f.first && !h.mayEnd(first); first++ {
		if h.tokens[first].isWord() {
			f.words--
		}
	}
	f.first = first
	last := f.last
	for i := last + 1; i < len(h.tokens) && f.words < h.options.maxWords && !h.tokens[i].in; i++ {
		if h.tokens[i].isWord() {
			f.words++
		}
		last = i
	}
	for ; last > f.last && !h.mayEnd(last); last-- {
		if h.tokens[last].isWord() {
			f.words--
		}
	}
	f.last = last
}
