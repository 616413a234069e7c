//go:build !linux

package pgwire

import "net"

// newSocket returns c: only Linux's system calls are made in another way than package net's.
func newSocket(c net.Conn) net.Conn { return c }

// hungUp reports whether the client of a connection has closed it. That is not known here.
func hungUp(net.Conn) bool { return false }
