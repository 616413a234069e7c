package journal

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// syncInterval is the interval at which appended records are synced to disk.
const syncInterval = 10 * time.Millisecond

// suffix is the suffix of journal file names.
const suffix = ".journal"

// Kind is the kind of a record.
type Kind string

const (
	// Run is the first record: TradeID is the run's number in its database, Qty the sum of lt_vol before
	// the run, Price its number of connections, and Symbol the database's identity.
	Run Kind = "RUN"
	// Lease: the run alone creates trades with ids in [TradeID, TradeID + Qty).
	Lease Kind = "LEASE"
	// Order: trade TradeID was ordered.
	Order Kind = "ORDER"
	// Refused: trade TradeID was rolled back, as intended.
	Refused Kind = "REFUSED"
	// Result: trade TradeID was completed at Price cents.
	Result Kind = "RESULT"
	// Sent: a tape entry is about to add Qty to the volume of Symbol. If the driver is killed before it writes
	// Volume, the outcome of the entry is unknown.
	Sent Kind = "SENT"
	// Volume: a tape entry added Qty to the volume of Symbol.
	Volume Kind = "VOLUME"
	// Trigger: limit order TradeID was submitted to the market.
	Trigger Kind = "TRIGGER"
	// End is the last record of a run whose driver was not killed.
	End Kind = "END"
)

func kinds() []Kind { return []Kind{Run, Lease, Order, Refused, Result, Sent, Volume, Trigger, End} }

// acknowledges reports whether records of the kind are acknowledgements by a server.
func (k Kind) acknowledges() bool { return k != Run && k != Lease && k != Sent && k != End }

// Record is one line. Fields that are not used by its kind are zero.
type Record struct {
	Kind    Kind
	TradeID int64
	Price   int64
	Qty     int64
	Symbol  string    // without blanks
	At      time.Time // when the server's answer arrived
	// Unknown: no answer arrived, and a query did not determine the outcome.
	Unknown bool
}

// appendTo appends the record as a line: fields, then their checksum.
func (r *Record) appendTo(b []byte) []byte {
	start := len(b)
	b = append(b, r.Kind...)
	for _, v := range [3]int64{r.TradeID, r.Price, r.Qty} {
		b = strconv.AppendInt(append(b, ' '), v, 10)
	}
	symbol := r.Symbol
	if symbol == "" {
		symbol = "-"
	}
	b = append(append(b, ' '), symbol...)
	b = strconv.AppendInt(append(b, ' '), r.At.UnixMicro(), 10)
	b = strconv.AppendBool(append(b, ' '), r.Unknown)
	sum := crc32.ChecksumIEEE(b[start:])
	return append(strconv.AppendUint(append(b, ' '), uint64(sum), 16), '\n')
}

// parse parses a line without its line end.
func parse(line string) (Record, error) {
	var r Record
	cut := strings.LastIndexByte(line, ' ')
	if cut < 0 {
		return r, errors.New("no record")
	}
	if sum, err := strconv.ParseUint(line[cut+1:], 16, 32); err != nil || uint32(sum) != crc32.ChecksumIEEE([]byte(line[:cut])) {
		return r, errors.New("the checksum does not fit")
	}
	var at int64
	if _, err := fmt.Sscan(line[:cut], &r.Kind, &r.TradeID, &r.Price, &r.Qty, &r.Symbol, &at, &r.Unknown); err != nil {
		return r, err
	}
	if !slices.Contains(kinds(), r.Kind) {
		return r, fmt.Errorf("unknown kind %q", r.Kind)
	}
	if r.Symbol == "-" {
		r.Symbol = ""
	}
	r.At = time.UnixMicro(at).UTC()
	return r, nil
}

// Writer appends to the journal of one run. It is safe for concurrent use. A nil Writer discards all records:
// the run has no journal.
type Writer struct {
	mu     sync.Mutex
	file   *os.File
	buf    []byte
	dirty  bool
	err    error // the first error, which every later call returns
	counts Counts

	stop chan struct{}
	done chan struct{}
}

// Counts are the numbers of written acknowledgements and of records of unknown outcome.
type Counts struct {
	Acknowledged int64 `json:"acknowledged"`
	Unknown      int64 `json:"unknown"`
}

