package bigtable

import (
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/percodb/percodb/internal/faultproxy"
	"github.com/percodb/percodb/internal/tsotest"
	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/kv/mvcc"
)

// newProxy returns a proxy before an emulator without tables.
func newProxy(t *testing.T) (*faultproxy.Proxy, Options) {
	t.Helper()
	emulator, err := StartEmulator("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	proxy, err := faultproxy.New(emulator.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		proxy.Close()
		emulator.Close()
	})
	return proxy, Options{Project: "p", Instance: "i", Emulator: proxy.Addr()}
}

// answering returns what answers a method with an error.
func answering(method string, code codes.Code) func(string, []byte) faultproxy.Fault {
	return func(called string, _ []byte) faultproxy.Fault {
		if called != method {
			return faultproxy.Fault{}
		}
		return faultproxy.Fault{Err: status.Error(code, "as the test says")}
	}
}

// Goal: an instance is prepared once, again without effect, and by processes that may not administer it; what is in the way is said with
// what to do. Method: a proxy that answers in the place of the emulator.
func TestSetup(t *testing.T) {
	proxy, opts := newProxy(t)
	must := func(err error, parts ...string) {
		t.Helper()
		for _, part := range parts {
			if err == nil || !strings.Contains(err.Error(), part) {
				t.Errorf("%v, want %q in it", err, part)
			}
		}
	}
	proxy.Inject(answering("CreateTable", codes.PermissionDenied))
	_, err := CreateTable(t.Context(), opts)
	must(err, "the table percodb does not exist, and may not be created", "percodb init", "roles/bigtable.admin")
	proxy.Inject(answering("CreateTable", codes.NotFound))
	_, err = CreateTable(t.Context(), opts)
	must(err, "gcloud bigtable instances list --project p")
	proxy.Inject(answering("CreateTable", codes.Unauthenticated))
	_, err = CreateTable(t.Context(), opts)
	must(err, "gcloud auth application-default login")
	proxy.Inject(answering("CreateTable", codes.ResourceExhausted))
	_, err = CreateTable(t.Context(), opts)
	must(err, "A quota of the project is used up")

	proxy.Inject(nil)
	setup, err := CreateTable(t.Context(), opts)
	if err != nil || !setup.Created || len(setup.Families) != len(families) {
		t.Fatalf("%+v, %v", setup, err)
	}
	for _, method := range []string{"", "CreateTable", "GetTable"} { // of an administrator, and of two that are none
		proxy.Inject(answering(method, codes.PermissionDenied))
		if setup, err = CreateTable(t.Context(), opts); err != nil || setup.Created || len(setup.Families) != 0 {
			t.Errorf("%s: %+v, %v", method, setup, err)
		}
	}
	proxy.Inject(answering("CheckAndMutateRow", codes.FailedPrecondition))
	_, err = CreateTable(t.Context(), opts)
	must(err, "refuses conditional requests", "--transactional-writes")
	proxy.Inject(answering("ReadRows", codes.PermissionDenied))
	_, err = CreateTable(t.Context(), opts)
	must(err, "roles/bigtable.user")
}

// Goal: a process waits for an emulator that is started at the same time, and says how to start one where there is none. Method: an address at which
// nobody listens at first.
func TestEmulatorIsAwaited(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := listener.Addr().String()
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	err = awaitEmulator(t.Context(), addr, 0)
	if err == nil || !strings.Contains(err.Error(), "percodb bigtable-emulator --listen "+addr) {
		t.Errorf("%v", err)
	}
	awaited := make(chan error, 1)
	go func() { awaited <- awaitEmulator(t.Context(), addr, time.Minute) }()
	emulator, err := StartEmulator(addr)
	if err != nil {
		t.Fatal(err)
	}
	defer emulator.Close()
	if err := <-awaited; err != nil {
		t.Error(err)
	}
}

