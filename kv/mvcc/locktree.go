package mvcc

import (
	"bytes"
	"slices"
)

// lockTree contains entries in the order of their keys: a B+ tree whose leaves have bounds and links to their
// neighbours.
//
//	inner        [   m   ]                separators are the lower bounds of the children to their right
//	leaves   [a c g] ⇄ [m p z]            low ≤ keys < high; only leaves contain entries
//
// Requests for many keys have them in order. A finger remembers the leaf and the position of the last key, so that the
// next one is found after a comparison or two. Leaves are removed when they are empty, and not merged before.
type lockTree struct {
	root       *treeNode
	n          int
	generation uint64 // changes when leaves come, go, or change their bounds
}

// treeFanOut is the maximum of entries of a leaf, and of children of an inner node.
const treeFanOut = 64

type treeNode struct {
	// Of inner nodes: separators[i] is the lower bound of children[i+1].
	separators [][]byte
	children   []*treeNode

	// Of leaves. low is empty for the first, high nil for the last.
	items      []*entry
	low, high  []byte
	prev, next *treeNode
}

// finger is the position of the last access. The zero value is none.
type finger struct {
	leaf       *treeNode
	generation uint64
	at         int // a guess at the place of the next key
}

func newLockTree() *lockTree { return &lockTree{root: &treeNode{}, generation: 1} }

// seek moves f to the leaf responsible for key, and returns the place of the first entry at or above
// key in it, and whether that is key itself.
func (t *lockTree) seek(f *finger, key []byte) (at int, found bool) {
	switch {
	case f.leaf == nil || f.generation != t.generation:
		*f = finger{leaf: t.leafOf(key), generation: t.generation}
	case f.at < len(f.leaf.items) && bytes.Equal(f.leaf.items[f.at].key, key):
		f.at++
		return f.at - 1, true
	case !f.leaf.holds(key):
		*f = finger{leaf: t.leafOf(key), generation: t.generation}
	}
	at, found = f.leaf.search(f.at, key)
	if f.at = at; found {
		f.at++
	}
	return at, found
}

func (n *treeNode) holds(key []byte) bool {
	return bytes.Compare(n.low, key) <= 0 && (n.high == nil || bytes.Compare(key, n.high) < 0)
}

// search finds key in a leaf, first at a guessed position.
func (n *treeNode) search(guess int, key []byte) (at int, found bool) {
	low, high := 0, len(n.items)
	if guess <= len(n.items) && (guess == 0 || bytes.Compare(n.items[guess-1].key, key) < 0) {
		if guess == len(n.items) {
			return guess, false
		}
		switch c := bytes.Compare(n.items[guess].key, key); {
		case c == 0:
			return guess, true
		case c > 0:
			return guess, false
		}
		low = guess + 1
	}
	for low < high {
		mid := int(uint(low+high) / 2)
		switch c := bytes.Compare(n.items[mid].key, key); {
		case c == 0:
			return mid, true
		case c < 0:
			low = mid + 1
		default:
			high = mid
		}
	}
	return low, false
}

// child returns the place of the child responsible for key.
func (n *treeNode) child(key []byte) int {
	low, high := 0, len(n.separators)
	for low < high {
		if mid := int(uint(low+high) / 2); bytes.Compare(n.separators[mid], key) <= 0 {
			low = mid + 1
		} else {
			high = mid
		}
	}
	return low
}

func (t *lockTree) leafOf(key []byte) *treeNode {
	n := t.root
	for n.children != nil {
		n = n.children[n.child(key)]
	}
	return n
}

// get returns the entry of key, or nil.
func (t *lockTree) get(f *finger, key []byte) *entry {
	if at, found := t.seek(f, key); found {
		return f.leaf.items[at]
	}
	return nil
}

// following returns the entry after f's position, or nil. Call it after a failed search.
func (t *lockTree) following(f *finger) *entry {
	switch {
	case f.at < len(f.leaf.items):
		return f.leaf.items[f.at]
	case f.leaf.next != nil:
		return f.leaf.next.items[0]
	}
	return nil
}

// put adds an entry, or puts it in the place of the one with its key, which it returns then.
func (t *lockTree) put(f *finger, e *entry) (old *entry) {
	at, found := t.seek(f, e.key)
	if leaf := f.leaf; found {
		old, leaf.items[at] = leaf.items[at], e
		return old
	}
	t.n++
	if len(f.leaf.items) == treeFanOut {
		f.leaf = t.splitLeaf(f.leaf, at, e.key)
		f.generation = t.generation
		at, _ = f.leaf.search(0, e.key)
	}
	f.leaf.items = slices.Insert(f.leaf.items, at, e)
	f.at = at + 1
	return nil
}

