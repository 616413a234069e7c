package session

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/percodb/percodb/gc"
	"github.com/percodb/percodb/session/settings"
	"github.com/percodb/percodb/sql/ast"
	"github.com/percodb/percodb/sql/builtin"
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/tso"
)

// collection shows what the garbage collector is at, and changes how long history is kept.
type collection struct {
	reporter *gc.Reporter // nil where there is no garbage collection
	settings *settings.Settings
	env      *builtin.Env
}

// connect connects the settings of garbage collection with the reporter.
func (c *collection) connect() {
	for name, text := range map[string]func(*gc.Status) string{
		settings.SafePoint:         func(s *gc.Status) string { return c.time(s.SafePoint) },
		settings.OldestTransaction: func(s *gc.Status) string { return c.time(s.Oldest) },
		settings.GCLife:            func(s *gc.Status) string { return settings.DurationText(s.Life) },
		settings.GCStage:           gcStage,
	} {
		c.settings.Live(name, func() string {
			if c.reporter == nil {
				return ""
			}
			status := c.refreshed()
			return text(&status)
		}, nil)
	}
}

// status returns what this process last learned of garbage collection.
func (c *collection) status() gc.Status {
	if c.reporter == nil {
		return gc.Status{}
	}
	return c.reporter.Status()
}

// refreshed returns the present status if the controller answers, else the last one that this process learned.
func (c *collection) refreshed() gc.Status {
	status, err := c.reporter.Refresh(c.env.Ctx)
	if err != nil {
		return c.reporter.Status()
	}
	return status
}

func (c *collection) time(ts tso.Timestamp) string {
	if ts == 0 {
		return "none"
	}
	return timeText(ts, &c.settings.Format)
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

// alter is ALTER SYSTEM of how long history is kept.
func (c *collection) alter(ctx context.Context, n *ast.AlterSystem) error {
	if c.reporter == nil {
		return pgerror.Unsupported("ALTER SYSTEM without a running cluster", "Start the server.")
	}
	life := gc.DefaultLife
	if !n.Default {
		var err error
		value := strings.Join(n.Values, ", ")
		if life, err = settings.ParseMillis(value); err != nil {
			return c.settings.Invalid(settings.GCLife, value, err)
		}
	}
	err := c.reporter.SetLife(ctx, life)
	var bounds *gc.LifeError
	switch {
	case errors.As(err, &bounds):
		return pgerror.New(pgerror.InvalidParameterValue, "%s is outside the valid range for parameter %q (%s .. %s)",
			settings.DurationText(life), settings.GCLife, settings.DurationText(gc.MinLife), settings.DurationText(gc.MaxLife))
	case errors.Is(err, gc.ErrUnavailable):
		return pgerror.New(pgerror.ConnectionFailure, "%v", err).WithHint("Retry once the tso process is back.")
	}
	return err
}
