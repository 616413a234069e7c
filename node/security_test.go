package node

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/percodb/percodb/internal/certs"
	"github.com/percodb/percodb/internal/tlsfiles"
	tsorpc "github.com/percodb/percodb/tso/rpc"
)

// trial writes certificates of a new authority and returns their directory.
func trial(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := certs.WriteTrial(dir, certs.Trial{Hosts: certs.Loopback, Users: []string{"alice"}}); err != nil {
		t.Fatal(err)
	}
	return dir
}

// startSecured starts a cluster whose processes have the certificates in dir, with a table t of one row, 7.
func startSecured(t *testing.T, dir string) (oracle, store, front *Node) {
	oracle = start(t, Options{Role: RoleTSO, Data: t.TempDir(), RPCListen: "127.0.0.1:0", ClusterTLS: certs.ProcessFiles(dir, certs.TSO)})
	join := oracle.RPCAddr().String()
	store = start(t, Options{Role: RoleKV, Data: t.TempDir(), RPCListen: "127.0.0.1:0", Join: join, ClusterTLS: certs.ProcessFiles(dir, certs.KV)})
	front = start(t, Options{Role: RoleSQL, Listen: "127.0.0.1:0", Join: join, SchemaLease: time.Second, ClusterTLS: certs.ProcessFiles(dir, certs.SQL)})
	query(t, front, "create table t (id int primary key)")
	query(t, front, "insert into t values (7)")
	return oracle, store, front
}

// clientCredentials are those of whoever has the files and verifies no server; without files, no certificate is shown.
func clientCredentials(t *testing.T, files tlsfiles.Files) credentials.TransportCredentials {
	t.Helper()
	config := &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}}
	if files.Cert != "" {
		cert, err := tls.LoadX509KeyPair(files.Cert, files.Key)
		if err != nil {
			t.Fatal(err)
		}
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &cert, nil }
	}
	return credentials.NewTLS(config)
}

// try calls a method with an empty request by a new connection, and returns what was received.
func try(t *testing.T, n *Node, security credentials.TransportCredentials, method string, info grpc.MethodInfo) (received int, err error) {
	t.Helper()
	conn, err := grpc.NewClient("passthrough:///"+n.RPCAddr().String(), grpc.WithTransportCredentials(security))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var reply emptypb.Empty // decodes anything
	if !info.IsClientStream && !info.IsServerStream {
		err = conn.Invoke(ctx, method, &emptypb.Empty{}, &reply)
		return len(reply.ProtoReflect().GetUnknown()), err
	}
	stream, err := conn.NewStream(ctx, &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, method)
	if err == nil {
		_ = stream.SendMsg(&emptypb.Empty{}) // RecvMsg returns the error.
		err = stream.RecvMsg(&reply)
	}
	return len(reply.ProtoReflect().GetUnknown()), err
}

// Goal: whoever has no certificate of the cluster, or one whose role may not, calls no RPC of any service. Method: try each
// method of each service that gRPC lists, as each of them.
func TestStrangersCallNothing(t *testing.T) {
	dir, other := trial(t), trial(t)
	oracle, store, front := startSecured(t, dir)
	strangers := map[string]credentials.TransportCredentials{
		"without TLS":                 insecure.NewCredentials(),
		"without a certificate":       clientCredentials(t, tlsfiles.Files{}),
		"a client of the database":    clientCredentials(t, certs.ClientFiles(dir, "alice")),
		"the server of clients":       clientCredentials(t, certs.ServerFiles(dir)),
		"another cluster's SQL":       clientCredentials(t, certs.ProcessFiles(other, certs.SQL)),
		"another cluster's tso":       clientCredentials(t, certs.ProcessFiles(other, certs.TSO)),
		"another cluster's operator":  clientCredentials(t, certs.ProcessFiles(other, certs.Operator)),
		"another cluster's authority": clientCredentials(t, tlsfiles.Files{Cert: other + "/ca.crt", Key: other + "/ca.key"}),
	}
	roles := []certs.Role{certs.TSO, certs.KV, certs.SQL, certs.Operator}
	var names []string
	for _, n := range []*Node{oracle, store} {
		methods := 0
		for service, list := range n.rpc.GetServiceInfo() {
			names = append(names, "/"+service)
			for _, info := range list.Methods {
				method := "/" + service + "/" + info.Name
				names, methods = append(names, method), methods+1
				for who, security := range strangers {
					if received, err := try(t, n, security, method, info); status.Code(err) != codes.Unavailable || received != 0 {
						t.Errorf("%s, %s: %d bytes, %v", who, method, received, err)
					}
				}
				called := false
				for _, role := range roles {
					if tsorpc.MayCall(role, method) {
						called = true
						continue
					}
					security := clientCredentials(t, certs.ProcessFiles(dir, role))
					if received, err := try(t, n, security, method, info); status.Code(err) != codes.PermissionDenied || received != 0 {
						t.Errorf("%s, %s: %d bytes, %v", role, method, received, err)
					}
				}
				if !called {
					t.Errorf("no role may call %s: its service needs a rule", method)
				}
			}
		}
		if methods < 20 {
			t.Errorf("%s: only %d methods", n.opts.Role, methods)
		}
	}
	for _, rule := range tsorpc.Rules() {
		if !slices.Contains(names, rule) {
			t.Errorf("no process serves %s, for which there is a rule", rule)
		}
	}
	if got := query(t, front, "select id from t"); got != "7" {
		t.Errorf("afterwards: %q", got)
	}
}