// splitLeaf frees space in a full leaf for a key at position at, and returns the leaf into which to insert it. Keys
// often come in order: then the entries before the key stay in a full leaf.
func (t *lockTree) splitLeaf(n *treeNode, at int, key []byte) *treeNode {
	t.generation++
	half := treeFanOut / 2
	right := &treeNode{items: make([]*entry, 0, treeFanOut), high: n.high, prev: n, next: n.next}
	if at == len(n.items) {
		right.low = key
	} else {
		right.low = n.items[half].key
		right.items = append(right.items, n.items[half:]...)
		clear(n.items[half:])
		n.items = n.items[:half]
	}
	// Keys belong to their entries, which may go before the bound does.
	right.low = bytes.Clone(right.low)
	n.high = right.low
	if n.next = right; right.next != nil {
		right.next.prev = right
	}
	t.addChild(n, right)
	if right.holds(key) {
		return right
	}
	return n
}

// addChild puts a new leaf into the inner nodes, right of the one it was split from.
func (t *lockTree) addChild(left, right *treeNode) {
	var path []*treeNode
	for n := t.root; n != left; n = n.children[n.child(left.low)] {
		path = append(path, n)
	}
	separator := right.low
	for level := len(path) - 1; level >= 0; level-- {
		n := path[level]
		at := slices.Index(n.children, left)
		n.children = slices.Insert(n.children, at+1, right)
		n.separators = slices.Insert(n.separators, at, separator)
		if len(n.children) <= treeFanOut {
			return
		}
		half := len(n.children) / 2
		separator = n.separators[half-1]
		right = &treeNode{children: slices.Clone(n.children[half:]), separators: slices.Clone(n.separators[half:])}
		clear(n.children[half:])
		clear(n.separators[half-1:])
		n.children, n.separators = n.children[:half], n.separators[:half-1]
		left = n
	}
	t.root = &treeNode{children: []*treeNode{left, right}, separators: [][]byte{separator}}
}

// remove takes out the entry of key, and returns it, or nil.
func (t *lockTree) remove(f *finger, key []byte) *entry {
	at, found := t.seek(f, key)
	if !found {
		return nil
	}
	leaf := f.leaf
	old := leaf.items[at]
	leaf.items = slices.Delete(leaf.items, at, at+1)
	f.at = at
	t.n--
	if len(leaf.items) == 0 && leaf != t.root {
		t.removeLeaf(leaf)
		*f = finger{}
	}
	return old
}

// removeLeaf takes out an empty leaf. A neighbour takes over its span: the left one, if that has a node
// in common with it further down than the right one.
func (t *lockTree) removeLeaf(leaf *treeNode) {
	t.generation++
	var path []*treeNode
	for n := t.root; n != leaf; n = n.children[n.child(leaf.low)] {
		path = append(path, n)
	}
	if leaf.prev != nil {
		leaf.prev.next = leaf.next
	}
	if leaf.next != nil {
		leaf.next.prev = leaf.prev
	}
	gone := leaf
	for level := len(path) - 1; level >= 0; level-- {
		n := path[level]
		at := slices.Index(n.children, gone)
		if len(n.children) == 1 {
			gone = n // no entries are left below it; the root never has a single child
			continue
		}
		n.children = slices.Delete(n.children, at, at+1)
		n.separators = slices.Delete(n.separators, max(at-1, 0), max(at, 1))
		if at > 0 {
			leaf.prev.high = leaf.high
		} else {
			leaf.next.low = leaf.low
		}
		break
	}
	for len(t.root.children) == 1 {
		t.root = t.root.children[0]
	}
}

// ascend calls f for the entries at or above start, in order, until it returns false. f must not
// change the tree.
func (t *lockTree) ascend(start []byte, f func(*entry) bool) {
	n := t.leafOf(start)
	at, _ := n.search(0, start)
	for ; n != nil; n, at = n.next, 0 {
		for _, e := range n.items[at:] {
			if !f(e) {
				return
			}
		}
	}
}

// descend calls f for the entries below end, or for all if it is empty, from the last on, until f returns false. f must
// not change the tree.
func (t *lockTree) descend(end []byte, f func(*entry) bool) {
	n := t.root
	for n.children != nil {
		if len(end) == 0 {
			n = n.children[len(n.children)-1]
		} else {
			n = n.children[n.child(end)]
		}
	}
	at := len(n.items)
	if len(end) > 0 {
		at, _ = n.search(0, end)
	}
	for {
		for at--; at >= 0; at-- {
			if !f(n.items[at]) {
				return
			}
		}
		if n = n.prev; n == nil {
			return
		}
		at = len(n.items)
	}
}
