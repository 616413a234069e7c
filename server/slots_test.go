package server

import (
	"testing"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/session"
	"github.com/percodb/percodb/sql/pgerror"
)

// Goal: the last slots are for superusers, who are not bound by their role's limit; others are.
func TestSlots(t *testing.T) {
	s := &Server{opts: Options{MaxConnections: 4, ReservedConnections: 1}}
	s.mu.sessions = map[session.CancelKey]*client{}
	limited, free, super := &catalog.Role{Name: "l"}, &catalog.Role{Name: "f", ConnectionLimit: -1}, &catalog.Role{Name: "s", Superuser: true}
	for i, c := range []struct {
		role *catalog.Role
		want string
	}{
		{limited, `too many connections for role "l"`}, {free, ""}, {free, ""}, {super, ""},
		{free, "remaining connection slots are reserved for non-replication superuser connections"}, {super, ""}, {super, "sorry, too many clients already"},
	} {
		got := ""
		if err := s.takeSlot(c.role, 0, "", -1); err != nil {
			got = err.(*pgerror.Error).Message
		}
		if got != c.want {
			t.Errorf("%d: %q, want %q", i, got, c.want)
		}
	}
}