// Goal: a process that is given the address of something else than an emulator says so, not nothing for half a minute. Method: a server that is silent,
// one of HTTP, and one that closes connections.
func TestEmulatorIsSomethingElse(t *testing.T) {
	for name, c := range map[string]struct {
		serve func(conn net.Conn)
		want  string
	}{
		"silent": {func(conn net.Conn) { _, _ = io.Copy(io.Discard, conn) }, "it does not answer within 50ms"},
		"HTTP": {func(conn net.Conn) {
			_, _ = io.WriteString(conn, "HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n")
			_, _ = io.Copy(io.Discard, conn)
		}, "it does not speak gRPC"},
		"closing": {func(net.Conn) {}, "it does not speak gRPC"},
	} {
		t.Run(name, func(t *testing.T) {
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer listener.Close()
			go func() {
				if conn, err := listener.Accept(); err == nil {
					c.serve(conn)
					conn.Close()
				}
			}()
			timeout := time.Minute
			if name == "silent" {
				timeout = 50 * time.Millisecond
			}
			err = awaitEmulator(t.Context(), listener.Addr().String(), timeout)
			setup, ok := err.(*SetupError)
			if !ok || !strings.Contains(setup.Error(), "is no emulator of Bigtable: "+c.want) {
				t.Errorf("%v", err)
			}
		})
	}
}

// Goal: an application profile by which percodb cannot commit is refused at the start, with the command that makes another. Method: answers of
// the administration, which the emulator lacks.
func TestApplicationProfile(t *testing.T) {
	proxy, opts := newProxy(t)
	single := func(transactional bool) *adminpb.AppProfile {
		return &adminpb.AppProfile{RoutingPolicy: &adminpb.AppProfile_SingleClusterRouting_{SingleClusterRouting: &adminpb.AppProfile_SingleClusterRouting{
			ClusterId: "c1", AllowTransactionalWrites: transactional}}}
	}
	for _, c := range []struct {
		profile *adminpb.AppProfile
		code    codes.Code
		want    string // in the error, or in Profile
		refused bool
	}{
		{profile: single(true), want: "the application profile default routes to the cluster c1"},
		{profile: single(false), want: "does not allow single-row transactions", refused: true},
		{profile: &adminpb.AppProfile{RoutingPolicy: &adminpb.AppProfile_MultiClusterRoutingUseAny_{}}, want: "routes to several clusters", refused: true},
		{code: codes.NotFound, want: "the instance i of the project p, or its application profile default, does not exist", refused: true},
		{code: codes.PermissionDenied},
		{code: codes.Unimplemented},
	} {
		proxy.Inject(func(method string, _ []byte) faultproxy.Fault {
			switch {
			case method != "GetAppProfile":
				return faultproxy.Fault{}
			case c.profile == nil:
				return faultproxy.Fault{Err: status.Error(c.code, "as the test says")}
			}
			answer, err := proto.Marshal(c.profile)
			if err != nil {
				t.Error(err)
			}
			return faultproxy.Fault{Answer: answer}
		})
		setup, err := CreateTable(t.Context(), opts)
		switch {
		case c.refused && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%v, want %q in it", err, c.want)
		case !c.refused && (err != nil || setup.Profile != c.want):
			t.Errorf("%+v, %v, want %q", setup, err, c.want)
		}
	}
}

// Goal: no row becomes larger than Bigtable stores, older versions included. Method: a limit of 25 MiB, versions of 9.
func TestRowSize(t *testing.T) {
	oracle := &tsotest.ClockOracle{}
	e := newEmulated(t, oracle)
	e.shard.rowBytes = 25 << 20
	key := []byte("k")
	descriptor := theRange()
	refs := []kv.RangeRef{descriptor.Ref()}
	prewrite := func() error {
		ts := mustNow(t, oracle)
		_, err := e.shard.Prewrite(t.Context(), &kv.PrewriteRequest{Ranges: refs, StartTS: ts, Primary: key, TxnSize: 1, TTLMillis: 3000,
			Mutations: []mvcc.Mutation{{Op: mvcc.OpPut, Key: key, Value: make([]byte, 9<<20)}}})
		if err != nil {
			return err
		}
		return e.shard.Commit(t.Context(), &kv.CommitRequest{Ranges: refs, StartTS: ts, CommitTS: mustNow(t, oracle), Keys: [][]byte{key}, Primary: true})
	}
	for range 2 {
		if err := prewrite(); err != nil {
			t.Fatal(err)
		}
	}
	err := prewrite()
	limit, ok := err.(*kv.SizeLimitError)
	if !ok || limit.Index || limit.Size != 27<<20 || limit.Limit != 25<<20 {
		t.Errorf("%v", err)
	}
}
