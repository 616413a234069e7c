package hermitage

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// levels are the isolation levels, weakest first.
var levels = []string{"read committed", "repeatable read", "serializable"}

// scenario is a file of testdata.
type scenario struct {
	path string
	name string // its first line
	// comment is what the file says of the scenario, with its # signs.
	comment   []string
	schedules [][]step
	// recorded are the transcripts of the schedules, by section: a level's name for PostgreSQL, with
	// percodbSuffix for what percodb does otherwise.
	recorded map[string]section
}

// step is a statement of a transaction.
type step struct{ txn, statement string }

func (s step) String() string { return s.txn + ": " + s.statement }

// section is what a file records for a server and a level.
type section struct {
	reason      []string // of percodb's: why it differs
	transcripts []string // one for each schedule
}

// percodbSuffix marks sections that hold for percodb alone.
const percodbSuffix = ", percodb"

// scenarios reads testdata.
func scenarios(t testing.TB) []*scenario {
	t.Helper()
	paths, err := filepath.Glob("testdata/*.txt")
	if err != nil {
		t.Fatal(err)
	}
	var all []*scenario
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		s, err := parse(string(text))
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		s.path = path
		all = append(all, s)
	}
	return all
}

// parse reads a scenario.
func parse(text string) (*scenario, error) {
	s := &scenario{recorded: map[string]section{}}
	parts := strings.Split(strings.TrimSpace(text), "\n## ")
	for _, block := range blocks(parts[0]) {
		if strings.HasPrefix(block[0], "#") {
			s.comment = append(s.comment, block...)
			continue
		}
		var schedule []step
		for _, line := range block {
			txn, statement, ok := strings.Cut(line, ": ")
			if !ok {
				return nil, fmt.Errorf("%q is no step", line)
			}
			schedule = append(schedule, step{txn, statement})
		}
		s.schedules = append(s.schedules, schedule)
	}
	if len(s.comment) == 0 || len(s.schedules) == 0 {
		return nil, fmt.Errorf("no comment or no schedule")
	}
	s.name = strings.TrimPrefix(s.comment[0], "# ")
	for _, part := range parts[1:] {
		title, body, _ := strings.Cut(part, "\n")
		if !slices.Contains(levels, strings.TrimSuffix(title, percodbSuffix)) {
			return nil, fmt.Errorf("section %q is of no level", title)
		}
		var sec section
		for _, block := range blocks(body) {
			if strings.HasPrefix(block[0], "#") {
				sec.reason = append(sec.reason, block...)
				continue
			}
			sec.transcripts = append(sec.transcripts, strings.Join(block, "\n"))
		}
		s.recorded[title] = sec
	}
	return s, nil
}

// blocks are the runs of lines between blank lines; comments are blocks of their own.
func blocks(text string) (all [][]string) {
	inComment := false
	fresh := true
	for _, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		isComment := strings.HasPrefix(line, "#")
		switch {
		case line == "":
			fresh = true
			continue
		case fresh || isComment != inComment:
			all = append(all, nil)
		}
		fresh, inComment = false, isComment
		all[len(all)-1] = append(all[len(all)-1], line)
	}
	return all
}

// expected is what percodb is expected to do at a level, and why if that is not what PostgreSQL does.
func (s *scenario) expected(level string) (sec section, differs bool) {
	if sec, ok := s.recorded[level+percodbSuffix]; ok {
		return sec, true
	}
	return s.recorded[level], false
}

// record notes transcripts. Those of percodb are kept only where they differ from PostgreSQL's.
func (s *scenario) record(level string, percodb bool, transcripts []string) {
	if !percodb {
		s.recorded[level] = section{transcripts: transcripts}
		return
	}
	title := level + percodbSuffix
	if slices.Equal(transcripts, s.recorded[level].transcripts) {
		delete(s.recorded, title)
		return
	}
	reason := s.recorded[title].reason
	if len(reason) == 0 {
		reason = []string{"#"}
	}
	s.recorded[title] = section{reason: reason, transcripts: transcripts}
}

// write saves the file.
func (s *scenario) write() error {
	var b bytes.Buffer
	for _, line := range s.comment {
		fmt.Fprintln(&b, line)
	}
	for _, schedule := range s.schedules {
		fmt.Fprintln(&b)
		for _, step := range schedule {
			fmt.Fprintln(&b, step)
		}
	}
	for _, level := range levels {
		for _, title := range []string{level, level + percodbSuffix} {
			sec, ok := s.recorded[title]
			if !ok {
				continue
			}
			fmt.Fprintf(&b, "\n## %s\n", title)
			for _, line := range sec.reason {
				fmt.Fprintln(&b, line)
			}
			for _, transcript := range sec.transcripts {
				fmt.Fprintf(&b, "\n%s\n", transcript)
			}
		}
	}
	return os.WriteFile(s.path, b.Bytes(), 0o644)
}
