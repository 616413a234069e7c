package builtin

import (
	"slices"
	"strings"
	"testing"

	"github.com/percodb/percodb/sql/pgdata"
	"github.com/percodb/percodb/sql/types"
)

// Goal: pg_proc and pg_operator show what percodb can execute, and nothing else.
// Method: each declared function, operator and cast is looked up among the rows, and each row is resolved as the planner resolves a call of it.
// What has no counterpart has one of the reasons below.

// notCallable returns the reason for which no call of a function can be resolved, "" if one has to be.
func notCallable(p *Proc) string {
	value := p.Value
	if p.Ret == types.OIDTrigger {
		return "executed by triggers alone"
	}
	for _, t := range append([]types.OID{p.Ret}, p.Args...) {
		switch t {
		case types.OIDInternal, types.OIDTableAMHandler, types.OIDIndexAMHandler, types.OIDLanguageHandler:
			return "takes or returns what no SQL value is, in PostgreSQL as well"
		}
	}
	for row := range pgdata.Aggregates().Len() {
		for _, c := range []string{"aggtransfn", "aggfinalfn", "aggcombinefn", "aggserialfn", "aggdeserialfn", "aggmtransfn", "aggminvtransfn", "aggmfinalfn"} {
			if pgdata.Aggregates().Number(row, c) == uint32(p.OID) {
				return "a step of an aggregate, which is one function here"
			}
		}
	}
	name := value("proname")
	for _, t := range []string{"any", "cstring", "void", "array", "record", "enum", "domain", "trigger", "event_trigger", "pg_node_tree", "aclitem", "unknown"} {
		if rest, ok := strings.CutPrefix(name, t); ok && slices.Contains([]string{"_in", "_out", "in", "out", "_send", "send", "_recv", "recv"}, rest) ||
			strings.HasPrefix(name, "any") && (strings.HasSuffix(name, "_in") || strings.HasSuffix(name, "_out") || strings.HasSuffix(name, "_send")) {
			return "input and output of a type that a call does not determine"
		}
	}
	if strings.HasSuffix(name, "typmodin") {
		return "reads modifiers, which the parser does here"
	}
	if strings.HasSuffix(name, "_canonical") || strings.HasSuffix(name, "_subdiff") {
		return "a step of the functions on ranges"
	}
	if name == "in_range" {
		return "the comparison of a RANGE frame, which is no function here"
	}
	if strings.HasSuffix(name, "_validator") {
		return "checks a definition in CREATE FUNCTION, which does not exist"
	}
	return ""
}

func TestProcsAreCallable(t *testing.T) {
	reasons := map[string]int{}
	for _, p := range Procs() {
		if reason := notCallable(p); reason != "" {
			reasons[reason]++
			continue
		}
		args := typesOf(p.Args)
		if variadic := p.Value("provariadic"); variadic != "0" {
			args[len(args)-1] = typesOf(parseOIDList(variadic))[0]
		}
		got, err := resolveForTest(p, args)
		if err != nil {
			t.Errorf("%s: %v", p.Signature, err)
		} else if got != p.Signature {
			t.Errorf("%s resolves to %q", p.Signature, got)
		}
	}
	for reason, n := range reasons {
		t.Logf("%d functions: %s", n, reason)
	}
}

// resolveForTest resolves a call with arguments of the declared types, of which polymorphic ones are integers.
// oneRecord are functions that return one record, declared as sets of one.
var oneRecord = map[string]bool{
	"pg_sequence_parameters(oid)": true, "pg_identify_object(oid,oid,int4)": true, "pg_identify_object_as_address(oid,oid,int4)": true,
	"pg_get_object_address(text,_text,_text)": true,
}

