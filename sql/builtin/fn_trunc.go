package builtin

import (
	"time"

	"github.com/percodb/percodb/sql/types"
)

func zoneOf(env *Env) *time.Location { return env.Format.Loc() }

// truncTimestamptz truncates by the local time of a zone. Truncated to days or more, the offset is the new day's; to
// less, it is unchanged.
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
