package expr

// IsCallForm reports whether s is written as a function call, which CREATE INDEX takes without parentheses.
func IsCallForm(s Scalar) bool {
	switch s := s.(type) {
	case *Call:
		return !isOperator(s.Fn.Name)
	case *Coalesce, *NullIf, *MinMax:
		return true
	case *Cast:
		return s.Implicit && IsCallForm(s.X)
	}
	return false
}
