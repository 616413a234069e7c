package collation

import (
	"bytes"
	"sync"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/collate"
	"golang.org/x/text/language"
	"golang.org/x/text/unicode/norm"
)

// RulesVersion names the tables of golang.org/x/text/collate.
const RulesVersion = "cldr-" + collate.CLDRVersion

// rearrangedVersion is that of rules whose keys this package makes of the library's.
const rearrangedVersion = RulesVersion + ".1"

// rules are the rules of one order.
type rules struct {
	order order
	// byKey: only keys are right, since the library compares without regard for shifted punctuation, and for what rearranged makes.
	byKey bool
	// rearranged: the keys are those of the library in another arrangement.
	rearranged bool
	pool       sync.Pool // of *sorter
}

// sorter is a collator, which may be used by one goroutine at a time, and the buffers of two keys.
type sorter struct {
	collator *collate.Collator
	bufs     [2]collate.Buffer
	keys     [2][]byte // of rearranged
}

// maxKept bounds the texts whose sorter is kept for the next: a collator keeps memory for the longest.
const maxKept = 64 << 10

var byOrder sync.Map // order.String() → *rules

func rulesOf(locale string) *rules {
	o := parseLocale(locale)
	name := o.String()
	if r, ok := byOrder.Load(name); ok {
		return r.(*rules)
	}
	r := &rules{order: o, rearranged: o.casesApart() || o.strength == 'i'}
	r.byKey = r.rearranged || o.shifted
	tag := o.collatorTag()
	r.pool.New = func() any { return &sorter{collator: collate.New(tag)} }
	kept, _ := byOrder.LoadOrStore(name, r)
	return kept.(*rules)
}

// version is that of the keys.
func (r *rules) version() string {
	usual := order{tag: r.order.tag}
	usual.usual()
	if r.rearranged || usual.shifted || usual.backwards {
		return rearrangedVersion
	}
	return RulesVersion
}

func (r *rules) language() language.Tag { return r.order.tag }

func (r *rules) compare(a, b []byte) int {
	s := r.pool.Get().(*sorter)
	var n int
	if r.byKey {
		n = bytes.Compare(r.key(s, 0, a), r.key(s, 1, b))
	} else {
		n = s.collator.Compare(a, b)
	}
	if len(a) <= maxKept && len(b) <= maxKept {
		r.pool.Put(s)
	}
	return n
}

func (r *rules) appendKey(dst, text []byte) []byte {
	s := r.pool.Get().(*sorter)
	dst = append(dst, r.key(s, 0, text)...)
	if len(text) <= maxKept {
		r.pool.Put(s)
	}
	return dst
}

// key returns the key of a text, which is in one of the sorter's buffers.
func (r *rules) key(s *sorter, i int, text []byte) []byte {
	key := s.collator.Key(&s.bufs[i], text)
	if r.rearranged {
		s.keys[i] = r.rearrange(s.keys[i][:0], key, text)
		key = s.keys[i]
	}
	s.bufs[i].Reset()
	return key
}

// rearrange appends the key of a text, which is made of the library's: the primary weights, the secondary weights and the tertiary weights,
// each but for the first after two zeros, and what follows.
func (r *rules) rearrange(dst, key, text []byte) []byte {
	primaries := primarySection(key)
	dst, key = append(dst, key[:primaries]...), key[primaries:]
	if r.order.strength > '1' {
		n := 2 + pairs(key[2:])
		dst, key = append(dst, key[:n]...), key[n:]
	}
	if r.order.casesApart() {
		dst = append(dst, 0, 0)
		dst = r.appendCases(dst, text)
	}
	dst = append(dst, key...)
	if r.order.strength == 'i' {
		dst = append(dst, 0)
		dst = norm.NFD.Append(dst, text...)
	}
	return dst
}

// primarySection returns the length of the primary weights at the beginning of a key: two bytes each, or three if the first bit is set.
func primarySection(key []byte) int {
	i := 0
	for i+1 < len(key) && (key[i] != 0 || key[i+1] != 0) {
		if key[i]&0x80 != 0 {
			i++
		}
		i += 2
	}
	return min(i, len(key))
}

// pairs returns the length of the pairs of bytes before two zeros.
func pairs(key []byte) int {
	i := 0
	for i+1 < len(key) && (key[i] != 0 || key[i+1] != 0) {
		i += 2
	}
	return i
}

// casesApart reports whether upper and lower case have a level of their own, before the tertiary one. ICU puts the case of each character
// before its other tertiary weights if caseFirst is set: that differs where characters of two texts also differ in width or form.
func (o *order) casesApart() bool { return o.caseLevel || o.caseFirst != caseOff && o.strength > '2' }

// appendCases appends the weights of the level of cases: one for each character that has primary weights.
func (r *rules) appendCases(dst, text []byte) []byte {
	low, high := byte(1), byte(2)
	if r.order.caseFirst == upperFirst {
		low, high = high, low
	}
	for len(text) > 0 {
		c, n := utf8.DecodeRune(text)
		text = text[n:]
		switch {
		case unicode.IsOneOf(ignored, c) || r.order.shifted && (unicode.IsPunct(c) || unicode.IsSpace(c)):
		case unicode.IsUpper(c) || unicode.IsTitle(c):
			dst = append(dst, high)
		default:
			dst = append(dst, low)
		}
	}
	return dst
}

// ignored are the characters without primary weights.
var ignored = []*unicode.RangeTable{unicode.Mn, unicode.Me, unicode.Cc, unicode.Cf}
