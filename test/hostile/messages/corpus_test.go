package messages

import (
	"crypto/tls"
	"encoding/binary"
	"io"
	"net"
	"testing"

	"github.com/jackc/pgx/v5/pgproto3"
)

// corpus are the messages that are mutated, by the phase of the connection that they belong to.
type corpus struct {
	startup, hello, session []message
}

func newCorpus(t *testing.T) *corpus {
	t.Helper()
	return &corpus{startup: startupMessages(t), hello: []message{clientHello(t)}, session: sessionMessages(t)}
}

func encode(t *testing.T, m pgproto3.FrontendMessage) message {
	t.Helper()
	b, err := m.Encode(nil)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// startupOf is the message by which a user introduces itself. Its statements end soon.
func startupOf(t *testing.T, user string) message {
	t.Helper()
	return encode(t, &pgproto3.StartupMessage{ProtocolVersion: pgproto3.ProtocolVersion30, Parameters: map[string]string{
		"user": user, "database": "percodb", "application_name": "hostile", "options": "-c statement_timeout=5s", "client_encoding": "UTF8",
	}})
}

func startupMessages(t *testing.T) []message {
	return []message{
		startupOf(t, trusted), startupOf(t, certified), startupOf(t, guarded), startupOf(t, "nobody"),
		encode(t, &pgproto3.SASLInitialResponse{AuthMechanism: "SCRAM-SHA-256", Data: []byte("n,,n=,r=abcdefghijkl")}),
		encode(t, &pgproto3.SASLResponse{Data: []byte("c=biws,r=abcdefghijkl,p=AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=")}),
		encode(t, &pgproto3.SSLRequest{}), encode(t, &pgproto3.GSSEncRequest{}),
		encode(t, &pgproto3.CancelRequest{ProcessID: 1, SecretKey: []byte{1, 2, 3, 4}}),
		encode(t, &pgproto3.StartupMessage{ProtocolVersion: pgproto3.ProtocolVersion30 + 2, Parameters: map[string]string{"user": trusted, "_pq_.x": "1"}}),
	}
}

// clientHello is the first flight of a TLS client.
func clientHello(t *testing.T) message {
	t.Helper()
	client, server := net.Pipe()
	defer server.Close()
	go func() {
		_ = tls.Client(client, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"postgresql"}}).Handshake() // ends when the other side closes
		client.Close()
	}()
	var header [5]byte
	if _, err := io.ReadFull(server, header[:]); err != nil {
		t.Fatal(err)
	}
	body := make([]byte, binary.BigEndian.Uint16(header[3:]))
	if _, err := io.ReadFull(server, body); err != nil {
		t.Fatal(err)
	}
	return append(header[:], body...)
}

func sessionMessages(t *testing.T) []message {
	var all []message
	for _, m := range []pgproto3.FrontendMessage{
		&pgproto3.Query{String: "select id, name from item where id = 3"},
		&pgproto3.Query{String: "begin; insert into item values (9, 'nine') on conflict do nothing; rollback"},
		&pgproto3.Query{String: "copy item from stdin"},
		&pgproto3.CopyData{Data: []byte("10\tten\n")}, &pgproto3.CopyDone{}, &pgproto3.CopyFail{Message: "no"},
		&pgproto3.Parse{Name: "s", Query: "select name || $2 from item where id = $1", ParameterOIDs: []uint32{23, 25}},
		&pgproto3.Describe{ObjectType: 'S', Name: "s"},
		&pgproto3.Bind{DestinationPortal: "p", PreparedStatement: "s", ParameterFormatCodes: []int16{1, 0}, Parameters: [][]byte{{0, 0, 0, 1}, []byte("x")}, ResultFormatCodes: []int16{1}},
		&pgproto3.Describe{ObjectType: 'P', Name: "p"}, &pgproto3.Execute{Portal: "p", MaxRows: 1},
		&pgproto3.Close{ObjectType: 'P', Name: "p"}, &pgproto3.Close{ObjectType: 'S', Name: "s"},
		&pgproto3.Flush{}, &pgproto3.Sync{}, &pgproto3.Sync{},
		&pgproto3.FunctionCall{Function: 1, ArgFormatCodes: []uint16{0}, Arguments: [][]byte{[]byte("1")}},
		&pgproto3.Terminate{},
	} {
		all = append(all, encode(t, m))
	}
	return all
}
