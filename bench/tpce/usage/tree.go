package usage

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// ticksPerSecond is USER_HZ, the unit of /proc: 100 on every Linux that Go supports.
const ticksPerSecond = 100

// process identifies a process.
type process struct {
	pid   int
	start uint64 // ticks since boot
}

// stat is the contents of /proc/PID/stat that matter, times in ticks.
type stat struct {
	process
	parent        int
	own, children uint64 // children: processor time of children that have ended and were waited for
}

// tree is a process with its known descendants. A descendant remains in the tree when its parent ends.
type tree struct {
	proc string // "/proc"
	file string // contains the root's number, "" if the number was given
	root int

	known map[process]stat // as last read
	lost  uint64           // ticks of ended processes that are in no parent's count
}

// newTree parses a process number, or @ and the name of a file whose first line is one.
func newTree(proc, text string) (*tree, error) {
	t := &tree{proc: proc, known: map[process]stat{}}
	if file, ok := strings.CutPrefix(text, "@"); ok {
		t.file = file
		return t, t.readRoot()
	}
	pid, err := strconv.Atoi(text)
	if err != nil || pid <= 0 {
		return nil, fmt.Errorf("%q is neither the number of a process nor @ and a file", text)
	}
	t.root = pid
	return t, nil
}

// readRoot reads the root's number from its file.
func (t *tree) readRoot() error {
	b, err := os.ReadFile(t.file)
	if err != nil {
		return err
	}
	line, _, _ := bytes.Cut(b, []byte("\n"))
	pid, err := strconv.Atoi(strings.TrimSpace(string(line)))
	if err != nil || pid <= 0 {
		return fmt.Errorf("%s does not begin with the number of a process", t.file)
	}
	t.root = pid
	return nil
}

func (t *tree) name() string {
	if t.file != "" {
		return t.file
	}
	return "process " + strconv.Itoa(t.root)
}

// errGone is returned when the root has ended; its time still counts.
var errGone = errors.New("there is no such process")

// seconds implements source.
func (t *tree) seconds(context.Context) (float64, error) {
	all, err := readProc(t.proc)
	if err != nil {
		return t.sum(), err
	}
	t.readParents(all)
	if _, alive := all[t.root]; !alive && t.file != "" {
		if err := t.readRoot(); err != nil {
			t.update(all)
			return t.sum(), err
		}
	}
	t.update(all)
	if _, alive := all[t.root]; !alive {
		return t.sum(), errGone
	}
	return t.sum(), nil
}

// readParents reads the parents of processes that have ended again: one that was read before its child had ended does not count the child yet.
func (t *tree) readParents(all map[int]stat) {
	for p, s := range t.known {
		if now, ok := all[p.pid]; ok && now.process == p {
			continue
		}
		if b, err := os.ReadFile(filepath.Join(t.proc, strconv.Itoa(s.parent), "stat")); err == nil {
			if parent, err := parseStat(s.parent, b); err == nil && parent.process == all[s.parent].process {
				all[s.parent] = parent
			}
		}
	}
}

func (t *tree) sum() float64 {
	ticks := t.lost
	for _, s := range t.known {
		ticks += s.own + s.children
	}
	return float64(ticks) / ticksPerSecond
}

// update updates the tree from all, the processes by number.
func (t *tree) update(all map[int]stat) {
	next := t.members(all)
	// The time of an ended process is added to its parent's children count if the parent has waited for it. gone is the
	// expected increase of that count, by parent.
	gone := map[int]uint64{}
	for p, s := range t.known {
		if _, alive := next[p]; alive {
			continue
		}
		gone[s.parent] += s.own + s.children
	}
	for parent, ticks := range gone {
		var waited uint64
		if now, ok := all[parent]; ok {
			if before, ok := t.known[now.process]; ok && now.children > before.children {
				waited = now.children - before.children
			}
		}
		if ticks > waited {
			t.lost += ticks - waited
		}
	}
	t.known = next
}

// members returns the root, the known processes that are alive, and the descendants of both.
func (t *tree) members(all map[int]stat) map[process]stat {
	next := map[process]stat{}
	children := map[int][]stat{}
	for _, s := range all {
		children[s.parent] = append(children[s.parent], s)
	}
	var add func(s stat)
	add = func(s stat) {
		if _, ok := next[s.process]; ok {
			return
		}
		next[s.process] = s
		for _, child := range children[s.pid] {
			add(child)
		}
	}
	if s, ok := all[t.root]; ok {
		add(s)
	}
	for p := range t.known {
		if s, ok := all[p.pid]; ok && s.process == p {
			add(s)
		}
	}
	return next
}

// readProc returns all processes by number.
func readProc(dir string) (map[int]stat, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	all := make(map[int]stat, len(entries))
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		b, err := os.ReadFile(filepath.Join(dir, e.Name(), "stat"))
		if err != nil {
			continue // it has ended in the meantime
		}
		s, err := parseStat(pid, b)
		if err != nil {
			return nil, err
		}
		all[pid] = s
	}
	return all, nil
}

// parseStat parses /proc/PID/stat, see proc(5). The second field is a name in parentheses, which may contain
// spaces and parentheses.
func parseStat(pid int, b []byte) (stat, error) {
	end := bytes.LastIndexByte(b, ')')
	if end < 0 {
		return stat{}, fmt.Errorf("/proc/%d/stat: %q", pid, b)
	}
	fields := strings.Fields(string(b[end+1:])) // the first is field 3 of proc(5)
	if len(fields) < 20 {
		return stat{}, fmt.Errorf("/proc/%d/stat: %q", pid, b)
	}
	var n [6]uint64
	for i, field := range []int{4, 14, 15, 16, 17, 22} {
		v, err := strconv.ParseUint(fields[field-3], 10, 64)
		if err != nil {
			return stat{}, fmt.Errorf("/proc/%d/stat: field %d: %w", pid, field, err)
		}
		n[i] = v
	}
	return stat{process: process{pid, n[5]}, parent: int(n[0]), own: n[1] + n[2], children: n[3] + n[4]}, nil
}
