package collation

import (
	"bytes"
	"encoding/json"
	"runtime"
	"strings"
	"testing"
	"time"
)

func TestNames(t *testing.T) {
	for _, name := range []string{"default", "C", "POSIX", "ucs_basic", "C.utf8", "C.UTF-8", "und-x-icu", "de-x-icu", "zh-Hant-TW-x-icu"} {
		c := ByName(name)
		if c == nil || ByOID(c.OID) != c {
			t.Errorf("%s: %v", name, c)
		}
	}
	if len(Builtin()) != 811 {
		t.Errorf("%d collations", len(Builtin()))
	}
	if c := ByName("de-x-icu"); c.ByBytes() || c.Version() == "" || ByName("C").Version() != "" {
		t.Error("only collations with rules have a version")
	}
}

func TestMerge(t *testing.T) {
	de, sv := ByName("de-x-icu"), ByName("sv-x-icu")
	conflict, _ := Merge(de, sv, 7)
	if a, b, pos, ok := conflict.Between(); !ok || a != de || b != sv || pos != 7 || conflict.Plain() != None {
		t.Fatalf("de and sv: %+v", conflict)
	}
	tests := []struct {
		name       string
		a, b, want *Collation
		ok         bool
	}{
		{"default", nil, nil, nil, true},
		{"a column beats the default", nil, de, de, true},
		{"either way", de, nil, de, true},
		{"COLLATE beats a column", de.Explicit(), sv, de.Explicit(), true},
		{"COLLATE of the default too", nil, DefaultCollation.Explicit(), DefaultCollation.Explicit(), true},
		{"COLLATE beats a conflict", conflict, sv.Explicit(), sv.Explicit(), true},
		{"a conflict stays", conflict, de, conflict, true},
		{"a column without collation has no part", None, de, de, true},
		{"the same twice", de.Explicit(), de.Explicit(), de.Explicit(), true},
		{"two different", de.Explicit(), sv.Explicit(), de.Explicit(), false},
	}
	for _, tt := range tests {
		if got, ok := Merge(tt.a, tt.b, 0); got != tt.want || ok != tt.ok {
			t.Errorf("%s: %v, %v", tt.name, got, ok)
		}
	}
	if DefaultCollation.Explicit().Plain() != nil || de.Explicit().Plain() != de {
		t.Error("Plain")
	}
}

func TestStoredByNumber(t *testing.T) {
	b, err := json.Marshal(ByName("de-x-icu"))
	var c Collation
	if err == nil {
		err = json.Unmarshal(b, &c)
	}
	if err != nil || ByOID(c.OID) != ByName("de-x-icu") {
		t.Errorf("%s: %v", b, err)
	}
}

func TestOrder(t *testing.T) {
	for locale, words := range map[string]string{
		"de":                   "ähre apfel Apfel Äpfel öl zebra Zoo",
		"sv":                   "apfel zebra Zoo ähre öl",
		"cs":                   "cesta čas hora chata ibis",
		"und-u-kn-true":        "a2 a10 a11",
		"und-u-ka-shifted":     "ab a-c ad",
		"und-u-ks-level1":      "A a B b",
		"de-u-co-phonebk":      "ad ä af",
		"no such language, ok": "a A b B",
	} {
		c := New(Collation{OID: 20000, Provider: ICU, Locale: locale})
		list := strings.Fields(words)
		for i := range list {
			for j := range list {
				if got := c.Compare([]byte(list[i]), []byte(list[j])); (got < 0) != (i < j) || (got == 0) != (i == j) {
					t.Errorf("%s: %s and %s: %d", locale, list[i], list[j], got)
				}
			}
		}
	}
}

// FuzzKeys checks that keys order as Compare does, whatever the texts.
func FuzzKeys(f *testing.F) {
	f.Add("de", "Straße", "Strasse")
	f.Add("th", "เก", "แก")
	f.Add("und-u-ka-shifted", "a-b", "ab")
	f.Add("und-u-kn-true", "a0012", "a12")
	f.Add("ja", "\xff\xfe", "\x00a\u0301\U000e0100")
	f.Fuzz(func(t *testing.T, locale, a, b string) {
		c := New(Collation{OID: 20000, Provider: ICU, Locale: "und"})
		for _, l := range []string{"und", "de", "sv", "cs", "hu", "th", "ja", "zh", "da-u-kn-true", "und-u-ka-shifted", "fr-CA-u-kb-true", "und-u-ks-identic", "da", "und-u-ks-level1-kc"} {
			if l == locale || locale == "" {
				c = New(Collation{OID: 20000, Provider: ICU, Locale: l})
			}
		}
		keys := bytes.Compare(c.AppendKey(nil, []byte(a)), c.AppendKey(nil, []byte(b)))
		if keys == 0 {
			keys = bytes.Compare([]byte(a), []byte(b))
		}
		if got := c.Compare([]byte(a), []byte(b)); got != keys {
			t.Errorf("%s: %q and %q: keys %d, texts %d", c.Locale, a, b, keys, got)
		}
		if c.Compare([]byte(b), []byte(a)) != -keys {
			t.Errorf("%s: %q and %q: not antisymmetric", c.Locale, a, b)
		}
	})
}

