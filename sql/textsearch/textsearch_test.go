package textsearch

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/percodb/percodb/sql/tsparser"
	"github.com/percodb/percodb/sql/types/tsearch"
)

func noPoll() error           { return nil }
func noReserve(int) error     { return nil }
func english() *Configuration { return ConfigurationNamed("english") }

func TestParseOptions(t *testing.T) {
	for _, c := range []struct {
		text string
		want []option // nil: an error
	}{
		{"", []option{}},
		{" , ", []option{}},
		{"a=1", []option{{"a", "1"}}},
		{"a = 1 , b='x, y'c=z", []option{{"a", "1"}, {"b", "x, y"}, {"c", "z"}}},
		{`"a ""b" = "c""d"`, []option{{`a "b`, `c"d`}}},
		{`a='it''s \\ \n'`, []option{{"a", `it's \ \n`}}},
		{`a=E'x'`, []option{{"a", "x"}}},
		{"a", nil}, {"a=", nil}, {"a b=1", nil}, {"a='x", nil}, {`"a=1`, nil}, {"a=1 b", nil},
	} {
		got, err := parseOptions(c.text)
		if (err != nil) != (c.want == nil) || err == nil && len(got)+len(c.want) > 0 && !reflect.DeepEqual(got, c.want) {
			t.Errorf("parseOptions(%q) = %q, %v", c.text, got, err)
		}
	}
}

func TestHeadlineOptions(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"", ""},
		{"maxwords=10, MINWORDS=2, ShortWord=0, MaxFragments=3", ""},
		{"MinWords=35", "MinWords should be less than MaxWords"},
		{"MinWords=0", "MinWords should be positive"},
		{"ShortWord=-1", "ShortWord should be >= 0"},
		{"MaxFragments=-1", "MaxFragments should be >= 0"},
		{"HighlightAll=on, MinWords=99", ""},
		{"Nope=1", `unrecognized headline parameter: "Nope"`},
		{"MaxWords=ten", `invalid input syntax for type integer: "ten"`},
		{"MaxWords=9999999999", `value "9999999999" is out of range for type integer`},
	} {
		_, err := ParseHeadlineOptions(c.text)
		if got := fmt.Sprint(err); err != nil && !strings.Contains(got, c.want) || (err == nil) != (c.want == "") {
			t.Errorf("ParseHeadlineOptions(%q): %v, not %q", c.text, err, c.want)
		}
	}
}

// The headlines are PostgreSQL's.
func TestHeadline(t *testing.T) {
	const text = "Day after day, day after day, we stuck, nor breath nor motion, as idle as a painted ship upon a painted ocean. " +
		"Water, water, every where, and all the boards did shrink"
	for _, c := range []struct{ text, query, options, want string }{
		{text, "painted", "MaxWords=6, MinWords=3", "<b>painted</b> ship upon"},
		{text, "breath & ocean", "MaxWords=5, MinWords=2", "<b>breath</b> nor motion, as idle"},
		{text, "day <-> after", "MaxWords=5, MinWords=2", "<b>after</b> <b>day</b>, <b>day</b> <b>after</b>"},
		{text, "water | ship", "MaxWords=4, MinWords=2, MaxFragments=2", "painted <b>ship</b> upon ... ocean. <b>Water</b>, <b>water</b>, every"},
		{text, "nothing", "MaxWords=5, MinWords=2", "Day after"},
		{"a <i>b</i> c", "b", "", "a  <b>b</b>  c"},
		{"a <i>b</i> c", "b", "HighlightAll=true", "a <i><b>b</b></i> c"},
		{"", "b", "", ""},
	} {
		q, err := tsearch.ParseQueryWith(c.query, ConfigurationNamed("simple").Morph(tsearch.And, noPoll))
		if err != nil {
			t.Fatal(err)
		}
		o, err := ParseHeadlineOptions(c.options)
		if err != nil {
			t.Fatal(err)
		}
		got, err := ConfigurationNamed("simple").NewHighlighter(q, o, noPoll, noReserve).Headline(nil, c.text)
		if err != nil || string(got) != c.want {
			t.Errorf("headline of %.20q for %s, %s: %q, %v; want %q", c.text, c.query, c.options, got, err, c.want)
		}
	}
}

// Goal: a headline of a long text can be cancelled, and asks for its memory. Method: errors of poll and reserve.
func TestHeadlineEnds(t *testing.T) {
	stop := errors.New("stop")
	q, err := tsearch.ParseQuery("foo & bar")
	if err != nil {
		t.Fatal(err)
	}
	o, err := ParseHeadlineOptions("MaxFragments=100")
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Repeat("foo ", 20000)
	for n := range 20 {
		polls := 0
		poll := func() error {
			if polls++; polls > n*5000 {
				return stop
			}
			return nil
		}
		if _, err := english().NewHighlighter(q, o, poll, noReserve).Headline(nil, text); !errors.Is(err, stop) {
			t.Errorf("after %d polls: %v", n*5000, err)
		}
	}
	reserved := 0
	_, err = english().NewHighlighter(&tsearch.Query{}, o, noPoll, func(n int) error { reserved += n; return nil }).Headline(nil, text)
	if err != nil || reserved < 40000*headTokenBytes {
		t.Errorf("a headline of 40,000 tokens reserved %d bytes, %v", reserved, err)
	}
}

func TestLexize(t *testing.T) {
	for _, c := range []struct {
		dictionary, word string
		want             []string
	}{
		{"simple", "The", []string{"the"}}, {"english_stem", "The", nil}, {"english_stem", "Stars", []string{"star"}},
		{"german_stem", "Häuser", []string{"haus"}}, {"greek_stem", "και", []string{"κα"}},
		{"english_stem", strings.Repeat("Running", 200), []string{strings.Repeat("running", 200)}},
	} {
		got, known := DictionaryNamed(c.dictionary).Lexize(c.word)
		if !known || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s of %.20q: %q, %t", c.dictionary, c.word, got, known)
		}
	}
	stopOnly := &Dictionary{Template: SimpleTemplate, stopWords: "english"}
	if got, known := stopOnly.Lexize("The"); got != nil || !known {
		t.Errorf("a stop word: %q, %t", got, known)
	}
	if _, known := stopOnly.Lexize("fox"); known {
		t.Error("a dictionary that does not accept words knows fox")
	}
}

// Goal: the first dictionary that knows a token decides, and unknown tokens take no position.
func TestDictionariesInOrder(t *testing.T) {
	stopOnly := &Dictionary{Template: SimpleTemplate, stopWords: "english"}
	c := &Configuration{Name: "mixed"}
	c.Dictionaries[tsparser.AsciiWord] = []*Dictionary{stopOnly, DictionaryNamed("english_stem")}
	c.Dictionaries[tsparser.UInt] = []*Dictionary{stopOnly}
	v, err := c.Vector("the 12 foxes 13 run", noPoll)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := string(v.AppendText(nil)), "'fox':2 'run':3"; got != want {
		t.Errorf("%s, not %s", got, want)
	}
}

func TestDocument(t *testing.T) {
	d := english().NewDocument(noPoll)
	for _, text := range []string{"fat cats", "", "the", "rats"} {
		if err := d.Add(text); err != nil {
			t.Fatal(err)
		}
	}
	v, err := d.Vector()
	if err != nil {
		t.Fatal(err)
	}
	if got, want := string(v.AppendText(nil)), "'cat':2 'fat':1 'rat':5"; got != want {
		t.Errorf("%s, not %s", got, want)
	}
}
