package sqllogic

import (
	"crypto/md5"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/schollz/progressbar/v3"
)

// linesShown is how many lines of a long result or statement a report holds.
const linesShown = 30

// report prints one failure.
func report(out io.Writer, f Failure) {
	place := f.File
	if f.Line > 0 {
		place = fmt.Sprintf("%s:%d", f.File, f.Line)
	}
	fmt.Fprintf(out, "%s\n%s  expected: %s\n  actual:   %s\n\n",
		place, indent(strings.Split(f.SQL, "\n"), "  "), f.Expected, f.Actual)
}

func indent(lines []string, by string) string {
	var b strings.Builder
	for i, line := range lines {
		if i == linesShown && len(lines) > linesShown+1 {
			fmt.Fprintf(&b, "%s… %d more lines\n", by, len(lines)-i)
			break
		}
		b.WriteString(by)
		b.WriteString(line)
		b.WriteByte('\n')
	}
	return b.String()
}

// describeExpected says what a record asks for.
func describeExpected(rec *record) string {
	switch rec.kind {
	case kindStatementError:
		if rec.sqlState == "" {
			return "an error"
		}
		return "an error with SQLSTATE " + rec.sqlState
	case kindStatementCount:
		return fmt.Sprintf("%d rows", rec.count)
	case kindQuery:
		if rec.hash != "" {
			return fmt.Sprintf("%d values hashing to %s", rec.hashCount, rec.hash)
		}
		return describeLines(rec.expected)
	}
	return "success"
}

// describeActual says what a query returned.
func describeActual(rec *record, res *result, digest [md5.Size]byte) string {
	lines := describeLines(res.lines(rec.rowwise))
	if rec.hash == "" {
		return lines
	}
	return fmt.Sprintf("%d values hashing to %x\n  which are %s", res.values(), digest, lines)
}

func describeLines(lines []string) string {
	if len(lines) == 0 {
		return "no rows"
	}
	return "\n" + strings.TrimSuffix(indent(lines, "    "), "\n")
}

// progress draws how far a run is, measured in bytes of files read, because
// their records are not known before. A nil progress draws nothing.
type progress struct {
	bar     *progressbar.ProgressBar
	before  int64 // bytes of the files done
	drawnAt time.Time
	asked   int
}

// newProgress returns a progress bar over the files, or nil without a writer.
func newProgress(out io.Writer, files []testFile) *progress {
	if out == nil {
		return nil
	}
	var total int64
	for _, f := range files {
		total += f.size
	}
	bar := progressbar.NewOptions64(total,
		progressbar.OptionSetWriter(out),
		progressbar.OptionSetWidth(30),
		progressbar.OptionShowBytes(false),
		progressbar.OptionSetPredictTime(true),
		progressbar.OptionThrottle(100*time.Millisecond),
		progressbar.OptionClearOnFinish(),
	)
	return &progress{bar: bar}
}

// record notes that record i of n of a file is done. It looks at the clock
// for one in 64 records only: a look costs as much as parsing a record.
func (p *progress) record(f testFile, i, n int) {
	if p == nil {
		return
	}
	if p.asked++; p.asked%64 != 0 || time.Since(p.drawnAt) < 100*time.Millisecond {
		return
	}
	p.drawnAt = time.Now()
	p.bar.Describe(f.name)
	_ = p.bar.Set64(p.before + f.size*int64(i+1)/int64(n))
}

func (p *progress) fileDone(f testFile) {
	if p != nil {
		p.before += f.size
	}
}

// pause takes the bar off the screen so that a report can be printed.
func (p *progress) pause() {
	if p != nil {
		_ = p.bar.Clear()
	}
}

func (p *progress) done() {
	if p != nil {
		_ = p.bar.Clear()
	}
}