func BenchmarkCompare(b *testing.B) {
	c := ByName("de-x-icu")
	x, y := []byte("Straßenbahnhof"), []byte("Straßenbahnwagen")
	b.ReportAllocs()
	for b.Loop() {
		c.Compare(x, y)
	}
}

func TestLocales(t *testing.T) {
	for locale, words := range map[string]string{
		"@colNumeric=yes":                       "a2 a10 a11",
		"@colCaseFirst=upper":                   "AB Ab aB ab",
		"@colCaseFirst=lower":                   "ab aB Ab AB",
		"und-u-kf-upper":                        "A a B b",
		"da":                                    "A a B b Å å",
		"da-u-kf-false":                         "a A b B",
		"fr_CA":                                 "cote côte coté côté",
		"fr_FR.utf8":                            "cote coté côte côté",
		"@colAlternate=shifted":                 "ab a-c ad",
		"th":                                    "ab a-c ad",
		"und-u-ka-noignore":                     "a-c ab ad",
		"@colStrength=primary;colCaseLevel=yes": "aáa AAA aáb",
		"und-u-kc-kf-upper-ks-level1":           "AAA aáa aáb",
		"de@collation=phonebook":                "ad ä af",
		"de_AT@collation=phonebook;colNumeric=yes":  "a2 a10 ad ä af",
		"en-US-u-va-posix":                          "A B a b",
		"und-u-ks-identic":                          "a\u0308 ä b",
		"zz@colBackwards=no;other=thing;collation=": "cote coté côte côté",
		"tr-TR-x-lvariant-posix":                    "çay dağ ılık iyi",
	} {
		if p := CheckLocale(locale); p != nil {
			t.Errorf("%s: %+v", locale, p)
		}
		c := New(Collation{OID: 20000, Provider: ICU, Locale: locale})
		list := strings.Fields(words)
		for i := range list {
			for j := range list {
				if got := c.Compare([]byte(list[i]), []byte(list[j])); (got < 0) != (i < j) {
					t.Errorf("%s: %s and %s: %d", locale, list[i], list[j], got)
				}
			}
		}
	}
}

func TestLocaleProblems(t *testing.T) {
	for locale, want := range map[string]*LocaleProblem{
		"":                              nil,
		"nonsense-nowhere":              nil,
		"und-u-xx-bogus":                nil,
		"de-u-co-nosuch":                nil,
		"en-u-co-phonebk":               nil,
		"zh-u-co-pinyin":                nil,
		"zh-u-co-stroke":                nil,
		"zh-Hant-u-co-stroke":           nil,
		"und-u-kh-false-kk-true":        nil,
		"und-u-kv-punct":                nil,
		"@colStrength=bogus":            {},
		"und-u-ks-bogus":                {},
		"@colNumeric=lower":             {},
		"und-u-kf-x":                    {},
		"und-u-ka-x":                    {},
		"und-u-kr-latn-digit":           {Attribute: "kr-latn-digit"},
		"@colReorder=latn":              {Attribute: "colReorder=latn"},
		"de-u-co-search":                {Attribute: "co-search"},
		"es@collation=traditional":      {Attribute: "collation=traditional"},
		"zh-u-co-zhuyin":                {Attribute: "co-zhuyin"},
		"und-u-kv-space":                {Attribute: "kv-space"},
		"und@colHiraganaQuaternary=yes": {Attribute: "colHiraganaQuaternary=yes"},
	} {
		got := CheckLocale(locale)
		if (got == nil) != (want == nil) || got != nil && *got != *want {
			t.Errorf("%s: %+v", locale, got)
		}
	}
}

func TestDefined(t *testing.T) {
	c := Defined(20000, ICU, "de-u-kn")
	b, err := json.Marshal(c)
	var stored *Collation
	if err == nil {
		err = json.Unmarshal(b, &stored)
	}
	if err == nil {
		stored, err = stored.Known()
	}
	if err != nil || stored != c || stored.Explicit().Plain() != c {
		t.Fatalf("%s: %+v, %v", b, stored, err)
	}
	if other := Defined(20000, ICU, "sv"); other == c || !SameOrder(Defined(20001, ICU, "sv"), other) || SameOrder(c, other) {
		t.Error("another locale is another collation")
	}
	if _, err := (&Collation{OID: 20000}).Known(); err == nil {
		t.Error("a number alone is no collation of a user")
	}
}

func TestForgotten(t *testing.T) {
	d := definition{20002, ICU, "und-u-kn"}
	_ = Defined(d.OID, d.Provider, d.Locale)
	for range 100 {
		runtime.GC()
		defined.Lock()
		_, kept := defined.m[d]
		defined.Unlock()
		if !kept {
			return
		}
		time.Sleep(10 * time.Millisecond) // The cleanup runs in a goroutine after the collection.
	}
	t.Error("a collation that nothing refers to is kept")
}

func TestVersions(t *testing.T) {
	for locale, want := range map[string]string{"de": RulesVersion, "und-u-kn-true": RulesVersion, "da": rearrangedVersion, "th": rearrangedVersion,
		"fr-CA": rearrangedVersion, "und-u-kf-upper": rearrangedVersion} {
		if got := Defined(20003, ICU, locale).Version(); got != want {
			t.Errorf("%s: %s", locale, got)
		}
	}
}
