package planner

import (
	"fmt"
	"strings"

	"github.com/percodb/percodb/planner/expr"
)

// describe prints a logical tree, for Options.Trace.
func (b *binder) describe(r rel) string {
	var s strings.Builder
	b.describeTo(&s, r, 0)
	return strings.TrimSuffix(s.String(), "\n")
}

func (b *binder) describeTo(s *strings.Builder, r rel, depth int) {
	s.WriteString(strings.Repeat("  ", depth))
	name := strings.TrimSuffix(strings.TrimPrefix(fmt.Sprintf("%T", r), "*planner."), "Rel")
	s.WriteString(name)
	switch r := r.(type) {
	case *scanRel:
		s.WriteString(" " + r.table.Name)
	case *joinRel:
		s.WriteString(" " + [...]string{"inner", "left", "full", "semi", "anti"}[r.kind])
		if r.lateral {
			s.WriteString(" lateral")
		}
	case *setOpRel:
		s.WriteString(" " + r.op)
	}
	var parts []string
	mapExprs(r, func(e expr.Scalar) expr.Scalar { parts = append(parts, e.String()); return e })
	if len(parts) > 0 {
		s.WriteString(" [" + strings.Join(parts, "; ") + "]")
	}
	s.WriteByte('\n')
	mapInputs(r, func(in rel) rel { b.describeTo(s, in, depth+1); return in })
}
