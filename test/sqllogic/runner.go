package sqllogic

import (
	"context"
	"crypto/md5"
	"errors"
	"fmt"
	"io"
	"time"
)

// Options specify what to run, and where. The zero value of a field is its default.
type Options struct {
	URL     string // the server, as a URL or keyword string of libpq
	Dialect string // what skipif and onlyif compare with; "" is "postgresql"

	Paths   []string // files, and directories whose .slt and .test files are run
	List    string   // a file that names test files, one a line
	Root    string   // the directory of the names of List; "" is List's own directory
	Exclude string   // a file of lines FILE:LINE: records to skip

	MaxFailures   int           // end the run after this many failures; 0 is no limit
	RecordTimeout time.Duration // how long one record may take; 0 is one minute
	Extended      bool          // use the extended protocol, in place of simple queries

	// Rewrite replaces the results in the files, which must not be compressed, by the server's, instead of comparing
	// them.
	Rewrite bool

	Verbose bool // report each file with its counts and its time

	Out      io.Writer // failures are reported here; nil is nowhere
	Progress io.Writer // a progress bar is drawn here; nil is none
}

// Run runs all records of the files that the options name, in order. It returns an error if it could not finish: a file
// that cannot be read or parsed, a server that cannot be reached or disconnects, the end of ctx. Failed records are not
// an error; the summary counts them, and is valid with an error too.
func Run(ctx context.Context, o Options) (Summary, error) {
	if o.Dialect == "" {
		o.Dialect = "postgresql"
	}
	if o.RecordTimeout == 0 {
		o.RecordTimeout = time.Minute
	}
	if o.Out == nil {
		o.Out = io.Discard
	}
	files, err := findFiles(o)
	if err != nil {
		return Summary{}, err
	}
	excludes, err := readExcludes(o.Exclude)
	if err != nil {
		return Summary{}, err
	}
	start := time.Now()
	r := &runner{Options: o, excludes: excludes, progress: newProgress(o.Progress, files)}
	err = r.files(ctx, files)
	r.progress.done()
	r.summary.Elapsed = time.Since(start)
	if errors.Is(err, errEnough) {
		err = nil
	}
	return r.summary, err
}

// errEnough ends a run that has reached MaxFailures.
var errEnough = errors.New("enough failures")

// runner is the state of one run.
type runner struct {
	Options
	excludes map[location]bool
	progress *progress
	summary  Summary
	res      result // memory reused by all queries
}

// files runs the files one after the other, and reads each while the previous one runs.
func (r *runner) files(ctx context.Context, files []testFile) error {
	type loaded struct {
		records []record
		err     error
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ahead := make(chan loaded)
	go func() {
		defer close(ahead)
		for _, f := range files {
			records, err := load(f)
			select {
			case ahead <- loaded{records, err}:
			case <-ctx.Done():
				return
			}
		}
	}()
	for _, f := range files {
		var l loaded
		select {
		case l = <-ahead:
		case <-ctx.Done():
			return ctx.Err()
		}
		if l.err != nil {
			return l.err
		}
		before, start := r.summary, time.Now()
		if err := r.file(ctx, f, l.records); err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return err
		}
		r.progress.fileDone(f)
		if r.Verbose {
			r.progress.pause()
			fmt.Fprintf(r.Out, "%9.3fs %7d passed %5d failed  %s\n", time.Since(start).Seconds(),
				r.summary.Passed-before.Passed, r.summary.Failed-before.Failed, f.name)
		}
	}
	return nil
}

// fileRun is the state of one file while its records run.
type fileRun struct {
	*runner
	testFile
	connections map[string]*wire // by the name their records give
	labels      map[string]labelled
	threshold   int64
	edits       []edit // the rewriter's changes
}

// labelled is the first result of a label's queries.
type labelled struct {
	digest [md5.Size]byte
	line   int
}

// file runs one file between two clean-ups. An error ends the whole run.
func (r *runner) file(ctx context.Context, f testFile, records []record) error {
	run := &fileRun{
		runner: r, testFile: f,
		connections: make(map[string]*wire), labels: make(map[string]labelled),
	}
	defer run.disconnect()
	objects := createdObjects(records, r.Dialect)
	if err := run.clean(ctx, objects); err != nil {
		return err
	}
	for i := range records {
		rec := &records[i]
		if rec.kind == kindHalt && rec.runs(r.Dialect) {
			break
		}
		if err := run.record(ctx, rec); err != nil {
			return err
		}
		r.progress.record(f, i, len(records))
	}
	if r.Rewrite {
		if err := rewriteFile(f.path, run.edits); err != nil {
			return err
		}
	}
	run.disconnect()
	r.summary.Files++
	return run.clean(ctx, objects)
}

// clean drops the objects that the file creates, over a separate connection. An object that cannot be dropped is a
// failure of the file.
func (run *fileRun) clean(ctx context.Context, objects []object) error {
	if len(objects) == 0 {
		return nil
	}
	w, err := run.dial(ctx)
	if err != nil {
		return err
	}
	defer w.close()
	for _, o := range objects {
		reply, err := w.query(request{sql: o.drop()}, nil)
		if err != nil {
			return fmt.Errorf("%s: cleaning up with %s: %w", run.name, o.drop(), err)
		}
		// A name may be that of a view in one file and of a table in another; DROP VIEW of a table is then an error
		// (wrong_object_type) to ignore.
		if reply.err == nil || reply.err.code == "42809" {
			continue
		}
		if err := run.failed(&record{sql: o.drop()}, "a clean schema", reply.err.Error()); err != nil {
			return err
		}
	}
	return nil
}

