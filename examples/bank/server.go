package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// server is a percodb process of ours.
type server struct {
	binary string
	dir    string
	addr   string

	mu  sync.Mutex
	cmd *exec.Cmd // running, or nil
}

// startServer starts percodb with an empty data directory on a free port.
func startServer(binary string) (*server, error) {
	dir, err := os.MkdirTemp("", "percodb-bank-")
	if err != nil {
		return nil, err
	}
	s := &server{binary: binary, dir: dir}
	if s.addr, err = freeAddr(); err == nil {
		err = s.start()
	}
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return s, nil
}

// freeAddr returns a loopback address that nobody listens on.
func freeAddr() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

func (s *server) url() string { return "postgres://percodb@" + s.addr + "/percodb" }

// start returns when the server says that it is ready.
func (s *server) start() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	cmd := exec.Command(s.binary, "start", "--listen", s.addr, "--data", filepath.Join(s.dir, "data"))
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	lines := bufio.NewReader(out)
	for {
		line, err := lines.ReadString('\n')
		if strings.Contains(line, "psql") {
			break
		}
		if err != nil {
			return errors.Join(fmt.Errorf("%s did not start", s.binary), cmd.Wait())
		}
	}
	go io.Copy(io.Discard, lines)
	s.cmd = cmd
	return nil
}

// kill ends the server without warning.
func (s *server) kill() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cmd == nil {
		return nil
	}
	err := s.cmd.Process.Kill()
	_ = s.cmd.Wait() // it was killed, and says so
	s.cmd = nil
	return err
}

// killEvery kills and restarts the server until the function it returns is called.
func (s *server) killEvery(pause time.Duration) (stop func()) {
	ended := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case <-ended:
				return
			case <-time.After(pause):
			}
			if err := s.kill(); err != nil {
				fmt.Fprintln(os.Stderr, "kill:", err)
			}
			begin := time.Now()
			if err := s.start(); err != nil {
				fmt.Fprintln(os.Stderr, "restart:", err)
				return
			}
			fmt.Printf("server killed; it was back after %v\n", time.Since(begin).Round(time.Millisecond))
		}
	})
	return func() {
		close(ended)
		wg.Wait()
	}
}

// remove ends the server and removes its data.
func (s *server) remove() {
	if err := errors.Join(s.kill(), os.RemoveAll(s.dir)); err != nil {
		fmt.Fprintln(os.Stderr, "bank:", err)
	}
}
