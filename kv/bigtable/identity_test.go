package bigtable

import (
	"context"
	"encoding/binary"
	"errors"
	"strings"
	"testing"

	"cloud.google.com/go/bigtable"

	"github.com/percodb/percodb/kv/bigtable/widerow"
)

// Goal: a process ends when its table was deleted and made anew; a table that was prepared before there were identities gets one; another format is
// refused. Method: a candidate beside a table that is replaced, and cells as other releases would have written them.
func TestIdentityOfTheTable(t *testing.T) {
	server, err := StartEmulator("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	opts := Options{Project: "p", Instance: "i", Emulator: server.Addr()}
	setup := new(*SetupError)
	if _, err := Open(t.Context(), opts); !errors.As(err, setup) {
		t.Errorf("opened a table that is not there: %v", err)
	}
	open := func() *Client {
		t.Helper()
		if _, err := CreateTable(t.Context(), opts); err != nil {
			t.Fatal(err)
		}
		c, err := Open(t.Context(), opts)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		return c
	}
	first := open()
	if again := open(); again.identity == "" || again.identity != first.identity {
		t.Fatalf("%q, then %q", first.identity, again.identity)
	}
	mustLead(t, first, Candidate{Addr: "a"})
	admin, err := bigtable.NewAdminClient(t.Context(), opts.Project, opts.Instance, EmulatorOptions(server.Addr())...)
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close()
	if err := admin.DeleteTable(t.Context(), first.opts.Table); err != nil {
		t.Fatal(err)
	}
	if _, err := first.AcquireLease(t.Context(), Candidate{Addr: "b"}); err == nil || !strings.Contains(err.Error(), "start percodb again") {
		t.Errorf("%v", err)
	}
	second := open()
	changed := new(*TableChangedError)
	if _, err := first.AcquireLease(t.Context(), Candidate{Addr: "b"}); !errors.As(err, changed) {
		t.Errorf("%v", err)
	}

	write := func(change *widerow.Mutation) {
		t.Helper()
		if err := second.bulk(context.Background(), []string{metaRow(coordinatorRow)}, []*widerow.Mutation{change}); err != nil {
			t.Fatal(err)
		}
	}
	none := widerow.NewMutation()
	none.DeleteCellsInColumn(familyMeta, columnTable)
	write(none)
	if third := open(); third.identity == "" || third.identity == second.identity {
		t.Errorf("a table without an identity got %q", third.identity)
	}
	other := widerow.NewMutation()
	other.Set(familyMeta, columnTable, binary.BigEndian.AppendUint32(nil, tableFormat+1))
	write(other)
	if _, err := Open(t.Context(), opts); !errors.As(err, setup) || !strings.Contains(err.Error(), "has the format 2") {
		t.Errorf("%v", err)
	}
}
