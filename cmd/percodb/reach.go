package main

import (
	"errors"
	"fmt"
	"net"
	"strconv"

	"github.com/spf13/pflag"

	"github.com/percodb/percodb/internal/tlsfiles"
	"github.com/percodb/percodb/node"
)

// clusterTLSFlags adds the flags of the certificate that belongs to owner.
func clusterTLSFlags(flags *pflag.FlagSet, files *tlsfiles.Files, owner string) {
	flags.StringVar(&files.Cert, "cluster-tls-cert", "", "PEM file: the certificate of the cluster that belongs to "+owner)
	flags.StringVar(&files.Key, "cluster-tls-key", "", "PEM file: the private key of --cluster-tls-cert, which only its owner can read")
	flags.StringVar(&files.CA, "cluster-tls-ca", "", "PEM file: the authority that issued the certificates of the cluster's processes")
}

// checkClusterTLS requires all of the files, or none.
func checkClusterTLS(files tlsfiles.Files) error {
	if files != (tlsfiles.Files{}) && (files.Cert == "" || files.Key == "" || files.CA == "") {
		return errors.New("--cluster-tls-cert, --cluster-tls-key and --cluster-tls-ca are given together: TLS between processes is mutual")
	}
	return nil
}

// checkReach refuses addresses that other machines reach, of processes without certificates. That of clients is not among them: the
// rules decide which of them are let in.
func (f *startFlags) checkReach(opts *node.Options) error {
	if err := checkClusterTLS(opts.ClusterTLS); err != nil {
		return err
	}
	type address struct{ flag, addr string }
	if opts.Bigtable != nil && opts.RPCAdvertise == "" && isUnspecified(opts.RPCListen) {
		return fmt.Errorf("--rpc-listen %s is no address that other processes reach this one by: give --rpc-advertise HOST:PORT", opts.RPCListen)
	}
	if err := checkAdvertised(opts.RPCAdvertise); err != nil {
		return err
	}
	if (opts.Role != node.RoleAll || opts.Bigtable != nil) && opts.ClusterTLS == (tlsfiles.Files{}) {
		for _, a := range []address{{"--rpc-listen", opts.RPCListen}, {"--rpc-advertise", opts.RPCAdvertise}, {"--join", opts.Join}} {
			if a.addr != "" && !isLoopback(a.addr) {
				return fmt.Errorf("%s %s is beyond this machine, and without certificates whoever reaches a process of the cluster can read and change everything: "+
					"make them by percodb cert, and give --cluster-tls-cert, --cluster-tls-key and --cluster-tls-ca", a.flag, a.addr)
			}
		}
	}
	if opts.AdminTLS && opts.ClusterTLS == (tlsfiles.Files{}) && f.tlsCert == "" {
		return fmt.Errorf("--admin-listen %s can be reached from other machines, and without a certificate it cannot keep them out: "+
			"give --tls-cert and --tls-key (or those of a cluster), or listen on 127.0.0.1", opts.AdminListen)
	}
	return nil
}

// checkAdvertised refuses what other processes could not connect with.
func checkAdvertised(addr string) error {
	if addr == "" {
		return nil
	}
	host, port, err := net.SplitHostPort(addr)
	if n, portErr := strconv.ParseUint(port, 10, 16); err != nil || portErr != nil || n == 0 || host == "" || isUnspecified(addr) {
		return fmt.Errorf("--rpc-advertise %s is no address that other processes reach this one by: use HOST:PORT", addr)
	}
	return nil
}

// isUnspecified reports whether HOST:PORT stands for all addresses of this machine.
func isUnspecified(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	ip := net.ParseIP(host)
	return err == nil && (host == "" || ip != nil && ip.IsUnspecified())
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
