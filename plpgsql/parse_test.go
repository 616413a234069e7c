package plpgsql

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

func parse(source string) (*Function, *pgerror.Error) {
	f, err := Parse(context.Background(), Inline(), source, nil, nil, &Options{}, nil)
	var e *pgerror.Error
	errors.As(err, &e)
	return f, e
}

// refusals are texts that PostgreSQL 15 refuses, with its messages. The place is marked by ^ in the text; "": the message has a line of
// context instead.
var refusals = []struct{ text, code, message string }{
	{"begin ^foo; end", "42601", `syntax error at or near "foo"`},
	{"begin ^foo := 1; end", "42601", `"foo" is not a known variable`},
	{"begin ^foo.bar := 1; end", "42601", `"foo.bar" is not a known variable`},
	{"declare x int; begin select 1 into ^y; end", "42601", `"y" is not a known variable`},
	{"declare x int; begin if x +^ then null; end if; end", "42601", `syntax error at end of input`},
	{"declare x int; begin if ^; then null; end if; end", "42601", `missing "THEN" at end of SQL expression`},
	{"declare x int ^not null; begin end", "22004", `variable "x" must have a default value, since it's declared NOT NULL`},
	{"begin ^exit; end", "42601", `EXIT cannot be used outside a loop, unless it has a label`},
	{"begin loop exit ^b; end loop; end", "42601", `there is no label "b" attached to any block or loop enclosing this statement`},
	{"<<a>> begin loop continue ^a; end loop; end", "42601", `block label "a" cannot be used in CONTINUE`},
	{"<<a>> begin null; end ^b", "42601", `end label "b" differs from block's label "a"`},
	{"begin null; end ^b", "42601", `end label "b" specified for unlabeled block`},
	{"begin return ^1; end", "42804", `RETURN cannot have a parameter in function returning void`},
	{"begin ^return next 1; end", "42804", `cannot use RETURN NEXT in a non-SETOF function`},
	{"declare x constant int := 1; begin ^x := 2; end", "22005", `variable "x" is declared CONSTANT`},
	{"declare x int; ^x text; begin end", "42601", `duplicate declaration at or near "x"`},
	{"declare r record; i int; begin select 1, 2 into i, ^r; end", "42601", `"r" is not a scalar variable`},
	{"declare i int; begin i := 1 end^", "42601", `syntax error at end of input`},
	{"declare i int; begin get diagnostics i = ^foo; end", "42601", `unrecognized GET DIAGNOSTICS item at or near "foo"`},
	{"begin for ^r in select 1 loop null; end loop; end", "42601", `loop variable of loop over rows must be a record variable or list of scalar variables`},
	{"begin null ^end", "42601", `syntax error at or near "end"`},
	{"declare x ^nosuchtype; begin end", "42704", `type "nosuchtype" does not exist`},
	{"declare x int begin end^", "42601", `incomplete data type declaration at end of input`},
	{"declare c cursor (a int) for select a; begin open c^; end", "42601", `cursor "c" has arguments`},
	{"declare c cursor (a int) for select a; begin open c(1^,2); end", "42601", `too many arguments for cursor "c"`},
	{"declare c cursor (a int) for select a; begin open c(^b := 2); end", "42601", `cursor "c" has no argument named "b"`},
	{"declare i int; begin open ^i; end", "42804", `variable "i" must be of type cursor or refcursor`},
	{"declare c refcursor; i int; begin fetch all ^c into i; end", "42601", `expected FROM or IN at or near "c"`},
	{"begin raise notice 'a %'; end", "42601", `too few parameters specified for RAISE`},
	{"begin raise notice '%', 1, 2; end", "42601", `too many parameters specified for RAISE`},
	{"begin raise nosuch; end", "42704", `unrecognized exception condition "nosuch"`},
	{"begin null; exception when nosuch then null; end", "42704", `unrecognized exception condition "nosuch"`},
	{"begin x := '^a", "", ""},
	{strings.Repeat("begin ", 2000), "54001", `stack depth limit exceeded`},
}

func TestRefusals(t *testing.T) {
	for _, c := range refusals {
		text := strings.Replace(c.text, "^", "", 1)
		_, e := parse(text)
		switch {
		case e == nil:
			t.Errorf("%s: accepted", text)
		case c.code != "" && (string(e.Code) != c.code || e.Message != c.message):
			t.Errorf("%s: %s %s, want %s %s", text, e.Code, e.Message, c.code, c.message)
		case c.code != "" && c.code != "54001" && e.InternalPosition != strings.Index(c.text, "^")+1:
			t.Errorf("%s: position %d, want %d", text, e.InternalPosition, strings.Index(c.text, "^")+1)
		case strings.Contains(c.text, "raise") && !strings.HasPrefix(e.Where, "compilation of PL/pgSQL function \"inline_code_block\" near line 1"):
			t.Errorf("%s: context %q", text, e.Where)
		}
	}
}

func TestLinesAndKinds(t *testing.T) {
	f, e := parse(`
declare
  x int;
begin
  x := 1;
  if x > 0 then
    raise notice 'a';
  end if;
  for i in 1..3 loop
    perform 1;
  end loop;
end`)
	if e != nil {
		t.Fatal(e)
	}
	want := []struct {
		line int
		kind string
	}{{5, "assignment"}, {6, "IF"}, {9, "FOR with integer loop variable"}}
	for i, w := range want {
		s := f.body.body[i]
		if s.at().line != w.line || kindOf(s) != w.kind {
			t.Errorf("statement %d: line %d at %s, want %v", i, s.at().line, kindOf(s), w)
		}
	}
	if v := f.vars[f.found+1]; v.name != "x" || v.typ != types.TInt4 || v.line != 3 {
		t.Errorf("variable %+v", v)
	}
}

func TestIntoKeepsPositions(t *testing.T) {
	f, e := parse("declare x int; begin select relname into x from pg_class; end")
	if e != nil {
		t.Fatal(e)
	}
	if got := f.body.body[0].(*sqlStmt).query.text; got != "select relname        from pg_class" {
		t.Errorf("text %q", got)
	}
}

func FuzzParse(f *testing.F) {
	for _, c := range refusals {
		f.Add(strings.Replace(c.text, "^", "", 1))
	}
	f.Add("<<l>> declare a int[] := '{1}'; r record; c scroll cursor (n int) for select n; begin a[1] := 2; r.x := a[1:2]; foreach a slice 1 in array a loop exit; end loop; end l")
	f.Add("begin case 1 when 1, 2 then null; else null; end case; get stacked diagnostics x = message_text; execute 'a' into strict b using c, d; exception when others or sqlstate '00000' then raise; end")
	f.Fuzz(func(t *testing.T, text string) {
		if _, err := Parse(context.Background(), Inline(), text, nil, nil, &Options{}, nil); err != nil {
			if e := (*pgerror.Error)(nil); !errors.As(err, &e) || e.Code == pgerror.InternalError {
				t.Errorf("%q: %v", text, err)
			}
		}
	})
}
