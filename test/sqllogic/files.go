package sqllogic

import (
	"bufio"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// testFile is one file to run.
type testFile struct {
	name string // as reports and the exclude file call it
	path string // where it lies
	size int64  // on disk, in bytes: the unit of progress
}

// findFiles returns the files that the options name, in order.
func findFiles(o Options) ([]testFile, error) {
	var files []testFile
	for _, path := range o.Paths {
		found, err := walk(path)
		if err != nil {
			return nil, err
		}
		files = append(files, found...)
	}
	if o.List != "" {
		names, err := readLines(o.List)
		if err != nil {
			return nil, err
		}
		root := o.Root
		if root == "" {
			root = filepath.Dir(o.List)
		}
		for _, name := range names {
			f, err := locate(name, filepath.Join(root, filepath.FromSlash(name)))
			if err != nil {
				return nil, err
			}
			files = append(files, f)
		}
	}
	if len(files) == 0 {
		return nil, errors.New("no test files: name files or directories, or a list")
	}
	return files, nil
}

// locate finds a file on disk, as it is or with .gz after its name.
func locate(name, path string) (testFile, error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		if zipped, zerr := os.Stat(path + ".gz"); zerr == nil {
			return testFile{name: name, path: path + ".gz", size: zipped.Size()}, nil
		}
	}
	if err != nil {
		return testFile{}, err
	}
	return testFile{name: name, path: path, size: info.Size()}, nil
}

// walk returns the file at path, or all test files below it: .slt and .test,
// plain or gzip.
func walk(path string) ([]testFile, error) {
	var files []testFile
	if info, err := os.Stat(path); err != nil || !info.IsDir() {
		f, err := locate(path, path)
		return append(files, f), err
	}
	err := filepath.WalkDir(path, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		switch filepath.Ext(strings.TrimSuffix(p, ".gz")) {
		case ".slt", ".test":
			info, err := d.Info()
			if err != nil {
				return err
			}
			files = append(files, testFile{name: strings.TrimSuffix(p, ".gz"), path: p, size: info.Size()})
		}
		return nil
	})
	return files, err
}

// load reads a test file, unpacks it if it is gzip, and parses it.
func load(f testFile) ([]record, error) {
	text, err := readText(f.path)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.name, err)
	}
	records, err := parse(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.name, err)
	}
	return records, nil
}

func readText(path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	in := bufio.NewReaderSize(file, 1<<16)
	var text strings.Builder
	if magic, _ := in.Peek(2); string(magic) == "\x1f\x8b" {
		zipped, err := gzip.NewReader(in)
		if err != nil {
			return "", err
		}
		_, err = io.Copy(&text, zipped)
		return text.String(), err
	}
	_, err = io.Copy(&text, in)
	return text.String(), err
}

// readLines returns a file's lines without blank ones and comments.
func readLines(path string) ([]string, error) {
	text, err := readText(path)
	if err != nil {
		return nil, err
	}
	var lines []string
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line != "" && !strings.HasPrefix(line, "#") {
			lines = append(lines, line)
		}
	}
	return lines, nil
}

// location names a record in the exclude file.
type location struct {
	file string
	line int
}

// readExcludes reads an exclude file: lines FILE:LINE of records to skip.
func readExcludes(path string) (map[location]bool, error) {
	if path == "" {
		return nil, nil
	}
	lines, err := readLines(path)
	if err != nil {
		return nil, err
	}
	excludes := make(map[location]bool, len(lines))
	for _, line := range lines {
		colon := strings.LastIndexByte(line, ':')
		if colon < 0 {
			return nil, fmt.Errorf("%s: %q is not FILE:LINE", path, line)
		}
		n, err := strconv.Atoi(line[colon+1:])
		if err != nil {
			return nil, fmt.Errorf("%s: %q is not FILE:LINE", path, line)
		}
		excludes[location{line[:colon], n}] = true
	}
	return excludes, nil
}
