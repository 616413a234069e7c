package builtin

import (
	"regexp/syntax"
	"strings"
	"unicode/utf8"
)

// regexVM runs a compiled expression on a long text. Package regexp's matcher can neither be stopped nor begin after
// the text's start; this one simulates the same program's threads in the same order (Pike's algorithm), and checks for
// a cancel. It finds the same matches as package regexp.
type regexVM struct {
	re      *Regex
	prog    *syntax.Prog
	ncap    int // positions kept for each thread
	now     vmQueue
	next    vmQueue
	free    [][]int // capture lists for reuse
	matched bool
	match   []int
	steps   int
}

// vmQueue is a set of instructions in order of priority, each with its thread's captures.
type vmQueue struct {
	sparse []uint32
	dense  []vmThread
}

type vmThread struct {
	pc   uint32
	caps []int // nil: the instruction only leads to others
}

// stepsPerPoll is the number of instructions between two calls of Env.Step; each costs stepCost.
const (
	stepsPerPoll = 1 << 14
	stepCost     = 16
)

func newRegexVM(re *Regex, prog *syntax.Prog, ncap int) *regexVM {
	vm := &regexVM{re: re, prog: prog, ncap: ncap, match: make([]int, ncap)}
	for _, q := range []*vmQueue{&vm.now, &vm.next} {
		q.sparse = make([]uint32, len(prog.Inst))
		q.dense = make([]vmThread, 0, len(prog.Inst))
	}
	return vm
}

// find searches the first match that begins at or after pos; vm.match is valid until the next call.
func (vm *regexVM) find(env *Env, s string, pos int) (bool, error) {
	vm.matched = false
	prefix, _ := vm.re.LiteralPrefix()
	fromStart := vm.prog.StartCond()&syntax.EmptyBeginText != 0
	before, _ := lastRune(s, pos)
	for {
		if len(vm.now.dense) == 0 {
			if vm.matched || fromStart && pos > 0 {
				break
			}
			if prefix != "" {
				skip := strings.Index(s[pos:], prefix)
				if skip < 0 {
					break
				}
				if skip > 0 {
					pos += skip
					before, _ = lastRune(s, pos)
				}
			}
		}
		at, width := nextRune(s, pos)
		if !vm.matched {
			caps := vm.newCaps()
			if vm.ncap > 0 {
				caps[0] = pos
			}
			vm.add(&vm.now, uint32(vm.prog.Start), pos, caps, vm.re.conditions(before, at))
			vm.free = append(vm.free, caps)
		}
		after, _ := nextRune(s, pos+width)
		vm.step(pos, pos+width, at, vm.re.conditions(at, after))
		if vm.steps > stepsPerPoll {
			err := env.Step(vm.steps * stepCost)
			vm.steps = 0
			if err != nil {
				vm.drop(&vm.next)
				vm.drop(&vm.now)
				return false, err
			}
		}
		vm.now, vm.next = vm.next, vm.now
		if width == 0 || vm.ncap == 0 && vm.matched {
			break
		}
		before, pos = at, pos+width
	}
	vm.drop(&vm.now)
	return vm.matched, nil
}

// nextRune and lastRune return -1 at the text's ends.
func nextRune(s string, pos int) (rune, int) {
	if pos >= len(s) {
		return -1, 0
	}
	if c := s[pos]; c < utf8.RuneSelf {
		return rune(c), 1
	}
	return utf8.DecodeRuneInString(s[pos:])
}

func lastRune(s string, pos int) (rune, int) {
	if pos == 0 {
		return -1, 0
	}
	return utf8.DecodeLastRuneInString(s[:pos])
}

// step runs the threads at pos on the character r, into next. After a match it drops threads of lower priority, or, for
// the longest match, those that begin later.
func (vm *regexVM) step(pos, after int, r rune, cond syntax.EmptyOp) {
	longest := vm.re.longest
	vm.steps += len(vm.now.dense) + 1
	for i := range vm.now.dense {
		t := vm.now.dense[i]
		if t.caps == nil {
			continue
		}
		if longest && vm.matched && vm.ncap > 0 && vm.match[0] < t.caps[0] {
			vm.free = append(vm.free, t.caps)
			continue
		}
		inst := &vm.prog.Inst[t.pc]
		advance := false
		switch inst.Op {
		case syntax.InstMatch:
			if vm.ncap == 0 {
				vm.matched = true
			} else if !longest || !vm.matched || vm.match[1] < pos {
				t.caps[1] = pos
				copy(vm.match, t.caps)
				vm.matched = true
			}
			if !longest {
				for _, rest := range vm.now.dense[i:] {
					if rest.caps != nil {
						vm.free = append(vm.free, rest.caps)
					}
				}
				vm.now.dense = vm.now.dense[:0]
				return
			}
		case syntax.InstRune:
			advance = inst.MatchRune(r)
		case syntax.InstRune1:
			advance = r == inst.Rune[0]
		case syntax.InstRuneAny:
			advance = r >= 0
		case syntax.InstRuneAnyNotNL:
			advance = r >= 0 && r != '\n'
		}
		if advance {
			vm.add(&vm.next, inst.Out, after, t.caps, cond)
		}
		vm.free = append(vm.free, t.caps)
	}
	vm.now.dense = vm.now.dense[:0]
}

// add adds the instructions that pc reaches without a character to q. Threads get copies of caps.
func (vm *regexVM) add(q *vmQueue, pc uint32, pos int, caps []int, cond syntax.EmptyOp) {
	for pc != 0 {
		if j := q.sparse[pc]; j < uint32(len(q.dense)) && q.dense[j].pc == pc {
			return
		}
		q.sparse[pc] = uint32(len(q.dense))
		q.dense = append(q.dense, vmThread{pc: pc})
		vm.steps++
		inst := &vm.prog.Inst[pc]
		switch inst.Op {
		case syntax.InstFail:
			return
		case syntax.InstAlt, syntax.InstAltMatch:
			vm.add(q, inst.Out, pos, caps, cond)
			pc = inst.Arg
		case syntax.InstEmptyWidth:
			if syntax.EmptyOp(inst.Arg)&^cond != 0 {
				return
			}
			pc = inst.Out
		case syntax.InstNop:
			pc = inst.Out
		case syntax.InstCapture:
			if int(inst.Arg) >= vm.ncap {
				pc = inst.Out
				continue
			}
			saved := caps[inst.Arg]
			caps[inst.Arg] = pos
			vm.add(q, inst.Out, pos, caps, cond)
			caps[inst.Arg] = saved
			return
		default:
			t := &q.dense[len(q.dense)-1]
			t.caps = vm.newCaps()
			copy(t.caps, caps)
			return
		}
	}
}

// newCaps returns a list of captures, all unset.
func (vm *regexVM) newCaps() []int {
	if n := len(vm.free) - 1; n >= 0 {
		caps := vm.free[n]
		vm.free = vm.free[:n]
		for i := range caps {
			caps[i] = -1
		}
		return caps
	}
	caps := make([]int, max(vm.ncap, 1))
	for i := range caps {
		caps[i] = -1
	}
	return caps
}

// drop ends all threads of q.
func (vm *regexVM) drop(q *vmQueue) {
	for _, t := range q.dense {
		if t.caps != nil {
			vm.free = append(vm.free, t.caps)
		}
	}
	q.dense = q.dense[:0]
}
