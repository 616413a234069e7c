// Package snowball stems words of 28 languages, and knows the stop words of 15 of them.
//
// The stemmers are what Snowball's compiler generates from the project's algorithms. Those of 18 languages are a module's; those of the
// others are generated here, from release 2.2.0, since the module lacks them. All stem as PostgreSQL 15 does. The lists of stop words
// are the Snowball project's as PostgreSQL 15 distributes them. NOTICE names their licences.
package snowball

//go:generate ./generate.sh

import (
	"embed"
	"strings"
	"sync"

	module "github.com/blevesearch/snowballstem"
	"github.com/blevesearch/snowballstem/arabic"
	"github.com/blevesearch/snowballstem/danish"
	"github.com/blevesearch/snowballstem/dutch"
	"github.com/blevesearch/snowballstem/english"
	"github.com/blevesearch/snowballstem/finnish"
	"github.com/blevesearch/snowballstem/french"
	"github.com/blevesearch/snowballstem/german"
	"github.com/blevesearch/snowballstem/hungarian"
	"github.com/blevesearch/snowballstem/irish"
	"github.com/blevesearch/snowballstem/italian"
	"github.com/blevesearch/snowballstem/norwegian"
	"github.com/blevesearch/snowballstem/portuguese"
	"github.com/blevesearch/snowballstem/romanian"
	"github.com/blevesearch/snowballstem/russian"
	"github.com/blevesearch/snowballstem/spanish"
	"github.com/blevesearch/snowballstem/swedish"
	"github.com/blevesearch/snowballstem/tamil"
	"github.com/blevesearch/snowballstem/turkish"
	runtime "github.com/snowballstem/snowball/go"
)

//go:embed stop/*.stop
var stopFiles embed.FS

// MaxBytes is the size of the longest words that are stemmed.
const MaxBytes = 1000

// inModule are the stemmers of the module, generated those of this package.
var (
	inModule = map[string]func(*module.Env) bool{
		"arabic":     arabic.Stem,
		"danish":     danish.Stem,
		"dutch":      dutch.Stem,
		"english":    english.Stem,
		"finnish":    finnish.Stem,
		"french":     french.Stem,
		"german":     german.Stem,
		"hungarian":  hungarian.Stem,
		"irish":      irish.Stem,
		"italian":    italian.Stem,
		"norwegian":  norwegian.Stem,
		"portuguese": portuguese.Stem,
		"romanian":   romanian.Stem,
		"russian":    russian.Stem,
		"spanish":    spanish.Stem,
		"swedish":    swedish.Stem,
		"tamil":      tamil.Stem,
		"turkish":    turkish.Stem,
	}
	generated = map[string]func(*runtime.Env) bool{
		"armenian":   armenianStem,
		"basque":     basqueStem,
		"catalan":    catalanStem,
		"greek":      greekStem,
		"hindi":      hindiStem,
		"indonesian": indonesianStem,
		"lithuanian": lithuanianStem,
		"nepali":     nepaliStem,
		"serbian":    serbianStem,
		"yiddish":    yiddishStem,
	}
)

// Stem returns the stem of a word in lower case. Words beyond MaxBytes stay as they are, and words of which nothing would remain, and words
// of a language that has no stemmer.
func Stem(language, word string) string {
	if len(word) > MaxBytes {
		return word
	}
	stemmed := ""
	if stem := inModule[language]; stem != nil {
		env := module.NewEnv(word)
		stem(env)
		stemmed = env.Current()
	} else if stem := generated[language]; stem != nil {
		env := runtime.NewEnv(word)
		stem(env)
		stemmed = env.Current()
	}
	if stemmed == "" {
		return word
	}
	return stemmed
}

var stopWords = sync.OnceValue(func() map[string]map[string]bool {
	m := map[string]map[string]bool{}
	files, err := stopFiles.ReadDir("stop")
	if err != nil {
		panic("BUG: the embedded lists of stop words cannot be read: " + err.Error())
	}
	for _, f := range files {
		text, err := stopFiles.ReadFile("stop/" + f.Name())
		if err != nil {
			panic("BUG: an embedded list of stop words cannot be read: " + err.Error())
		}
		words := map[string]bool{}
		for _, w := range strings.Fields(string(text)) {
			words[strings.ToLower(w)] = true
		}
		m[strings.TrimSuffix(f.Name(), ".stop")] = words
	}
	return m
})

// HasStemmer reports whether there is a stemmer of a language.
func HasStemmer(language string) bool { return inModule[language] != nil || generated[language] != nil }

// HasStopWords reports whether there is a list of stop words of a language.
func HasStopWords(language string) bool { return stopWords()[language] != nil }

// IsStopWord reports whether a word in lower case is a stop word of a language.
func IsStopWord(language, word string) bool { return stopWords()[language][word] }
