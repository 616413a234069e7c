package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// dumpEvery bounds how often the goroutines of the processes are written to files: many transactions are slow at once.
const dumpEvery = 5 * time.Second

// dump writes the goroutines of all processes to files beside their logs, and returns where they are; "" if that was done a short time ago.
func (d *deployment) dump(ctx context.Context) string {
	d.dumping.Lock()
	defer d.dumping.Unlock()
	now := time.Now()
	if now.Sub(d.dumped) < dumpEvery {
		return ""
	}
	d.dumped = now
	var files []string
	for _, p := range d.processes {
		file := filepath.Join(filepath.Dir(p.log), fmt.Sprintf("%s-goroutines-%s.txt", p.name, now.Format("150405.000")))
		if err := p.dump(ctx, file); err != nil {
			files = append(files, fmt.Sprintf("%s: %v", p.name, err))
			continue
		}
		files = append(files, file)
	}
	return "goroutines: " + strings.Join(files, ", ") + "\n"
}

// dump writes the goroutines of a process to a file.
func (p *member) dump(ctx context.Context, file string) error {
	p.mu.Lock()
	admin := p.mu.admin
	p.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, time.Second) // A paused process does not answer.
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+admin+"/debug/pprof/goroutine?debug=2", nil)
	if err != nil {
		return err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		return err
	}
	return os.WriteFile(file, text, 0o644)
}
