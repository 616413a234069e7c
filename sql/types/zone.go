package types

import (
	_ "embed"
	"strings"
	"sync"
	"time"
	_ "time/tzdata" // zones must not depend on files of the machine

	"github.com/percodb/percodb/sql/pgerror"
)

// zoneNames are the IANA names, whose case PostgreSQL ignores on input.
//
//go:embed zones.txt
var zoneNames string

var canonicalZones = sync.OnceValue(func() map[string]string {
	m := map[string]string{}
	for line := range strings.Lines(zoneNames) {
		name := strings.TrimSpace(line)
		m[strings.ToLower(name)] = name
	}
	return m
})

// zoneCache contains every loaded zone, by canonical name: at most those of zones.txt. Loading parses a file, which is
// too slow for AT TIME ZONE on every row.
var zoneCache sync.Map

// findZone returns the zone of a full name in any case, or of a POSIX specification.
func findZone(name string) (*time.Location, bool) {
	canonical, ok := canonicalZones()[strings.ToLower(name)]
	if !ok {
		return posixZone(name)
	}
	if loc, ok := zoneCache.Load(canonical); ok {
		return loc.(*time.Location), true
	}
	loc, err := time.LoadLocation(canonical)
	if err != nil {
		return nil, false
	}
	zoneCache.Store(canonical, loc)
	return loc, true
}

// LoadLocation returns the zone of a full name or a POSIX specification, in any case, as SET TIME ZONE names it; false if there is
// none.
func LoadLocation(name string) (*time.Location, bool) { return findZone(name) }

// Zone is what AT TIME ZONE names: a zone, or an abbreviation whose meaning has changed with the zone that uses it. The zero Zone is
// invalid.
type Zone struct {
	// Location is the zone itself; of an abbreviation that changed, the zone that uses it.
	Location *time.Location
	abbrev   string // upper case; "" unless it is an abbreviation that changed
}

// LoadZone returns the zone that AT TIME ZONE names: an abbreviation, a full name or a POSIX specification, in any case; 22023 if there
// is none.
func LoadZone(name string) (Zone, error) {
	if a, ok := abbrevs()[strings.ToLower(name)]; ok {
		return a.resolve(strings.ToUpper(name)), nil
	}
	if loc, ok := findZone(name); ok {
		return Zone{Location: loc}, nil
	}
	return Zone{}, pgerror.New(pgerror.InvalidParameterValue, "time zone \"%s\" not recognized", name)
}

// Local returns the local time at the finite timestamptz ts.
func (z Zone) Local(ts int64) int64 {
	if z.abbrev == "" {
		return LocalTimestamp(ts, z.Location)
	}
	return ts + z.abbrevOffset(ts)*MicrosPerSecond
}

// UTC returns the timestamptz of the finite local time; see UTCTimestamp.
func (z Zone) UTC(local int64) int64 {
	ts := UTCTimestamp(local, z.Location)
	if z.abbrev == "" {
		return ts
	}
	return local - z.abbrevOffset(ts)*MicrosPerSecond
}

// zoneOffset returns the seconds east of UTC at a UTC timestamp.
func zoneOffset(ts int64, loc *time.Location) int {
	if loc == time.UTC {
		return 0
	}
	_, offset := ZoneAt(ts, loc)
	return offset
}

// LocalTimestamp returns the local time in loc at the finite timestamptz ts.
func LocalTimestamp(ts int64, loc *time.Location) int64 {
	return ts + int64(zoneOffset(ts, loc))*MicrosPerSecond
}

// UTCTimestamp returns the timestamptz at which the local time in loc is the finite timestamp local. A time that a
// change of offset skips is interpreted with the offset before the change, one that occurs twice with the offset after
// it, as in PostgreSQL.
func UTCTimestamp(local int64, loc *time.Location) int64 {
	return local - int64(localOffset(local, loc))*MicrosPerSecond
}

func localOffset(local int64, loc *time.Location) int {
	if loc == time.UTC {
		return 0
	}
	seconds := unixSeconds(local)
	dayBefore := time.Unix(seconds-86400, 0).In(loc)
	_, before := dayBefore.Zone()
	_, end := dayBefore.ZoneBounds()
	if end.IsZero() {
		return before
	}
	_, after := end.Zone()
	change := end.Unix()
	byBefore, byAfter := seconds-int64(before), seconds-int64(after)
	switch {
	case byBefore < change && byAfter < change:
		return before
	case byBefore >= change && byAfter >= change:
		return after
	case byBefore > byAfter:
		return before
	}
	return after
}

// ZoneAt returns a zone's abbreviation and its offset in seconds east of UTC at a timestamp.
func ZoneAt(ts int64, loc *time.Location) (abbreviation string, offset int) {
	return time.Unix(unixSeconds(ts), 0).In(loc).Zone()
}

// unixSeconds is a timestamp as Unix time.
func unixSeconds(ts int64) int64 {
	return floorDiv(ts, MicrosPerSecond) - unixToMicros/MicrosPerSecond
}
