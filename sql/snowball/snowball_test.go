package snowball

import (
	"context"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

// Goal: words are stemmed as PostgreSQL 15 stems them. Method: words of each language with the stems that PostgreSQL gives them.
func TestStem(t *testing.T) {
	text, err := os.ReadFile("testdata/stems.tsv")
	if err != nil {
		t.Fatal(err)
	}
	tested := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		f := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		tested[f[0]] = true
		if got := Stem(f[0], f[1]); got != f[2] {
			t.Errorf("%s: the stem of %s is %s, PostgreSQL's %s", f[0], f[1], got, f[2])
		}
	}
	for _, l := range stemmedLanguages() {
		if !tested[l] {
			t.Errorf("%s: no words", l)
		}
	}
	if len(tested) != 28 {
		t.Errorf("words of %d languages, not 28", len(tested))
	}
}

func stemmedLanguages() (list []string) {
	for l := range inModule {
		list = append(list, l)
	}
	for l := range generated {
		list = append(list, l)
	}
	return list
}

func TestStemLeaves(t *testing.T) {
	long := strings.Repeat("running", MaxBytes)
	for _, c := range []struct{ language, word string }{{"english", long}, {"klingon", "running"}, {"", "running"}} {
		if got := Stem(c.language, c.word); got != c.word {
			t.Errorf("Stem(%q, %.20q) = %.20q", c.language, c.word, got)
		}
	}
}

func TestStopWords(t *testing.T) {
	for _, c := range []struct {
		language, word string
		want           bool
	}{{"english", "the", true}, {"english", "fox", false}, {"german", "und", true}, {"german", "the", false}, {"russian", "и", true}, {"greek", "και", false}} {
		if got := IsStopWord(c.language, c.word); got != c.want {
			t.Errorf("IsStopWord(%q, %q) = %t", c.language, c.word, got)
		}
	}
	if !HasStopWords("nepali") || HasStopWords("greek") || HasStopWords("") {
		t.Error("HasStopWords is true for greek or no language, or false for nepali")
	}
}

// Goal: stemmers agree with PostgreSQL beyond the words of TestStem. Method: words of random parts of the stop words and words of a
// language, compared with ts_lexize.
func TestStemAgainstPostgreSQL(t *testing.T) {
	dsn := os.Getenv("PERCODB_TEST_PG_DSN")
	if dsn == "" {
		t.Skip("PERCODB_TEST_PG_DSN is not set")
	}
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	text, err := os.ReadFile("testdata/stems.tsv")
	if err != nil {
		t.Fatal(err)
	}
	sources := map[string][]string{}
	for line := range strings.Lines(string(text)) {
		f := strings.Split(line, "\t")
		sources[f[0]] = append(sources[f[0]], f[1])
	}
	for l, words := range stopWords() {
		for w := range words {
			sources[l] = append(sources[l], w)
		}
	}
	r := rand.New(rand.NewPCG(1, 2))
	for l, source := range sources {
		words := make([]string, 5000)
		for i := range words {
			for range 1 + r.IntN(3) {
				part := []rune(source[r.IntN(len(source))])
				from := r.IntN(len(part))
				words[i] += string(part[from : from+1+r.IntN(len(part)-from)])
			}
		}
		rows, err := conn.Query(ctx, "select w, (ts_lexize($1::text::regdictionary, w))[1] from unnest($2::text[]) w", l+"_stem", words)
		if err != nil {
			t.Fatal(err)
		}
		var word string
		var stem *string
		_, err = pgx.ForEachRow(rows, []any{&word, &stem}, func() error {
			if got := Stem(l, word); stem != nil && got != *stem {
				t.Errorf("%s: the stem of %s is %s, PostgreSQL's %s", l, word, got, *stem)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}
