package main

import (
	"strings"
	"testing"

	"github.com/percodb/percodb/internal/certs"
	"github.com/percodb/percodb/internal/tlsfiles"
)

// Goal: beyond its machine a process starts with certificates or, for clients, a password only, unless rules or --insecure say otherwise.
func TestStartRefusesAddressesThatOthersReach(t *testing.T) {
	const needsPassword = "a password"
	defaults := startFlags{role: "all", listen: "127.0.0.1:5433", logLevel: "warn", memory: 1 << 30, maxConnections: 10}
	files := tlsfiles.Files{Cert: "tso.crt", Key: "tso.key", CA: "ca.crt"}
	table := engineFlags{engine: engineBigtable, project: "p", instance: "i"}
	dir := t.TempDir()
	if err := certs.WriteTrial(dir, certs.Trial{Hosts: certs.Loopback}); err != nil {
		t.Fatal(err)
	}
	server := certs.ServerFiles(dir)
	for _, c := range []struct {
		name string
		set  func(f *startFlags)
		want string // in the error; "" for none, needsPassword if the server starts with a password only
	}{
		{"default", func(*startFlags) {}, ""},
		{"IPv6 loopback", func(f *startFlags) { f.listen = "[::1]:5433" }, ""},
		{"another loopback address", func(f *startFlags) { f.listen = "127.8.0.1:5433" }, ""},
		{"localhost", func(f *startFlags) { f.listen = "localhost:5433" }, ""},
		{"all addresses", func(f *startFlags) { f.listen = ":5433" }, needsPassword},
		{"all IPv4 addresses", func(f *startFlags) { f.listen = "0.0.0.0:5433" }, needsPassword},
		{"all IPv6 addresses", func(f *startFlags) { f.listen = "[::]:5433" }, needsPassword},
		{"a private address", func(f *startFlags) { f.listen = "10.1.2.3:5433" }, needsPassword},
		{"rules", func(f *startFlags) { f.listen, f.hba = "0.0.0.0:5433", "hba.conf" }, ""},
		{"rules that are not in force", func(f *startFlags) { f.insecure, f.hba = true, "hba.conf" }, "give one of them"},
		{"a certificate for clients without a key", func(f *startFlags) { f.tlsCert = "server.crt" }, "give both"},
		{"authorities without a certificate", func(f *startFlags) { f.tlsCA = "ca.crt" }, "--tls-ca has no effect"},
		{"accepted", func(f *startFlags) { f.listen, f.insecure = "0.0.0.0:5433", true }, ""},
		{"admin", func(f *startFlags) { f.adminListen = "0.0.0.0:8080" }, "--admin-listen 0.0.0.0:8080 can be reached"},
		{"admin, accepted", func(f *startFlags) { f.adminListen, f.insecure = "0.0.0.0:8080", true }, "give --tls-cert and --tls-key"},
		{"admin with a certificate", func(f *startFlags) { f.adminListen, f.tlsCert, f.tlsKey = "0.0.0.0:8080", server.Cert, server.Key }, ""},
		{"admin with certificates", func(f *startFlags) { f.role, f.adminListen, f.clusterTLS = "tso", "0.0.0.0:8080", files }, ""},
		{"oracle", func(f *startFlags) { f.role, f.rpcListen = "tso", "10.1.2.3:7000" }, "--rpc-listen 10.1.2.3:7000 is beyond this machine"},
		{"oracle, accepted", func(f *startFlags) { f.role, f.rpcListen, f.insecure = "tso", "10.1.2.3:7000", true }, "percodb cert"},
		{"oracle with certificates", func(f *startFlags) { f.role, f.rpcListen, f.clusterTLS = "tso", "10.1.2.3:7000", files }, ""},
		{"oracle's clients' address is not used", func(f *startFlags) { f.role, f.listen = "tso", "0.0.0.0:5433" }, ""},
		{"store", func(f *startFlags) { f.role, f.join, f.rpcListen = "kv", "127.0.0.1:7000", ":7001" }, "--rpc-listen :7001 is beyond this machine"},
		{"store that joins", func(f *startFlags) { f.role, f.join = "kv", "10.1.2.3:7000" }, "--join 10.1.2.3:7000 is beyond this machine"},
		{"store by another address", func(f *startFlags) { f.role, f.join, f.rpcAdvertise = "kv", "127.0.0.1:7000", "10.1.2.3:7001" }, "--rpc-advertise 10.1.2.3:7001 is beyond"},
		{"sql that joins", func(f *startFlags) { f.role, f.join = "sql", "10.1.2.3:7000" }, "--cluster-tls-cert"},
		{"sql", func(f *startFlags) { f.role, f.join, f.listen, f.clusterTLS = "sql", "10.1.2.3:7000", ":5433", files }, needsPassword},
		{"a table", func(f *startFlags) { f.engine = table }, ""},
		{"a table from other machines", func(f *startFlags) { f.engine, f.rpcListen = table, "10.1.2.3:7000" }, "--rpc-listen 10.1.2.3:7000 is beyond this machine"},
		{"a table from other machines, by another address", func(f *startFlags) { f.engine, f.rpcListen, f.rpcAdvertise = table, "127.0.0.1:7000", "10.1.2.3:7000" }, "--rpc-advertise 10.1.2.3:7000 is beyond"},
		{"a table with certificates", func(f *startFlags) { f.engine, f.rpcListen, f.clusterTLS = table, "10.1.2.3:7000", files }, ""},
		{"a table on all addresses", func(f *startFlags) { f.engine, f.rpcListen, f.clusterTLS = table, "0.0.0.0:7000", files }, "give --rpc-advertise"},
		{"a table on all addresses with a name", func(f *startFlags) {
			f.engine, f.rpcListen, f.rpcAdvertise, f.clusterTLS = table, ":7000", "10.1.2.3:7000", files
		}, ""},
		{"a table by no address", func(f *startFlags) { f.engine, f.rpcAdvertise = table, "nonsense" }, "--rpc-advertise nonsense is no address"},
		{"a table by an address without a host", func(f *startFlags) { f.engine, f.rpcAdvertise = table, ":7000" }, "is no address"},
		{"a table by an address with port 0", func(f *startFlags) { f.engine, f.rpcAdvertise = table, "127.0.0.1:0" }, "is no address"},
		{"a store by all addresses", func(f *startFlags) {
			f.role, f.join, f.rpcAdvertise, f.clusterTLS = "kv", "127.0.0.1:7000", "0.0.0.0:7001", files
		}, "is no address"},
		{"a certificate without a key", func(f *startFlags) { f.role, f.clusterTLS.Cert = "tso", "a.crt" }, "are given together"},
	} {
		f := defaults
		c.set(&f)
		opts, err := f.options()
		if err == nil && opts.NeedPassword != (c.want == needsPassword) {
			t.Errorf("%s: a password is needed: %v", c.name, opts.NeedPassword)
		}
		if c.want == needsPassword {
			c.want = ""
		}
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}

func TestConnectionFlags(t *testing.T) {
	for _, c := range []struct {
		most, reserved int
		ok             bool
	}{{10, 3, true}, {1, 0, true}, {0, 0, false}, {3, 3, false}, {3, -1, false}} {
		f := startFlags{role: "all", listen: "127.0.0.1:5433", logLevel: "warn", memory: 1 << 30, maxConnections: c.most, reservedConnections: c.reserved}
		opts, err := f.options()
		if (err == nil) != c.ok {
			t.Errorf("%d, %d: %v", c.most, c.reserved, err)
		}
		if c.ok && (opts.MaxConnections != c.most || opts.ReservedConnections != c.reserved) {
			t.Errorf("%d, %d: got %d, %d", c.most, c.reserved, opts.MaxConnections, opts.ReservedConnections)
		}
	}
}
