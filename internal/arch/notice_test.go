package arch

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"sort"
	"strings"
	"testing"
)

// licences are told by their texts. A module may be under several.
var licences = []struct {
	name string
	text *regexp.Regexp
}{
	{"Apache-2.0", regexp.MustCompile(`(?s)Apache License\s+Version 2\.0`)},
	{"MPL-2.0", regexp.MustCompile(`Mozilla Public License, version 2\.0`)},
	{"MIT", regexp.MustCompile(`Permission is hereby granted, free of\s+charge`)},
	{"BSD-3-Clause", regexp.MustCompile(`(?s)Redistribution and use in source.*(Neither the names? of|may not be used to\s+endorse)`)},
}

// copyright lines, as they stand in licences and notices.
var copyright = regexp.MustCompile(`(?m)^\s*(Copyright (?:\(c\) |© )?[0-9]{4}.*?)\s*$`)

// TestNotice: NOTICE names every module that is linked into percodb, with its licence and whose it is. With -rewrite it writes
// the file.
func TestNotice(t *testing.T) {
	root := filepath.Join("..", "..")
	cmd := exec.Command("go", "list", "-deps", "-f", "{{with .Module}}{{if not .Main}}{{.Path}}\t{{.Dir}}{{end}}{{end}}", "./cmd/percodb")
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	modules := map[string]string{}
	for _, line := range strings.Split(strings.TrimSpace(string(out)), "\n") {
		if path, dir, ok := strings.Cut(line, "\t"); ok {
			modules[path] = dir
		}
	}
	var want bytes.Buffer
	want.WriteString("percodb\nCopyright The percodb authors\n\nLicensed under the Apache License, Version 2.0: see LICENSE.\n\n" +
		"The percodb program contains the following modules under licences of their own. The text of each licence is in the\n" +
		"module's source, which `go mod download` fetches. `go test ./internal/arch -run TestNotice -rewrite` writes this list.\n\n" +
		"The lists of stop words in sql/snowball/stop are those of Snowball and PostgreSQL, under the BSD and PostgreSQL licences.\n" +
		"    Copyright (c) 2001, Dr Martin Porter\n" +
		"    Portions Copyright (c) 1996-2022, PostgreSQL Global Development Group\n" +
		"    Portions Copyright (c) 1994, The Regents of the University of California\n" + "\n")
	paths := make([]string, 0, len(modules))
	for path := range modules {
		paths = append(paths, path)
	}
	sort.Strings(paths)
	for _, path := range paths {
		name, holders := licenceOf(t, modules[path])
		if name == "" {
			t.Errorf("%s: no known licence in %s", path, modules[path])
		}
		fmt.Fprintf(&want, "%s: %s\n", path, name)
		for _, holder := range holders {
			fmt.Fprintf(&want, "    %s\n", holder)
		}
	}
	file := filepath.Join(root, "NOTICE")
	if *rewrite {
		if err := os.WriteFile(file, want.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want.Bytes()) {
		t.Error("NOTICE does not list what is linked: go test ./internal/arch -run TestNotice -rewrite")
	}
}

// licenceOf returns a module's licence and the copyright lines of it and of its notice.
func licenceOf(t *testing.T, dir string) (name string, holders []string) {
	t.Helper()
	for _, pattern := range []string{"LICEN*", "Licen*", "COPYING*", "NOTICE*"} {
		files, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			if info, err := os.Stat(file); err == nil && info.IsDir() {
				continue
			}
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, l := range licences {
				if l.text.Match(text) && !strings.Contains(name, l.name) {
					name = strings.TrimPrefix(name+" and "+l.name, " and ")
				}
			}
			if name == "" && bytes.Contains(text, []byte("Redistribution and use in source")) {
				name = "BSD-2-Clause"
			}
			for _, m := range copyright.FindAllSubmatch(text, 3) {
				holders = append(holders, strings.Join(strings.Fields(string(m[1])), " "))
			}
		}
	}
	return name, holders
}
