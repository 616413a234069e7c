package wire_test

import (
	"context"
	"net"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/percodb/percodb/node"
)

// Goal: the functions about the two ends of the connection say what they are, and NULL on a Unix socket.
func TestConnectionAddresses(t *testing.T) {
	opts := options(t.TempDir())
	opts.SocketDir = t.TempDir()
	n, err := node.Start(context.Background(), opts)
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close(context.Background())
	const query = "select inet_client_addr()::text, inet_client_port(), inet_server_addr()::text, inet_server_port()"
	ask := func(url string) (client, server *string, clientPort, serverPort *int, local net.Addr) {
		conn, err := pgx.Connect(testContext(t), url)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close(context.Background())
		if err := conn.QueryRow(testContext(t), query).Scan(&client, &clientPort, &server, &serverPort); err != nil {
			t.Fatal(err)
		}
		return client, server, clientPort, serverPort, conn.PgConn().Conn().LocalAddr()
	}
	client, server, clientPort, serverPort, local := ask("postgres://postgres@" + n.Addr().String() + "/percodb?sslmode=disable")
	if client == nil || server == nil || clientPort == nil || serverPort == nil {
		t.Fatal("NULL over TCP")
	}
	if *client != "127.0.0.1/32" || *server != "127.0.0.1/32" || *clientPort != local.(*net.TCPAddr).Port || *serverPort != n.Addr().(*net.TCPAddr).Port {
		t.Errorf("client %s %d, server %s %d; connected from %s to %s", *client, *clientPort, *server, *serverPort, local, n.Addr())
	}
	port := strconv.Itoa(n.Addr().(*net.TCPAddr).Port)
	if matches, _ := filepath.Glob(opts.SocketDir + "/*"); len(matches) == 0 {
		t.Fatal("there is no socket")
	}
	client, server, clientPort, serverPort, _ = ask("postgres:///percodb?user=postgres&host=" + opts.SocketDir + "&port=" + port)
	if client != nil || server != nil || clientPort != nil || serverPort != nil {
		t.Error("addresses on a Unix socket")
	}
}