func (run *fileRun) dial(ctx context.Context) (*wire, error) {
	w, err := dial(ctx, run.URL, run.RecordTimeout)
	if err != nil {
		return nil, fmt.Errorf("%s: no connection to the server: %w", run.name, err)
	}
	return w, nil
}

// connection returns the file's connection of that name.
func (run *fileRun) connection(ctx context.Context, name string) (*wire, error) {
	if w := run.connections[name]; w != nil {
		return w, nil
	}
	w, err := run.dial(ctx)
	if err != nil {
		return nil, err
	}
	if err := run.speak(w); err != nil {
		w.close()
		return nil, err
	}
	run.connections[name] = w
	return w, nil
}

// speak sets a connection to the dialect of the run, if the server supports it.
func (run *fileRun) speak(w *wire) error {
	if run.Dialect != "mysql" {
		return nil
	}
	reply, err := w.query(request{sql: "SET percodb.dialect = 'mysql'"}, nil)
	if err == nil && reply.err != nil {
		err = fmt.Errorf("%s: the server has no MySQL dialect: %s", run.name, reply.err.Error())
	}
	return err
}

func (run *fileRun) disconnect() {
	for _, w := range run.connections {
		w.close()
	}
	clear(run.connections)
}

// record runs one record and counts it.
func (run *fileRun) record(ctx context.Context, rec *record) error {
	switch rec.kind {
	case kindHalt, kindResultMode:
		return nil
	case kindHashThreshold:
		if rec.runs(run.Dialect) {
			run.threshold = rec.count
		}
		return nil
	}
	if !rec.runs(run.Dialect) || run.excludes[location{run.name, rec.line}] {
		run.summary.Skipped++
		return nil
	}
	w, err := run.connection(ctx, rec.connection)
	if err != nil {
		return err
	}
	run.res.reset(0)
	reply, err := w.query(request{
		sql: rec.sql, data: rec.data, letters: rec.types, exact: rec.rowwise, extended: run.Extended,
	}, &run.res)
	if err != nil {
		return run.lost(ctx, rec, err)
	}
	if run.Rewrite {
		run.rewrite(rec, w, reply)
	}
	if expected, actual := run.judge(rec, w, reply); actual != "" {
		return run.failed(rec, expected, actual)
	}
	run.summary.Passed++
	return nil
}

// lost counts a record during which the connection was lost. The run continues on a new connection if the server
// accepts one.
func (run *fileRun) lost(ctx context.Context, rec *record, cause error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	delete(run.connections, rec.connection)
	actual := fmt.Sprintf("the connection was lost: %v", cause)
	if errors.Is(cause, errTimeout) {
		actual = fmt.Sprintf("no answer within %v; the connection was closed", run.RecordTimeout)
	}
	if err := run.failed(rec, "an answer", actual); err != nil {
		return err
	}
	if _, err := run.connection(ctx, rec.connection); err != nil {
		return fmt.Errorf("%s:%d: the server went away (%v) and cannot be reached again: %w", run.name, rec.line, cause, err)
	}
	return nil
}

// judge compares an answer with what the record expects. It returns an empty actual if the record passes.
func (run *fileRun) judge(rec *record, w *wire, reply reply) (expected, actual string) {
	switch {
	case rec.kind == kindStatementError:
		return judgeError(rec, reply)
	case reply.err != nil:
		return describeExpected(rec), reply.err.Error()
	case rec.kind == kindStatementCount && reply.rows != rec.count:
		return describeExpected(rec), fmt.Sprintf("%d rows", reply.rows)
	case rec.kind != kindQuery:
		return "", ""
	case !reply.columns:
		return describeExpected(rec), "the statement returns no rows"
	case len(rec.types) != len(w.oids) && rec.types != "?":
		return fmt.Sprintf("%d columns", len(rec.types)), fmt.Sprintf("%d columns", len(w.oids))
	}
	run.res.arrange(rec.sort)
	var digest [md5.Size]byte
	if rec.hash != "" || rec.label != "" {
		digest = run.res.sum()
	}
	if !run.Rewrite && !run.res.matches(rec, digest) {
		return describeExpected(rec), describeActual(rec, &run.res, digest)
	}
	if rec.label == "" {
		return "", ""
	}
	first, ok := run.labels[rec.label]
	if !ok {
		run.labels[rec.label] = labelled{digest, rec.line}
	} else if first.digest != digest {
		return fmt.Sprintf("the same values as line %d, which has the same label %s", first.line, rec.label),
			describeActual(rec, &run.res, digest)
	}
	return "", ""
}

func judgeError(rec *record, reply reply) (expected, actual string) {
	switch {
	case reply.err == nil:
		return describeExpected(rec), "it succeeds"
	case rec.sqlState != "" && reply.err.code != rec.sqlState:
		return describeExpected(rec), reply.err.Error()
	}
	return "", ""
}

// failed counts and reports one failure.
func (run *fileRun) failed(rec *record, expected, actual string) error {
	run.summary.Failed++
	run.progress.pause()
	report(run.Out, Failure{File: run.name, Line: rec.line, SQL: rec.sql, Expected: expected, Actual: actual})
	if run.MaxFailures > 0 && run.summary.Failed >= run.MaxFailures {
		return errEnough
	}
	return nil
}
