package fuzzsql

import (
	"slices"
	"time"
)

// minimiser shrinks a tree in place while fails says that it still fails.
type minimiser struct {
	fails    func() bool
	tries    int
	deadline time.Time
}

func (m *minimiser) spent() bool { return m.tries <= 0 || time.Now().After(m.deadline) }

// attempt keeps an edit if the tree still fails, and takes it back otherwise.
func (m *minimiser) attempt(edit, undo func()) bool {
	if m.spent() {
		return false
	}
	m.tries--
	edit()
	if m.fails() {
		return true
	}
	undo()
	return false
}

// shrink repeats all edits until none succeeds.
func (m *minimiser) shrink(trees ...*tree) {
	for progress := true; progress && !m.spent(); {
		progress = false
		for _, t := range trees {
			progress = m.pass(t) || progress
		}
	}
}

// pass tries the edits of a tree, then those of its kids.
func (m *minimiser) pass(t *tree) bool {
	if t.dropped {
		return false
	}
	if t.optional && m.attempt(func() { t.dropped = true }, func() { t.dropped = false }) {
		return true
	}
	progress := false
	if t.simple != "" && t.text != t.simple && m.replace(t, &tree{text: t.simple, sort: t.sort}) {
		return true
	}
	if t.sort != "" {
		progress = m.descend(t)
	}
	if t.list {
		progress = m.cut(t) || progress
	}
	for _, k := range t.kids {
		progress = m.pass(k) || progress
	}
	return progress
}

func (m *minimiser) replace(t, by *tree) bool {
	saved := *t
	optional, dropped := t.optional, t.dropped
	return m.attempt(func() {
		*t = *by
		t.optional, t.dropped = optional, dropped
	}, func() { *t = saved })
}

// descend replaces a tree by one of its sort that it holds, the smallest that fails.
func (m *minimiser) descend(t *tree) bool {
	progress := false
	for {
		var candidates []*tree
		for _, k := range t.kids {
			k.walk(func(d *tree) {
				if d.sort == t.sort && len(candidates) < 12 {
					candidates = append(candidates, d)
				}
			})
		}
		done := true
		for _, c := range candidates {
			if m.replace(t, c) {
				progress, done = true, false
				break
			}
		}
		if done {
			return progress
		}
	}
}

// cut leaves out kids of a list: halves first, then smaller parts.
func (m *minimiser) cut(t *tree) bool {
	progress := false
	for size := max(1, len(t.kids)/2); size > 0; size /= 2 {
		for at := 0; at < len(t.kids); {
			end := min(at+size, len(t.kids))
			if len(t.kids)-(end-at) < t.least {
				break
			}
			if slices.ContainsFunc(t.kids[at:end], func(k *tree) bool { return k.keep }) {
				at = end
				continue
			}
			kids := t.kids
			rest := append(append([]*tree{}, kids[:at]...), kids[end:]...)
			if m.attempt(func() { t.kids = rest }, func() { t.kids = kids }) {
				progress = true
			} else {
				at = end
			}
		}
	}
	return progress
}
