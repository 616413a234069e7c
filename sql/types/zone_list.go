package types

import (
	"maps"
	"slices"
	"strings"
	"time"
)

// ZoneEntry is a time zone or an abbreviation of one as it is at some time.
type ZoneEntry struct {
	Name         string // the full name; "" of an abbreviation
	Abbreviation string
	Offset       int // in seconds east of UTC
	Daylight     bool
}

// ZoneNames returns the time zones by name, as they are at a time.
func ZoneNames(at time.Time) []ZoneEntry {
	var out []ZoneEntry
	for _, name := range slices.Sorted(maps.Values(canonicalZones())) {
		loc, ok := findZone(name)
		if !ok {
			continue
		}
		t := at.In(loc)
		e := ZoneEntry{Name: name, Daylight: t.IsDST()}
		e.Abbreviation, e.Offset = t.Zone()
		out = append(out, e)
	}
	return out
}

// ZoneAbbreviations returns the abbreviations of time zones that PostgreSQL accepts by default, in order, as they are at a time.
func ZoneAbbreviations(at time.Time) []ZoneEntry {
	ts := (at.Unix() - unixSeconds(0)) * MicrosPerSecond
	var out []ZoneEntry
	for _, lower := range slices.Sorted(maps.Keys(abbrevs())) {
		a := abbrevs()[lower]
		e := ZoneEntry{Abbreviation: strings.ToUpper(lower), Offset: a.offset, Daylight: a.dst}
		if a.zone != "" {
			z := a.resolve(e.Abbreviation)
			e.Offset = int(z.abbrevOffset(ts))
			_, standard := at.In(z.Location).Zone()
			e.Daylight = at.In(z.Location).IsDST() && e.Offset == standard
		}
		out = append(out, e)
	}
	return out
}
