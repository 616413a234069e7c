// Package snowball stems words of 28 languages, and knows the stop words of 15 of them.
//
// The stemmers are what Snowball's compiler generates from the algorithms of its release 2.2.0; the lists of stop words are the
// Snowball project's as PostgreSQL 15 distributes them. NOTICE names their licences.
package snowball

import (
	"embed"
	"strings"
	"sync"

	runtime "github.com/snowballstem/snowball/go"
)

//go:embed stop/*.stop
var stopFiles embed.FS

// MaxBytes is the size of the longest words that are stemmed.
const MaxBytes = 1000

var stemmers = map[string]func(*runtime.Env) bool{
	"arabic":     arabicStem,
	"armenian":   armenianStem,
	"basque":     basqueStem,
	"catalan":    catalanStem,
	"danish":     danishStem,
	"dutch":      dutchStem,
	"english":    englishStem,
	"finnish":    finnishStem,
	"french":     frenchStem,
	"german":     germanStem,
	"greek":      greekStem,
	"hindi":      hindiStem,
	"hungarian":  hungarianStem,
	"indonesian": indonesianStem,
	"irish":      irishStem,
	"italian":    italianStem,
	"lithuanian": lithuanianStem,
	"nepali":     nepaliStem,
	"norwegian":  norwegianStem,
	"portuguese": portugueseStem,
	"romanian":   romanianStem,
	"russian":    russianStem,
	"serbian":    serbianStem,
	"spanish":    spanishStem,
	"swedish":    swedishStem,
	"tamil":      tamilStem,
	"turkish":    turkishStem,
	"yiddish":    yiddishStem,
}

// Stem returns the stem of a word in lower case. Words beyond MaxBytes stay as they are, as words of a language that has no stemmer.
func Stem(language, word string) string {
	stem := stemmers[language]
	if stem == nil || len(word) > MaxBytes {
		return word
	}
	env := runtime.NewEnv(word)
	stem(env)
	return env.Current()
}

var stopWords = sync.OnceValue(func() map[string]map[string]bool {
	m := map[string]map[string]bool{}
	for language := range stemmers {
		text, err := stopFiles.ReadFile("stop/" + language + ".stop")
		if err != nil {
			continue // The language has no list.
		}
		words := map[string]bool{}
		for _, w := range strings.Fields(string(text)) {
			words[strings.ToLower(w)] = true
		}
		m[language] = words
	}
	return m
})

// IsStopWord reports whether a word in lower case is a stop word of a language.
func IsStopWord(language, word string) bool { return stopWords()[language][word] }