func resolveForTest(p *Proc, args []types.Type) (string, error) {
	actual := slices.Clone(args)
	enum := types.NewDefined(&types.Defined{OID: 100001, Array: 100002, Kind: types.Enum, Name: "mood"})
	for i, a := range args {
		switch a.OID {
		case types.OIDAny, types.OIDAnyElement, types.OIDAnyNonArray, types.OIDAnyCompatible, types.OIDAnyCompatibleNonArray:
			actual[i] = types.TInt4
		case types.OIDAnyArray, types.OIDAnyCompatibleArray:
			actual[i] = types.TInt4.ArrayOf()
		case types.OIDAnyRange, types.OIDAnyCompatibleRange:
			actual[i] = types.Type{OID: types.OIDInt4Range, Mod: -1}
		case types.OIDAnyMultirange, types.OIDAnyCompatibleMultirange:
			actual[i] = types.Type{OID: types.OIDInt4Multirange, Mod: -1}
		case types.OIDAnyEnum:
			actual[i] = enum.Type()
		}
	}
	if _, differs := otherArgs[p.Signature]; differs {
		actual = append(actual, actual[len(actual)-1])
	}
	name, set := p.Name, p.Value("proretset") == "t" || oneRecord[p.Signature]
	f := FuncName{Name: name, From: System | InformationSchema}
	var o interface{ Signature() string }
	var err error
	kind, _ := pgdata.Aggregates().ByOID(uint32(p.OID))
	switch {
	case set:
		o, err = f.ResolveSet(actual)
	case p.Kind == 'w':
		_, err = ResolveWindowFunc(name, actual)
		return p.Signature, err
	case p.Kind == 'a' && pgdata.Aggregates().Value(kind, "aggkind") == "n":
		o, err = ResolveAggregate(name, actual)
	case p.Kind == 'a':
		if IsHypotheticalSet(name) {
			o, err = ResolveOrderedSet(name, actual, actual)
		} else {
			o, err = ResolveOrderedSet(name, actual[:len(actual)-1], actual[len(actual)-1:])
		}
	default:
		o, err = f.Resolve(actual)
	}
	if err != nil {
		return "", err
	}
	return o.Signature(), nil
}

func TestDeclaredFunctionsHaveRows(t *testing.T) {
	for _, r := range registeredFuncs() {
		if keywordFuncs[r.o.Name] {
			continue
		}
		p := ProcBySignature(r.o.declaredSignature())
		if p == nil {
			t.Errorf("%s has no row: go generate ./sql/pgdata gives functions of percodb's own their OIDs", r.o.declaredSignature())
			continue
		}
		if p.own != nil {
			continue
		}
		o := r.o
		for column, got := range map[string]string{
			"prorettype": formatOID(o.Ret.OID), "proretset": boolLetter(r.set && !oneRecord[o.declaredSignature()]), "prokind": string(rune(r.kind)),
		} {
			if want := p.Value(column); got != want {
				t.Errorf("%s: %s is %s, PostgreSQL has %s", o.declaredSignature(), column, got, want)
			}
		}
	}
}

func TestDeclaredOperatorsHaveRows(t *testing.T) {
	for name, list := range operators() {
		for _, o := range list {
			row, ok := operatorRow(name, o.Args)
			if !ok {
				t.Errorf("operator %s has no row", o.declaredSignature())
				continue
			}
			if got, want := formatOID(o.Ret.OID), pgdata.Operators().Value(row, "oprresult"); got != want {
				t.Errorf("operator %s returns %s, PostgreSQL's %s", o.declaredSignature(), got, want)
			}
			if o.Signature() == "" {
				t.Errorf("operator %s has no function", o.declaredSignature())
			}
		}
	}
}

func TestDeclaredCastsHaveRows(t *testing.T) {
	rows := pgdata.Casts()
	for key, e := range castTable() {
		if max(key.from, key.to) >= types.FirstExtensionOID {
			continue // PostgreSQL has a row where the extension is installed.
		}
		row, ok := rows.Find(formatOID(key.from), formatOID(key.to))
		if !ok {
			t.Errorf("the cast from %d to %d has no row", key.from, key.to)
			continue
		}
		if got, want := "iae"[e.context:e.context+1], rows.Value(row, "castcontext"); got != want {
			t.Errorf("the cast from %d to %d has the context %s, PostgreSQL's %s", key.from, key.to, got, want)
		}
		method := "f"
		if e.binary {
			method = "b"
		} else if e.text {
			method = "i"
		}
		if want := rows.Value(row, "castmethod"); method != want {
			t.Errorf("the cast from %d to %d has the method %s, PostgreSQL's %s", key.from, key.to, method, want)
		}
	}
}

// Goal: a name has either declared functions or those behind operators, casts and types, so that the choice among overloads is complete.
// Method: the names of the latter are looked up among the former.
func TestNamesAreComplete(t *testing.T) {
	for name := range behindFuncs() {
		if functions()[name] != nil {
			t.Errorf("%s is declared, and behind something", name)
		}
	}
}