// Create creates the journal of a run in a directory, and the directory if it does not exist. The first record
// must be of kind Run.
func Create(dir string, first Record) (*Writer, error) {
	if first.Kind != Run {
		return nil, fmt.Errorf("a journal begins with %s, not %s", Run, first.Kind)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	name := fmt.Sprintf("%06d-%s%s", first.TradeID, first.At.UTC().Format("20060102T150405"), suffix)
	file, err := os.OpenFile(filepath.Join(dir, name), os.O_WRONLY|os.O_APPEND|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return nil, err
	}
	if err := syncDir(dir); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	w := &Writer{file: file, stop: make(chan struct{}), done: make(chan struct{})}
	go w.syncer()
	if err := w.Append(first); err != nil {
		return nil, errors.Join(err, w.Close(first.At))
	}
	return w, nil
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// Append writes records; on an error, it has written a prefix of them. After an error nothing more is written: a
// journal with a gap is not evidence.
func (w *Writer) Append(records ...Record) error {
	if w == nil || len(records) == 0 {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil {
		return w.err
	}
	w.buf = w.buf[:0]
	for i := range records {
		w.buf = records[i].appendTo(w.buf)
		switch {
		case records[i].Unknown:
			w.counts.Unknown++
		case records[i].Kind.acknowledges():
			w.counts.Acknowledged++
		}
	}
	w.dirty = true
	_, w.err = w.file.Write(w.buf)
	return w.err
}

// Counts returns the counts of appended records.
func (w *Writer) Counts() Counts {
	if w == nil {
		return Counts{}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.counts
}

// syncer syncs appended records to disk.
func (w *Writer) syncer() {
	defer close(w.done)
	ticker := time.NewTicker(syncInterval)
	defer ticker.Stop()
	for {
		select {
		case <-w.stop:
			return
		case <-ticker.C:
		}
		w.mu.Lock()
		dirty := w.dirty && w.err == nil
		w.dirty = false
		w.mu.Unlock()
		if !dirty {
			continue
		}
		if err := w.file.Sync(); err != nil { // without the lock, so that Append can proceed
			w.mu.Lock()
			w.err = errors.Join(w.err, err)
			w.mu.Unlock()
		}
	}
}

// Close writes End and closes the file. Append must not be called after it.
func (w *Writer) Close(at time.Time) error {
	if w == nil {
		return nil
	}
	err := w.Append(Record{Kind: End, At: at})
	close(w.stop)
	<-w.done
	return errors.Join(err, w.file.Sync(), w.file.Close())
}

// File is the journal of one run.
type File struct {
	Path    string
	Records []Record // the first is of kind Run
	// Clean: the driver was not killed.
	Clean bool
}

// Read returns the journals of a directory, in the order of their runs. A file whose first record is incomplete
// is omitted: its run had done nothing.
func Read(dir string) ([]File, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*"+suffix))
	if err != nil {
		return nil, err
	}
	if len(paths) == 0 {
		return nil, fmt.Errorf("there are no journals (*%s) in %s", suffix, dir)
	}
	slices.Sort(paths)
	var files []File
	for _, path := range paths {
		f, err := readFile(path)
		if err != nil {
			return nil, err
		}
		if len(f.Records) > 0 {
			files = append(files, f)
		}
	}
	slices.SortFunc(files, func(a, b File) int { return int(a.Records[0].TradeID - b.Records[0].TradeID) })
	return files, nil
}

func readFile(path string) (File, error) {
	f := File{Path: path}
	data, err := os.ReadFile(path)
	if err != nil {
		return f, err
	}
	for n := 1; len(data) > 0; n++ {
		end := bytes.IndexByte(data, '\n')
		if end < 0 {
			break // truncated by a crash of the driver or its machine
		}
		r, err := parse(string(data[:end]))
		if err == nil && (n == 1) != (r.Kind == Run) {
			err = fmt.Errorf("%s in the wrong place", r.Kind)
		}
		if err == nil && f.Clean {
			err = fmt.Errorf("%s after %s", r.Kind, End)
		}
		if err != nil {
			return f, fmt.Errorf("%s, line %d: %w", path, n, err)
		}
		f.Clean = r.Kind == End
		f.Records = append(f.Records, r)
		data = data[end+1:]
	}
	return f, nil
}
