package sqllogic

import (
	"fmt"
	"os"
	"strings"
)

// edit replaces the lines from..to-1 of a file, counted from 1, by others.
type edit struct {
	from, to int
	lines    []string
}

// rewrite records what the server's answer changes in the file. A statement or query that fails unexpectedly is left
// unchanged and reported as a failure.
func (run *fileRun) rewrite(rec *record, w *wire, reply reply) {
	switch rec.kind {
	case kindStatementError:
		if reply.err != nil && reply.err.code != rec.sqlState {
			run.editHeader(rec, "statement error "+reply.err.code)
			rec.sqlState = reply.err.code
		}
	case kindStatementCount:
		if reply.err == nil && reply.rows >= 0 && reply.rows != rec.count {
			run.editHeader(rec, fmt.Sprintf("statement count %d", reply.rows))
			rec.count = reply.rows
		}
	case kindQuery:
		if reply.err != nil || !reply.columns || (rec.types != "?" && len(rec.types) != len(w.oids)) {
			return
		}
		if rec.types == "?" {
			run.editHeader(rec, queryHeader(rec, string(w.letters)))
		}
		run.editResult(rec)
	}
}

func (run *fileRun) editHeader(rec *record, header string) {
	run.edits = append(run.edits, edit{rec.headerLine, rec.headerLine + 1, []string{header}})
}

func queryHeader(rec *record, letters string) string {
	header := "query " + letters
	switch rec.sort {
	case sortRows:
		header += " rowsort"
	case sortValues:
		header += " valuesort"
	case sortNone:
		if rec.label != "" {
			header += " nosort"
		}
	}
	if rec.label != "" {
		header += " " + rec.label
	}
	return header
}

func (run *fileRun) editResult(rec *record) {
	run.res.arrange(rec.sort)
	lines := run.res.lines(rec.rowwise)
	if run.threshold > 0 && int64(run.res.values()) > run.threshold {
		lines = []string{fmt.Sprintf("%d values hashing to %x", run.res.values(), run.res.sum())}
	}
	from, to := rec.resultFrom, rec.resultTo
	if from == 0 {
		from, to = rec.bodyEnd, rec.bodyEnd
		lines = append([]string{"----"}, lines...)
	}
	run.edits = append(run.edits, edit{from, to, lines})
}

// rewriteFile applies the edits, which are in the order of their lines.
func rewriteFile(path string, edits []edit) error {
	if len(edits) == 0 {
		return nil
	}
	if strings.HasSuffix(path, ".gz") {
		return fmt.Errorf("%s: a packed file cannot be rewritten", path)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	rewritten := applyEdits(string(text), edits)
	if rewritten == string(text) {
		return nil
	}
	return os.WriteFile(path, []byte(rewritten), 0o644)
}

func applyEdits(text string, edits []edit) string {
	old := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	var lines []string
	at := 1
	for _, e := range edits {
		lines = append(lines, old[at-1:e.from-1]...)
		lines = append(lines, e.lines...)
		at = e.to
	}
	lines = append(lines, old[at-1:]...)
	return strings.Join(lines, "\n") + "\n"
}
