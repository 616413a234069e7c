package collation

import (
	"slices"
	"strings"

	"golang.org/x/text/collate"
	"golang.org/x/text/language"
)

// order is what a locale of ICU says of the order of texts: a language and ICU's attributes of collations.
type order struct {
	tag       language.Tag // with the extension "co" if the type of collation is another than the language's usual one
	strength  byte         // '1' to '4', 'i' for identical
	backwards bool
	caseLevel bool
	caseFirst caseFirst
	numeric   bool
	shifted   bool
	lacking   string // an attribute that this package does not have, as written; "" for none
	invalid   bool   // an attribute has a value that it cannot have
}

// caseFirst is which of two texts comes first that differ in upper and lower case alone.
type caseFirst byte

const (
	caseOff caseFirst = iota // the lower one, and only after all else
	lowerFirst
	upperFirst
)

// ICU's names of attributes and their values before BCP 47, in "@name=value;…".
var (
	oldKeys = map[string]string{"collation": "co", "colstrength": "ks", "colbackwards": "kb", "colcaselevel": "kc", "colcasefirst": "kf",
		"colalternate": "ka", "colnumeric": "kn", "colnormalization": "kk", "colhiraganaquaternary": "kh", "colreorder": "kr", "kv": "kv"}
	oldValues = map[string]string{"yes": "true", "no": "false", "primary": "level1", "secondary": "level2", "tertiary": "level3",
		"quaternary": "level4", "quarternary": "level4", "identical": "identic", "non-ignorable": "noignore",
		"phonebook": "phonebk", "traditional": "trad", "dictionary": "dict", "gb2312han": "gb2312", "phonetic": "phonetic"}
)

// tailored are the types of collations of CLDR and their languages; of another language ICU takes the usual one. "" stands for all.
var tailored = map[string][]string{
	"phonebk": {"de"}, "trad": {"bn", "es", "fi", "kn", "sv", "vi"}, "reformed": {"sv"}, "stroke": {"zh"}, "pinyin": {"zh"}, "zhuyin": {"zh"},
	"big5han": {"zh"}, "gb2312": {"zh"}, "unihan": {"zh", "ja", "ko"}, "dict": {"si"}, "phonetic": {"ln"}, "compat": {"ar"}, "searchjl": {"ko"},
	"search": {""}, "eor": {""}, "emoji": {""}, "ducet": {""},
}

// parseLocale reads a locale as ICU does: a tag of BCP 47, or a POSIX name with keywords. ICU takes the root's order for languages that it does
// not know.
func parseLocale(locale string) order {
	o := order{strength: '3'}
	name, old, _ := strings.Cut(locale, "@")
	name, _, _ = strings.Cut(name, ".")
	name, extension := splitExtension(strings.ReplaceAll(name, "_", "-"))
	o.tag = languageOf(name)
	o.usual()
	for key, value := range extension {
		o.attribute(key, value, key+"-"+value)
	}
	for item := range strings.SplitSeq(old, ";") {
		key, value, _ := strings.Cut(strings.ToLower(strings.TrimSpace(item)), "=")
		key, known := oldKeys[strings.TrimSpace(key)]
		if value = strings.TrimSpace(value); oldValues[value] != "" {
			value = oldValues[value]
		}
		if known {
			o.attribute(key, value, strings.TrimSpace(item))
		}
	}
	return o
}

// usual sets the attributes that ICU has for a language unless the locale says otherwise.
func (o *order) usual() {
	base, _ := o.tag.Base()
	region, _ := o.tag.Region()
	switch base.String() {
	case "da", "mt":
		o.caseFirst = upperFirst
	case "th":
		o.shifted = true
	case "fr":
		o.backwards = region.String() == "CA"
	}
}

// languageOf returns the language, script and region at the beginning of a tag; the root for what is none.
func languageOf(name string) language.Tag {
	parts := strings.Split(name, "-")
	tag := language.Und
	for i := range parts {
		t, err := language.Parse(strings.Join(parts[:i+1], "-"))
		if err != nil {
			break
		}
		tag = t
	}
	return tag
}

