package main

import (
	"net"
	"sync"
	"time"
)

// proxy forwards connections to a process. Faults partition the clients of the proxy from the process.
type proxy struct {
	listener net.Listener
	target   string
	done     sync.WaitGroup

	mu struct {
		sync.Mutex
		cut    bool          // new connections are closed at once
		frozen chan struct{} // closed when forwarding continues; nil: it is not interrupted
		conns  map[net.Conn]struct{}
	}
}

func newProxy(target string) (*proxy, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &proxy{listener: l, target: target}
	p.mu.conns = map[net.Conn]struct{}{}
	p.done.Go(p.accept)
	return p, nil
}

func (p *proxy) addr() string { return p.listener.Addr().String() }

func (p *proxy) accept() {
	for {
		c, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.done.Go(func() { p.serve(c) })
	}
}

func (p *proxy) serve(client net.Conn) {
	defer client.Close()
	if !p.admit(client) {
		return
	}
	defer p.forget(client)
	server, err := net.DialTimeout("tcp", p.target, time.Second)
	if err != nil {
		return
	}
	defer server.Close()
	if !p.admit(server) {
		return
	}
	defer p.forget(server)
	var both sync.WaitGroup
	both.Go(func() { p.copy(server, client) })
	both.Go(func() { p.copy(client, server) })
	both.Wait()
}

func (p *proxy) admit(c net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mu.cut {
		return false
	}
	p.mu.conns[c] = struct{}{}
	return true
}

func (p *proxy) forget(c net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.mu.conns, c)
}

// copy forwards one direction, and ends both when it ends.
func (p *proxy) copy(to, from net.Conn) {
	defer to.Close()
	defer from.Close()
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		p.mu.Lock()
		frozen := p.mu.frozen
		p.mu.Unlock()
		if frozen != nil {
			<-frozen
		}
		if n > 0 {
			if _, err := to.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// cut closes all connections and refuses new ones until heal.
func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mu.cut = true
	for c := range p.mu.conns {
		c.Close()
	}
}

// freeze delays what is sent in either direction until heal; connections stay open.
func (p *proxy) freeze() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mu.frozen == nil {
		p.mu.frozen = make(chan struct{})
	}
}

// heal forwards again, delayed bytes first.
func (p *proxy) heal() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mu.cut = false
	if p.mu.frozen != nil {
		close(p.mu.frozen)
		p.mu.frozen = nil
	}
}

func (p *proxy) close() {
	p.listener.Close()
	p.cut()
	p.mu.Lock()
	if p.mu.frozen != nil {
		close(p.mu.frozen)
		p.mu.frozen = nil
	}
	p.mu.Unlock()
	p.done.Wait()
}
