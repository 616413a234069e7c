package mysqlimport

import (
	"bufio"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cespare/xxhash/v2"
	"github.com/klauspost/compress/zstd"
)

// fileKind is what a file contains.
type fileKind int

const (
	filePlain    fileKind = iota // a dump with everything, as mysqldump writes it
	fileDatabase                 // CREATE DATABASE
	fileTable                    // CREATE TABLE
	fileViewStub                 // CREATE TABLE that stands in for a view
	fileRows                     // INSERT
	fileOther                    // views, triggers, routines
)

// dumpFile is a file of a dump.
type dumpFile struct {
	path  string
	name  string // path, or its part below the directory that was given; part of the batches' keys
	size  int64
	kind  fileKind
	db    string // from the file's name, "" for filePlain
	index int    // among all files
}

// findFiles lists the files of a dump. Directories are read to one level.
func findFiles(paths []string) ([]*dumpFile, error) {
	var files []*dumpFile
	for _, path := range paths {
		info, err := os.Stat(path)
		if err != nil {
			return nil, err
		}
		if !info.IsDir() {
			if !info.Mode().IsRegular() {
				return nil, fmt.Errorf("%s is no file: an import reads files, which it can read again after an interrupt", path)
			}
			files = append(files, &dumpFile{path: path, name: filepath.Base(path), size: info.Size()})
			continue
		}
		list, err := readDirectory(path)
		if err != nil {
			return nil, err
		}
		files = append(files, list...)
	}
	if len(files) == 0 {
		return nil, errors.New("there are no files to import: a dump's files end in .sql, .sql.gz or .sql.zst")
	}
	slices.SortStableFunc(files, func(a, b *dumpFile) int { return order(a.kind) - order(b.kind) })
	for i, f := range files {
		f.index = i
	}
	return files, nil
}

// order is the order in which files are read: definitions before rows.
func order(k fileKind) int {
	switch k {
	case fileDatabase:
		return 0
	case fileTable, fileViewStub:
		return 1
	}
	return 2
}

func readDirectory(dir string) ([]*dumpFile, error) {
	entries, err := os.ReadDir(dir) // sorted by name
	if err != nil {
		return nil, err
	}
	var files []*dumpFile
	split := false // into files of databases and tables
	for _, e := range entries {
		if e.Name() == "metadata" || strings.Contains(e.Name(), "-schema.sql") || strings.Contains(e.Name(), "-schema-create.sql") {
			split = true
		}
		if e.Name() == "metadata.partial" {
			return nil, fmt.Errorf("%s: mydumper has not completed this dump: dump again", filepath.Join(dir, e.Name()))
		}
	}
	if err := checkMetadata(dir); err != nil {
		return nil, err
	}
	for _, e := range entries {
		stem, is := cutSQL(e.Name())
		path := filepath.Join(dir, e.Name())
		if !is {
			if e.Type().IsRegular() && (strings.Contains(e.Name(), ".csv") || strings.HasSuffix(e.Name(), ".parquet")) {
				return nil, fmt.Errorf("%s: the import reads SQL files: dump with Dumpling's --filetype sql", path)
			}
			continue
		}
		info, err := os.Stat(path)
		if err != nil {
			return nil, err
		}
		if !info.Mode().IsRegular() {
			continue
		}
		f := &dumpFile{path: path, name: e.Name(), size: info.Size()}
		if split {
			f.classify(stem)
		}
		files = append(files, f)
	}
	markStubs(files)
	return files, nil
}

// checkMetadata checks that mydumper or Dumpling has written its last line.
func checkMetadata(dir string) error {
	path := filepath.Join(dir, "metadata")
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if strings.Contains(strings.ToLower(lines.Text()), "finished dump at") {
			return nil
		}
	}
	return fmt.Errorf("%s has no line \"Finished dump at\": the dump is incomplete; dump again", path)
}

