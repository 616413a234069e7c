package types

import (
	_ "embed"
	"strconv"
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

// zoneAbbrevs are the abbreviations PostgreSQL accepts by default, with their offset from UTC in
// seconds and whether they are daylight-saving time.
//
//go:embed zone_abbrevs.txt
var zoneAbbrevs string

type zoneAbbrev struct {
	offset int
	dst    bool
}

var abbrevs = sync.OnceValue(func() map[string]zoneAbbrev {
	m := map[string]zoneAbbrev{}
	for line := range strings.Lines(zoneAbbrevs) {
		part := strings.Fields(line)
		offset, err := strconv.Atoi(part[1])
		if err != nil {
			panic("types: zone_abbrevs.txt: " + err.Error())
		}
		m[strings.ToLower(part[0])] = zoneAbbrev{offset, part[2] == "d"}
	}
	return m
})

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

// findZone returns the zone of a full name in any case, or of a POSIX specification without
// daylight-saving rule ("UTC+3", whose sign counts westward).
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

// maxZoneHours is the largest offset of a POSIX specification: a week, less an hour.
const maxZoneHours = 167

func posixZone(spec string) (*time.Location, bool) {
	i := 0
	if strings.HasPrefix(spec, "<") {
		i = strings.IndexByte(spec, '>') + 1
	} else {
		i = strings.IndexAny(spec, "0123456789,+-")
	}
	if i < 0 || i == len(spec) {
		return nil, false
	}
	sign, rest := -1, spec[i:]
	if rest[0] == '-' || rest[0] == '+' {
		if rest[0] == '-' {
			sign = 1
		}
		rest = rest[1:]
	}
	seconds := 0
	unit := 3600
	for part := range strings.SplitSeq(rest, ":") {
		n, err := strconv.Atoi(part)
		if err != nil || n < 0 || unit == 0 || unit == 3600 && n > maxZoneHours || unit < 3600 && n > 59 {
			return nil, false
		}
		seconds += n * unit
		unit /= 60
	}
	return time.FixedZone(strings.ToUpper(strings.Trim(spec[:i], "<>")), sign*seconds), true
}

// LoadZone returns the zone that AT TIME ZONE and SET TIME ZONE name: an abbreviation, a full name
// or a POSIX specification, in any case; 22023 if there is none.
func LoadZone(name string) (*time.Location, error) {
	if a, ok := abbrevs()[strings.ToLower(name)]; ok {
		return time.FixedZone(strings.ToUpper(name), a.offset), nil
	}
	if loc, ok := findZone(name); ok {
		return loc, nil
	}
	return nil, pgerror.New(pgerror.InvalidParameterValue, "time zone \"%s\" not recognized", name)
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
