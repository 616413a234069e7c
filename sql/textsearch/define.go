package textsearch

import (
	"strconv"
	"strings"

	"github.com/percodb/percodb/sql/keyword"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/snowball"
)

// Option is an option of a dictionary.
type Option struct {
	Name  string
	Value string
	// Number: the value was written as a number.
	Number bool `json:",omitempty"`
}

// OptionsText returns options as pg_ts_dict.dictinitoption has them.
func OptionsText(options []Option) string {
	var b strings.Builder
	for i, o := range options {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(keyword.QuoteIdent(o.Name))
		b.WriteString(" = ")
		switch quoted := strings.NewReplacer("'", "''", `\`, `\\`).Replace(o.Value); {
		case o.Number:
			b.WriteString(o.Value)
		case strings.Contains(o.Value, `\`):
			b.WriteString("E'" + quoted + "'")
		default:
			b.WriteString("'" + quoted + "'")
		}
	}
	return b.String()
}

// TemplateNamed returns the template of a name without schema, nil if there is none. That of the extension unaccent is among them.
func TemplateNamed(name string) *Template {
	for _, t := range Templates {
		if t.Name == name {
			return t
		}
	}
	if name == unaccentDictionary.Template.Name {
		return unaccentDictionary.Template
	}
	return nil
}

// NewDictionary returns a dictionary that a user has defined.
//
// Errors: those of PostgreSQL's templates for their options, 0A000 for a template that reads files.
func NewDictionary(oid uint32, name string, t *Template, options []Option) (*Dictionary, error) {
	d := &Dictionary{OID: oid, Name: name, Template: t, Options: OptionsText(options)}
	switch t {
	case SimpleTemplate:
		return d, d.setSimple(options)
	case SnowballTemplate:
		return d, d.setSnowball(options)
	case unaccentDictionary.Template:
		return d, setUnaccent(options)
	}
	return nil, pgerror.Unsupported("The text search template "+t.Name,
		"It reads files of the server. Use the templates simple and snowball, and for what a thesaurus does ts_rewrite.")
}

func (d *Dictionary) setSimple(options []Option) error {
	d.accept = true
	accepts := false
	for _, o := range options {
		switch o.Name {
		case "stopwords":
			if err := d.setStopWords(o); err != nil {
				return err
			}
		case "accept":
			if accepts {
				return invalidOption("multiple Accept parameters")
			}
			accepts = true
			var err error
			if d.accept, err = o.boolean(); err != nil {
				return err
			}
		default:
			return invalidOption("unrecognized simple dictionary parameter: %q", o.Name)
		}
	}
	return nil
}

func (d *Dictionary) setSnowball(options []Option) error {
	d.accept = true
	for _, o := range options {
		switch o.Name {
		case "stopwords":
			if err := d.setStopWords(o); err != nil {
				return err
			}
		case "language":
			if d.language != "" {
				return invalidOption("multiple Language parameters")
			}
			if d.language = strings.ToLower(o.Value); !snowball.HasStemmer(d.language) {
				return pgerror.New(pgerror.UndefinedObject, "no Snowball stemmer available for language %q and encoding %q", o.Value, "UTF8")
			}
		default:
			return invalidOption("unrecognized Snowball parameter: %q", o.Name)
		}
	}
	if d.language == "" {
		return invalidOption("missing Language parameter")
	}
	return nil
}

// setStopWords takes one of the lists that the program contains.
func (d *Dictionary) setStopWords(o Option) error {
	const plain = "abcdefghijklmnopqrstuvwxyz0123456789_"
	switch {
	case d.stopWords != "":
		return invalidOption("multiple StopWords parameters")
	case strings.Trim(o.Value, plain) != "":
		return invalidOption("invalid text search configuration file name \"%s\"", o.Value)
	case !snowball.HasStopWords(o.Value):
		return pgerror.New(pgerror.ConfigFileError, "could not open stop-word file \"%s.stop\": No such file or directory", o.Value).
			WithHint("There are the lists of the languages that have stemmers with stop words in pg_ts_dict.")
	}
	d.stopWords = o.Value
	return nil
}

func setUnaccent(options []Option) error {
	rules := ""
	for _, o := range options {
		switch {
		case o.Name != "rules":
			return invalidOption("unrecognized Unaccent parameter: %q", o.Name)
		case rules != "":
			return invalidOption("multiple Rules parameters")
		case o.Value != "unaccent":
			return pgerror.New(pgerror.ConfigFileError, "could not open unaccent file \"%s.rules\": No such file or directory", o.Value)
		}
		rules = o.Value
	}
	if rules == "" {
		return invalidOption("missing Rules parameter")
	}
	return nil
}

// boolean reads the value as PostgreSQL reads those of definitions.
func (o Option) boolean() (bool, error) {
	if o.Number {
		switch n, err := strconv.Atoi(o.Value); {
		case err == nil && n == 0:
			return false, nil
		case err == nil && n == 1:
			return true, nil
		}
	}
	switch strings.ToLower(o.Value) {
	case "true", "on":
		return true, nil
	case "false", "off":
		return false, nil
	}
	return false, pgerror.New(pgerror.SyntaxError, "%s requires a Boolean value", o.Name)
}

func invalidOption(format string, args ...any) error {
	return pgerror.New(pgerror.InvalidParameterValue, format, args...)
}