// splitExtension divides a tag into the language and the keys of its extension "u".
func splitExtension(tag string) (name string, keys map[string]string) {
	parts := strings.Split(strings.ToLower(tag), "-")
	at := slices.Index(parts, "u")
	if at < 0 {
		return tag, nil
	}
	keys = map[string]string{}
	key := ""
	for _, p := range parts[at+1:] {
		switch {
		case len(p) == 1: // another extension
			return strings.Join(parts[:at], "-"), keys
		case len(p) == 2:
			key = p
			keys[key] = ""
		case keys[key] == "":
			keys[key] = p
		default:
			keys[key] += "-" + p
		}
	}
	return strings.Join(parts[:at], "-"), keys
}

// attribute takes an attribute, which is written as such.
func (o *order) attribute(key, value, written string) {
	switch key {
	case "co":
		o.tailor(value, written)
	case "ks":
		switch value {
		case "level1", "level2", "level3", "level4":
			o.strength = value[len(value)-1]
		case "identic":
			o.strength = 'i'
		default:
			o.invalid = true
		}
	case "kb":
		o.flag(&o.backwards, value)
	case "kc":
		o.flag(&o.caseLevel, value)
	case "kn":
		o.flag(&o.numeric, value)
	case "kk": // Texts are always compared in their normal form.
		o.flag(new(bool), value)
	case "kf":
		cases := map[string]caseFirst{"false": caseOff, "lower": lowerFirst, "upper": upperFirst}
		c, ok := cases[value]
		o.caseFirst, o.invalid = c, o.invalid || !ok
	case "ka":
		o.shifted = value == "shifted"
		o.invalid = o.invalid || value != "shifted" && value != "noignore"
	case "va":
		if tag, err := o.tag.SetTypeForKey("va", value); err == nil && hasTable(tag) {
			o.tag = tag
		}
	case "kh", "kr", "kv", "vt":
		if value != "false" && !(key == "kv" && value == "punct") {
			o.lacking = written
		}
	}
}

// flag reads a Boolean attribute, whose value may be left out.
func (o *order) flag(set *bool, value string) {
	*set = value == "" || value == "true"
	o.invalid = o.invalid || !*set && value != "false"
}

// hasTable reports whether golang.org/x/text/collate has rules for exactly this language and type.
func hasTable(tag language.Tag) bool { return slices.Contains(collate.Supported(), tag) }

// tailor takes the type of collation.
func (o *order) tailor(value, written string) {
	base, _ := o.tag.Base()
	languages := tailored[value]
	if !slices.Contains(languages, base.String()) && !slices.Contains(languages, "") {
		return
	}
	script, sure := o.tag.Script()
	plain := sure != language.Exact || script.String() == "Hans"
	if plain {
		script = language.Script{}
	}
	alone, _ := language.Compose(base, script)
	if tag, err := alone.SetTypeForKey("co", value); err == nil && hasTable(tag) {
		o.tag = tag
	} else if !(value == "pinyin" && plain) && !(value == "stroke" && !plain) { // the usual ones
		o.lacking = written
	}
}

// String identifies the order: equal strings, equal orders.
func (o *order) String() string {
	flags := []byte{o.strength, '0' + byte(o.caseFirst)}
	for _, f := range []struct {
		set  bool
		name byte
	}{{o.backwards, 'b'}, {o.caseLevel, 'c'}, {o.numeric, 'n'}, {o.shifted, 's'}} {
		if f.set {
			flags = append(flags, f.name)
		}
	}
	return o.tag.String() + " " + string(flags)
}

// collatorTag is the tag with the attributes that golang.org/x/text/collate implements.
func (o *order) collatorTag() language.Tag {
	tag := o.tag
	set := func(on bool, key, value string) {
		if on {
			if t, err := tag.SetTypeForKey(key, value); err == nil {
				tag = t
			}
		}
	}
	set(o.backwards, "kb", "true")
	set(o.numeric, "kn", "true")
	set(o.shifted, "ka", "shifted")
	set(o.strength == '1' || o.strength == '2' || o.strength == '4', "ks", "level"+string(o.strength))
	set(o.strength == 'i', "ks", "level4")
	return tag
}

// LocaleProblem says why a locale of ICU cannot be a collation's.
type LocaleProblem struct {
	// Attribute is the one that percodb does not have; "": ICU itself does not permit the value of one.
	Attribute string
}

// CheckLocale returns what is wrong with a locale of ICU, nil if nothing is. ICU accepts languages that it does not know.
func CheckLocale(locale string) *LocaleProblem {
	o := parseLocale(locale)
	switch {
	case o.invalid:
		return &LocaleProblem{}
	case o.lacking != "":
		return &LocaleProblem{Attribute: o.lacking}
	}
	return nil
}
