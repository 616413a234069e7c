package session

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/percodb/percodb/gc"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/pgerror"
)

// What SHOW says about garbage collection. None is a session's own, so SET cannot change them.
const (
	settingSafePoint = "percodb.safe_point"
	settingOldest    = "percodb.oldest_transaction"
	settingGCLife    = "percodb.gc_life"
	settingGCStage   = "percodb.gc_stage"
)

func gcSettings() []*settingDef {
	return []*settingDef{
		{name: settingSafePoint, fixed: true, note: "Shows the time up to which history may be gone."},
		{name: settingOldest, fixed: true, note: "Shows a time at or before the begin of the oldest transaction of all processes."},
		{name: settingGCLife, fixed: true, note: "Shows how long history is kept; ALTER SYSTEM changes it."},
		{name: settingGCStage, fixed: true, note: "Shows what garbage collection is at, and why its last round stopped early, if it did."},
	}
}

// gcStatus returns what this process has last heard of garbage collection.
func (s *Session) gcStatus() gc.Status {
	if s.deps.GC == nil {
		return gc.Status{}
	}
	return s.deps.GC.Status()
}

// gcSetting returns the value of such a setting, as of now if the controller answers.
func (s *Session) gcSetting(name string) (value string, ok bool) {
	switch name {
	case settingSafePoint, settingOldest, settingGCLife, settingGCStage:
	default:
		return "", false
	}
	if s.deps.GC == nil {
		return "", true
	}
	status, err := s.deps.GC.Refresh(s.ctx)
	if err != nil {
		status = s.deps.GC.Status()
	}
	switch name {
	case settingSafePoint:
		if status.SafePoint == 0 {
			return "none", true
		}
		return s.timeText(status.SafePoint), true
	case settingOldest:
		if status.Oldest == 0 {
			return "none", true
		}
		return s.timeText(status.Oldest), true
	case settingGCLife:
		return durationText(status.Life), true
	}
	return gcStage(&status), true
}

// gcStage tells what garbage collection is at, and what holds it up.
func gcStage(status *gc.Status) string {
	text := status.Stage
	if len(status.Away) > 0 {
		text += fmt.Sprintf(" (not reached: %s; locks left for them: %d)", strings.Join(status.Away, ", "), status.LeftLocks)
	}
	if status.LastError != "" {
		text += " (the last round stopped: " + status.LastError + ")"
	}
	return text
}

// alterSystem is ALTER SYSTEM: the one setting of the whole system is how long history is kept.
func (s *Session) alterSystem(ctx context.Context, n *ast.AlterSystem) error {
	if s.inBlock() {
		return pgerror.New(pgerror.ActiveSQLTransaction, "ALTER SYSTEM cannot run inside a transaction block")
	}
	name := strings.ToLower(n.Name)
	if name != settingGCLife && name != "all" {
		if _, known := s.settings.defs[name]; !known {
			return unknownSetting(n.Name)
		}
		return pgerror.Unsupported("ALTER SYSTEM SET "+n.Name, "Set it in the session, or with the client's options.")
	}
	if s.deps.GC == nil {
		return pgerror.Unsupported("ALTER SYSTEM without a running cluster", "Start the server.")
	}
	life := gc.DefaultLife
	if !n.Default {
		var err error
		if life, err = parseMillis(strings.Join(n.Values, ", ")); err != nil {
			return settingError(s.settings.defs[settingGCLife], strings.Join(n.Values, ", "), err)
		}
	}
	err := s.deps.GC.SetLife(ctx, life)
	var bounds *gc.LifeError
	switch {
	case errors.As(err, &bounds):
		return pgerror.New(pgerror.InvalidParameterValue, "%s is outside the valid range for parameter %q (%s .. %s)",
			durationText(life), settingGCLife, durationText(gc.MinLife), durationText(gc.MaxLife))
	case errors.Is(err, gc.ErrUnavailable):
		return pgerror.New(pgerror.ConnectionFailure, "%v", err).WithHint("Retry once the tso process is back.")
	}
	return err
}
