package session

import (
	"slices"
	"strings"

	"github.com/percodb/percodb/session/settings"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/copyformat"
	"github.com/percodb/percodb/sql/pgerror"
)

// copyOptions reads COPY's options, in the words of PostgreSQL 15's reference page. columns are the
// names of the columns copied.
func copyOptions(n *ast.Copy, columns []string) (copyformat.Options, error) {
	format := copyformat.Text
	for _, o := range n.Options {
		if strings.EqualFold(o.Name, "format") {
			switch strings.ToLower(o.Value) {
			case "text":
			case "csv":
				format = copyformat.CSV
			case "binary":
				format = copyformat.Binary
			default:
				return copyformat.Options{}, pgerror.New(pgerror.InvalidParameterValue, "COPY format %q not recognized", o.Value)
			}
		}
	}
	opts := copyformat.DefaultOptions(format)
	quoteGiven, escapeGiven := false, false
	for _, o := range n.Options {
		var err error
		name := strings.ToLower(o.Name)
		if format == copyformat.Binary && (name == "delimiter" || name == "null") {
			return opts, pgerror.New(pgerror.SyntaxError, "cannot specify %s in BINARY mode", strings.ToUpper(name))
		}
		switch name {
		case "format", "freeze", "encoding":
			err = checkCopyEncoding(name, o.Value)
		case "delimiter":
			opts.Delimiter, err = oneByte("delimiter", o.Value)
		case "null":
			opts.Null = o.Value
		case "header":
			err = setHeader(&opts, o.Value)
		case "quote":
			quoteGiven = true
			opts.Quote, err = oneByte("quote", o.Value)
		case "escape":
			escapeGiven = true
			opts.Escape, err = oneByte("escape", o.Value)
		case "force_quote":
			opts.ForceQuote, err = columnSet(o.Value, columns)
		case "force_not_null":
			opts.ForceNotNull, err = columnSet(o.Value, columns)
		case "force_null":
			opts.ForceNull, err = columnSet(o.Value, columns)
		default:
			err = pgerror.New(pgerror.SyntaxError, "option %q not recognized", o.Name)
		}
		if err != nil {
			return opts, err
		}
	}
	if quoteGiven && !escapeGiven {
		opts.Escape = opts.Quote
	}
	return opts, checkCopyOptions(&opts, quoteGiven || escapeGiven)
}

func checkCopyEncoding(name, value string) error {
	if name != "encoding" {
		return nil
	}
	_, err := settings.CheckEncoding(value)
	if err != nil {
		return pgerror.Unsupported("COPY with encoding "+value, "Convert the data to UTF8.")
	}
	return nil
}

func setHeader(opts *copyformat.Options, value string) error {
	if strings.EqualFold(value, "match") {
		opts.Header, opts.HeaderMatch = true, true
		return nil
	}
	if value == "" {
		value = "on"
	}
	v, err := settings.CheckBool(value)
	if err != nil {
		return pgerror.New(pgerror.SyntaxError, "header requires a Boolean value or \"match\"")
	}
	opts.Header = v == "on"
	return nil
}

// checkCopyOptions refuses what contradicts itself.
func checkCopyOptions(o *copyformat.Options, quoting bool) error {
	csvOnly := func(what string) error {
		return pgerror.New(pgerror.FeatureNotSupported, "COPY %s available only in CSV mode", what)
	}
	switch {
	case o.Format != copyformat.CSV && quoting:
		return csvOnly("quote")
	case o.Format != copyformat.CSV && o.ForceQuote != nil:
		return csvOnly("force quote")
	case o.Format != copyformat.CSV && o.ForceNotNull != nil:
		return csvOnly("force not null")
	case o.Format != copyformat.CSV && o.ForceNull != nil:
		return csvOnly("force null")
	case o.Format == copyformat.Binary && o.Header:
		return pgerror.New(pgerror.FeatureNotSupported, "cannot specify HEADER in BINARY mode")
	case o.Delimiter == '\n' || o.Delimiter == '\r':
		return pgerror.New(pgerror.InvalidParameterValue, "COPY delimiter cannot be newline or carriage return")
	case strings.ContainsAny(o.Null, "\r\n"):
		return pgerror.New(pgerror.InvalidParameterValue, "COPY null representation cannot use newline or carriage return")
	case o.Format != copyformat.CSV && strings.IndexByte(`\.abcdefghijklmnopqrstuvwxyz0123456789`, o.Delimiter) >= 0:
		return pgerror.New(pgerror.InvalidParameterValue, "COPY delimiter cannot be %q", string(o.Delimiter))
	case o.Format == copyformat.CSV && o.Delimiter == o.Quote:
		return pgerror.New(pgerror.InvalidParameterValue, "COPY delimiter and quote must be different")
	case strings.IndexByte(o.Null, o.Delimiter) >= 0:
		return pgerror.New(pgerror.InvalidParameterValue, "COPY delimiter must not appear in the NULL specification")
	}
	return nil
}

func oneByte(what, value string) (byte, error) {
	if len(value) != 1 {
		return 0, pgerror.New(pgerror.FeatureNotSupported, "COPY %s must be a single one-byte character", what)
	}
	return value[0], nil
}

// columnSet reads "*" or a list of columns in parentheses.
func columnSet(value string, columns []string) ([]bool, error) {
	set := make([]bool, len(columns))
	if value == "*" {
		for i := range set {
			set[i] = true
		}
		return set, nil
	}
	for _, name := range settings.SplitNames(strings.TrimSuffix(strings.TrimPrefix(value, "("), ")")) {
		i := slices.Index(columns, name)
		if i < 0 {
			return nil, pgerror.New(pgerror.InvalidColumnReference, "column %q not referenced by COPY", name)
		}
		set[i] = true
	}
	return set, nil
}
