package builtin

import (
	"errors"
	"slices"
	"testing"

	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// Goal: a call means the routine that PostgreSQL's rules choose. Method: a few routines of two schemas, and calls of all notations.
func TestMatchRoutine(t *testing.T) {
	param := func(name string, mode byte, typ types.Type, def string) RoutineParam {
		return RoutineParam{Name: name, Mode: mode, Type: typ, Default: def}
	}
	routine := func(oid types.OID, kind RoutineKind, name string, params ...RoutineParam) *Routine {
		return NewRoutine(Routine{OID: oid, Kind: kind, Schema: "public", Name: name, Params: params, Ret: types.TInt4})
	}
	int4, text := types.TInt4, types.TText
	all := []*Routine{
		routine(1, FunctionRoutine, "f", param("a", 'i', int4, "")),
		routine(2, FunctionRoutine, "f", param("a", 'i', text, "")),
		routine(3, FunctionRoutine, "g", param("a", 'i', int4, ""), param("b", 'i', int4, "1"), param("c", 'i', text, "'x'")),
		routine(4, FunctionRoutine, "v", param("a", 'i', text, ""), param("rest", 'v', int4.ArrayOf(), "")),
		routine(5, ProcedureRoutine, "p", param("a", 'i', int4, ""), param("b", 'o', int4, "")),
		routine(6, FunctionRoutine, "lower", param("a", 'i', text, "")),
		routine(7, FunctionRoutine, "lower", param("a", 'i', int4, "")),
		routine(8, FunctionRoutine, "h", param("a", 'i', int4, "")),
		routine(9, FunctionRoutine, "h", param("a", 'i', int4, ""), param("b", 'i', int4, "1")),
	}
	for _, test := range []struct {
		name    string
		site    CallSite
		want    types.OID // 0: one of PostgreSQL's own
		omitted []int
		spread  int
		code    pgerror.Code
	}{
		{name: "f", site: CallSite{Args: []types.Type{int4}}, want: 1, spread: -1},
		{name: "f", site: CallSite{Args: []types.Type{types.TUnknown}}, want: 2, spread: -1},
		{name: "f", site: CallSite{Args: []types.Type{types.TInt2}}, want: 1, spread: -1},
		{name: "f", site: CallSite{Args: []types.Type{int4, int4}}, code: pgerror.UndefinedFunction},
		{name: "g", site: CallSite{Args: []types.Type{int4}}, want: 3, omitted: []int{1, 2}, spread: -1},
		{name: "g", site: CallSite{Args: []types.Type{int4, text}, Names: []string{"", "c"}}, want: 3, omitted: []int{1}, spread: -1},
		{name: "g", site: CallSite{Args: []types.Type{int4, int4}, Names: []string{"", "a"}}, code: pgerror.UndefinedFunction},
		{name: "g", site: CallSite{Args: []types.Type{int4, int4}, Names: []string{"a", "a"}}, code: pgerror.SyntaxError},
		{name: "v", site: CallSite{Args: []types.Type{text, int4, int4}}, want: 4, spread: 1},
		{name: "v", site: CallSite{Args: []types.Type{text, int4.ArrayOf()}, Variadic: true}, want: 4, spread: -1},
		{name: "v", site: CallSite{Args: []types.Type{text}}, code: pgerror.UndefinedFunction},
		{name: "p", site: CallSite{Args: []types.Type{int4, types.TUnknown}, Call: true}, want: 5, spread: -1},
		{name: "lower", site: CallSite{Args: []types.Type{text}}, want: 0},
		{name: "lower", site: CallSite{Args: []types.Type{int4}}, want: 7, spread: -1},
		{name: "h", site: CallSite{Args: []types.Type{int4}}, code: pgerror.AmbiguousFunction},
	} {
		f := FuncName{Name: test.name, From: System}
		for _, r := range all {
			if r.Name == test.name {
				f.User = append(f.User, UserRoutine{Routine: r, Place: 1, System: 0})
			}
		}
		m, err := f.MatchRoutine(test.site)
		var pg *pgerror.Error
		if errors.As(err, &pg); test.code != "" {
			if pg == nil || pg.Code != test.code {
				t.Errorf("%s%v: %v, want %s", test.name, test.site.Args, err, test.code)
			}
			continue
		}
		switch {
		case err != nil:
			t.Errorf("%s%v: %v", test.name, test.site.Args, err)
		case m == nil && test.want != 0, m != nil && m.Routine.OID != test.want:
			t.Errorf("%s%v means %v, want %d", test.name, test.site.Args, m, test.want)
		case m != nil && (!slices.Equal(m.Omitted, test.omitted) || m.Spread != test.spread):
			t.Errorf("%s%v omits %v and spreads from %d", test.name, test.site.Args, m.Omitted, m.Spread)
		}
	}
}