// Goal: what only some roles may do is refused to the others that serve the same service.
func TestRolesOfMethods(t *testing.T) {
	for method, want := range map[string][]certs.Role{
		"/percodb.kv.v1.Directory/ForgetShard":       {certs.Operator},
		"/percodb.kv.v1.Directory/RegisterShard":     {certs.KV},
		"/percodb.kv.v1.Directory/Lookup":            {certs.KV, certs.SQL},
		"/percodb.kv.v1.RangeOwner/ReleaseSpan":      {certs.TSO},
		"/percodb.kv.v1.Collector/CollectGarbage":    {certs.TSO},
		"/percodb.kv.v1.Shard/Scan":                  {certs.TSO, certs.SQL},
		"/percodb.gc.v1.GarbageCollection/SetLife":   {certs.SQL},
		"/percodb.notify.v1.Notifications/Connect":   {certs.SQL},
		"/grpc.reflection.v1.ServerReflection/Other": nil,
	} {
		for _, role := range []certs.Role{certs.TSO, certs.KV, certs.SQL, certs.Operator} {
			if got := tsorpc.MayCall(role, method); got != slices.Contains(want, role) {
				t.Errorf("%s, %s: %v", role, method, got)
			}
		}
	}
}

// Goal: a process without the cluster's certificates does not join, and its error says what is missing; an operator's
// certificate is needed to forget a store.
func TestJoinWithoutCertificates(t *testing.T) {
	dir := trial(t)
	oracle, _, _ := startSecured(t, dir)
	join := oracle.RPCAddr().String()
	ctx, cancel := context.WithCancel(t.Context())
	failed := make(chan error, 1)
	go func() {
		n, err := Start(ctx, Options{Role: RoleSQL, Listen: "127.0.0.1:0", Join: join})
		if err == nil {
			n.Close(context.Background())
		}
		failed <- err
	}()
	// A SQL process with the certificate of a store fails at once: the other has had time to try by then.
	if _, err := Start(ctx, Options{Role: RoleSQL, Listen: "127.0.0.1:0", Join: join, ClusterTLS: certs.ProcessFiles(dir, certs.KV)}); err == nil || !strings.Contains(err.Error(), "percodb:kv, not percodb:sql") {
		t.Errorf("a store's certificate: %v", err)
	}
	for _, c := range []struct {
		files tlsfiles.Files
		want  string
	}{
		{certs.ProcessFiles(dir, certs.Operator), "has no store"},
		{certs.ProcessFiles(dir, certs.SQL), "percodb:sql, not percodb:operator"},
		{certs.ClientFiles(dir, "alice"), "of no process of a cluster"},
	} {
		if _, err := ForgetStore(ctx, join, "kv-0", c.files, true); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v", c.files, err)
		}
	}
	cancel()
	if err := <-failed; err == nil || !strings.Contains(err.Error(), "--cluster-tls-cert") {
		t.Errorf("without certificates: %v", err)
	}
}

// Goal: certificates are replaced while a cluster runs: connections that begin later have them.
func TestReload(t *testing.T) {
	dir := trial(t)
	oracle, store, front := startSecured(t, dir)
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if err := os.Remove(dir + "/" + e.Name()); err != nil {
			t.Fatal(err)
		}
	}
	for _, n := range []*Node{oracle, store, front} {
		n.Reload() // the files are missing: nothing changes
	}
	if err := certs.WriteTrial(dir, certs.Trial{Hosts: certs.Loopback}); err != nil {
		t.Fatal(err)
	}
	for _, n := range []*Node{oracle, store, front} {
		n.Reload()
	}
	text, err := os.ReadFile(certs.ProcessFiles(dir, certs.SQL).CA)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(text)
	for _, n := range []*Node{oracle, store} {
		conn, err := tls.Dial("tcp", n.RPCAddr().String(), &tls.Config{RootCAs: pool, NextProtos: []string{"h2"}})
		if err != nil {
			t.Errorf("%s shows another certificate: %v", n.opts.Role, err)
			continue
		}
		conn.Close()
	}
	late := start(t, Options{Role: RoleSQL, Listen: "127.0.0.1:0", Join: oracle.RPCAddr().String(), ClusterTLS: certs.ProcessFiles(dir, certs.SQL)})
	for _, n := range []*Node{front, late} {
		if got := query(t, n, "select id from t"); got != "7" {
			t.Errorf("read %q", got)
		}
	}
}
