package main

import (
	"fmt"
	"net"

	"github.com/percodb/percodb/node"
)

// checkReach refuses addresses that other machines reach, unless --insecure was given.
func (f *startFlags) checkReach(opts *node.Options) error {
	if f.insecure {
		return nil
	}
	type address struct{ flag, addr string }
	addrs := []address{{"--admin-listen", opts.AdminListen}}
	if opts.Role == node.RoleAll || opts.Role == node.RoleSQL {
		addrs = append(addrs, address{"--listen", opts.Listen})
	}
	if opts.Role == node.RoleTSO || opts.Role == node.RoleKV {
		addrs = append(addrs, address{"--rpc-listen", opts.RPCListen})
	}
	for _, a := range addrs {
		if a.addr != "" && !isLoopback(a.addr) {
			return fmt.Errorf("%s %s can be reached from other machines, and percodb has no authentication and no encryption yet: "+
				"whoever reaches it can read and change everything; listen on 127.0.0.1, or give --insecure if the network keeps others out", a.flag, a.addr)
		}
	}
	return nil
}

// isLoopback reports whether HOST:PORT is reachable only from this machine. A name counts if all of its addresses do; an
// invalid address is left to Listen, which reports the error.
func isLoopback(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return true
	}
	if ip := net.ParseIP(host); ip != nil {
		return ip.IsLoopback()
	}
	if host == "" { // Every address of the machine.
		return false
	}
	ips, err := net.LookupIP(host)
	if err != nil {
		return true
	}
	for _, ip := range ips {
		if !ip.IsLoopback() {
			return false
		}
	}
	return true
}
