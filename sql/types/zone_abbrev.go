package types

import (
	_ "embed"
	"math"
	"strconv"
	"strings"
	"sync"
	"time"
)

// zoneAbbrevs are the abbreviations PostgreSQL accepts by default: with their offset from UTC in seconds and whether they are
// daylight-saving time, or, if their offset has changed, with the zone that uses them.
//
//go:embed zone_abbrevs.txt
var zoneAbbrevs string

type zoneAbbrev struct {
	offset int
	dst    bool
	zone   string // the zone that determines the offset; "": offset is fixed
}

var abbrevs = sync.OnceValue(func() map[string]zoneAbbrev {
	m := map[string]zoneAbbrev{}
	for line := range strings.Lines(zoneAbbrevs) {
		part := strings.Fields(line)
		name := strings.ToLower(part[0])
		if len(part) == 2 {
			m[name] = zoneAbbrev{zone: part[1]}
			continue
		}
		offset, err := strconv.Atoi(part[1])
		if err != nil {
			panic("types: zone_abbrevs.txt: " + err.Error())
		}
		m[name] = zoneAbbrev{offset: offset, dst: part[2] == "d"}
	}
	return m
})

// resolve returns the abbreviation's zone; name is the abbreviation in upper case.
func (a zoneAbbrev) resolve(name string) Zone {
	if a.zone == "" {
		return Zone{Location: time.FixedZone(name, a.offset)}
	}
	loc, ok := findZone(a.zone)
	if !ok {
		panic("types: zone_abbrevs.txt: no zone " + a.zone)
	}
	return Zone{Location: loc, abbrev: name}
}

// zonePeriod is a time in which a zone's abbreviation and offset do not change.
type zonePeriod struct {
	start  int64 // Unix time
	abbrev string
	offset int
}

// periodCache contains the periods of the zones that dynamic abbreviations name.
var periodCache sync.Map

// zonePeriods returns a zone's periods up to 2038; later ones repeat.
func zonePeriods(loc *time.Location) []zonePeriod {
	if p, ok := periodCache.Load(loc); ok {
		return p.([]zonePeriod)
	}
	const firstYear, lastYear = 1800, 2038
	var out []zonePeriod
	end := time.Date(lastYear, 1, 1, 0, 0, 0, 0, time.UTC)
	for t := time.Date(firstYear, 1, 1, 0, 0, 0, 0, time.UTC).In(loc); !t.IsZero() && t.Before(end); _, t = t.ZoneBounds() {
		abbrev, offset := t.Zone()
		start := t.Unix()
		if len(out) == 0 {
			start = math.MinInt64
		}
		out = append(out, zonePeriod{start, abbrev, offset})
	}
	periodCache.Store(loc, out)
	return out
}

// abbrevOffset returns what a changing abbreviation means at a timestamptz, in seconds east of UTC: the offset of the last period up to
// then in which its zone used the abbreviation, else of the first one after, else the zone's own offset.
func (z Zone) abbrevOffset(ts int64) int64 {
	periods := zonePeriods(z.Location)
	unix := unixSeconds(ts)
	found := -1
	for i, p := range periods {
		if p.abbrev != z.abbrev {
			continue
		}
		if p.start <= unix || found < 0 {
			found = i
		}
		if p.start > unix {
			break
		}
	}
	if found < 0 {
		return int64(zoneOffset(ts, z.Location))
	}
	return int64(periods[found].offset)
}
