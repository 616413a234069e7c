package plpgsql

// name is an entry of the names in sight of a place in a function. A block begins with its label, which may be "".
type name struct {
	outer    *name
	text     string
	variable int // -1: the label of a block or loop
	loop     bool
}

// isLabel reports whether the entry ends a level.
func (n *name) isLabel() bool { return n.variable < 0 }

// local finds a name that is declared in the innermost block itself; -1: none.
func (n *name) local(text string) int {
	for ; n != nil && !n.isLabel(); n = n.outer {
		if n.text == text {
			return n.variable
		}
	}
	return -1
}

// lookup finds the variable that the parts of a name begin with, and how many of them name it; used is 0 if there is none. record reports
// whether a variable may have fields.
func (n *name) lookup(parts []string, record func(v int) bool) (variable, used int) {
	for n != nil {
		first := n
		for ; n != nil && !n.isLabel(); n = n.outer {
			if n.text == parts[0] && (len(parts) == 1 || record(n.variable)) {
				return n.variable, 1
			}
		}
		if n == nil {
			return -1, 0
		}
		if len(parts) > 1 && n.text == parts[0] {
			for m := first; m != n; m = m.outer {
				if m.text == parts[1] && (len(parts) == 2 || record(m.variable)) {
					return m.variable, 2
				}
			}
		}
		n = n.outer
	}
	return -1, 0
}

// label finds a label.
func (n *name) label(text string) *name {
	for ; n != nil; n = n.outer {
		if n.isLabel() && n.text == text {
			return n
		}
	}
	return nil
}

// inLoop reports whether a loop is around.
func (n *name) inLoop() bool {
	for ; n != nil; n = n.outer {
		if n.isLabel() && n.loop {
			return true
		}
	}
	return false
}
