package builtin

import (
	"time"

	"github.com/percodb/percodb/sql/types"
)

func zoneOf(env *Env) *time.Location { return env.Format.Loc() }

// truncTimestamptz cuts by the clock of a zone. Cut to days or more, the offset is the new day's; cut
// to less, it stays.
func truncTimestamptz(name string, ts int64, loc *time.Location) (int64, error) {
	if !types.TimestampFinite(ts) {
		return ts, nil
	}
	local := types.LocalTimestamp(ts, loc)
	cut, err := truncTimestamp(name, local, types.TTimestamptz)
	if err != nil {
		return 0, err
	}
	if lookupUnit(name) >= unitDay {
		return types.UTCTimestamp(cut, loc), nil
	}
	return cut - (local - ts), nil
}