// cutSQL cuts .sql and the suffix of its compression.
func cutSQL(name string) (stem string, ok bool) {
	for _, suffix := range []string{".gz", ".zst", ".zstd"} {
		name = strings.TrimSuffix(name, suffix)
	}
	return strings.CutSuffix(name, ".sql")
}

// classify reads the names that mydumper and Dumpling give their files: DB-schema-create, DB.TABLE-schema, DB.TABLE-schema-view,
// DB.TABLE.000000000. Dumpling writes special characters of names as %XX.
func (f *dumpFile) classify(stem string) {
	f.kind = fileRows
	rest := stem
	for _, s := range []struct {
		suffix string
		kind   fileKind
	}{
		{"-schema-create", fileDatabase}, {"-schema-view", fileOther}, {"-schema-triggers", fileOther}, {"-schema-post", fileOther},
		{"-schema-sequence", fileOther}, {"-schema", fileTable},
	} {
		if cut, ok := strings.CutSuffix(stem, s.suffix); ok {
			f.kind, rest = s.kind, cut
			break
		}
	}
	if f.kind == fileDatabase {
		f.db = unescape(rest)
		return
	}
	db, _, qualified := strings.Cut(rest, ".")
	if !qualified {
		if f.kind == fileRows {
			f.kind = filePlain
		}
		return
	}
	f.db = unescape(db)
}

func unescape(name string) string {
	if plain, err := url.PathUnescape(name); err == nil {
		return plain
	}
	return name
}

// markStubs marks the files of tables that are placeholders of views.
func markStubs(files []*dumpFile) {
	views := map[string]bool{}
	for _, f := range files {
		stem, _ := cutSQL(f.name)
		if view, ok := strings.CutSuffix(stem, "-schema-view"); ok {
			views[view] = true
		}
	}
	for _, f := range files {
		stem, _ := cutSQL(f.name)
		if table, ok := strings.CutSuffix(stem, "-schema"); ok && views[table] {
			f.kind = fileViewStub
		}
	}
}

// fingerprint identifies a file by its name, its size, its first and its last bytes.
func (f *dumpFile) fingerprint(into *xxhash.Digest) error {
	const n = 64 << 10
	fmt.Fprintf(into, "%s\x00%d\x00", f.name, f.size)
	in, err := os.Open(f.path)
	if err != nil {
		return err
	}
	defer in.Close()
	for _, at := range []int64{0, max(0, f.size-n)} {
		if _, err := io.Copy(into, io.NewSectionReader(in, at, n)); err != nil {
			return err
		}
	}
	return nil
}

// maxWindow bounds the memory that a zstd file may ask for.
const maxWindow = 128 << 20

// open opens a file and decompresses it. counted is called with the number of bytes of each read of the file.
func (f *dumpFile) open(counted func(int)) (io.Reader, func(), error) {
	in, err := os.Open(f.path)
	if err != nil {
		return nil, nil, err
	}
	counting := bufio.NewReaderSize(&countingReader{in, counted}, 1<<20)
	magic, _ := counting.Peek(4)
	switch {
	case len(magic) >= 2 && magic[0] == 0x1f && magic[1] == 0x8b:
		zr, err := gzip.NewReader(counting)
		if err != nil {
			in.Close()
			return nil, nil, fmt.Errorf("%s: %w", f.path, err)
		}
		return zr, func() { in.Close() }, nil
	case string(magic) == "\x28\xb5\x2f\xfd":
		zr, err := zstd.NewReader(counting, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxWindow))
		if err != nil {
			in.Close()
			return nil, nil, fmt.Errorf("%s: %w", f.path, err)
		}
		return zr, func() { zr.Close(); in.Close() }, nil
	}
	return counting, func() { in.Close() }, nil
}

type countingReader struct {
	in      io.Reader
	counted func(int)
}

func (r *countingReader) Read(p []byte) (int, error) {
	n, err := r.in.Read(p)
	r.counted(n)
	return n, err
}
