package types

import (
	"encoding/binary"
	"strconv"
	"strings"
	"time"
)

// maxZoneHours is the largest offset of a POSIX specification: a week, less an hour.
const maxZoneHours = 167

// defaultZoneRule is the rule of a specification that names a daylight-saving time without one.
const defaultZoneRule = ",M3.2.0,M11.1.0"

// posixZone reads a POSIX specification: a name, an offset that counts westward, and optionally the name, offset and rule of daylight-saving
// time, as in CST7CDT,M4.1.0,M10.5.0. The location's name is the specification in upper case.
func posixZone(spec string) (*time.Location, bool) {
	spec = strings.ToUpper(spec)
	std, rest, ok := posixName(spec)
	if !ok || rest == "" {
		return nil, false
	}
	west, rest, ok := posixOffset(rest)
	if !ok {
		return nil, false
	}
	if rest == "" {
		return buildZone(spec, std, -west, "")
	}
	dst, rest, ok := posixName(rest)
	if !ok || dst == "" {
		return nil, false
	}
	dstWest := west - 3600
	if rest != "" && rest[0] != ',' && rest[0] != ';' {
		if dstWest, rest, ok = posixOffset(rest); !ok {
			return nil, false
		}
	}
	if rest == "" {
		rest = defaultZoneRule
	}
	if !validZoneRule(rest) {
		return nil, false
	}
	footer := "<" + std + ">" + posixClock(west) + "<" + dst + ">" + posixClock(dstWest) + "," + strings.ReplaceAll(rest[1:], ";", ",")
	return buildZone(spec, std, -west, footer)
}

// posixName reads a name of letters, or of any characters in angle brackets.
func posixName(s string) (name, rest string, ok bool) {
	if strings.HasPrefix(s, "<") {
		return strings.Cut(s[1:], ">")
	}
	i := strings.IndexAny(s, "0123456789,+-")
	if i < 0 {
		i = len(s)
	}
	return s[:i], s[i:], true
}

// posixOffset reads [+-]hh[:mm[:ss]] in seconds.
func posixOffset(s string) (seconds int, rest string, ok bool) {
	negative := strings.HasPrefix(s, "-")
	if negative || strings.HasPrefix(s, "+") {
		s = s[1:]
	}
	unit := 3600
	for {
		end := skipDigits(s, 0)
		n, err := strconv.Atoi(s[:end])
		if err != nil || unit == 3600 && n > maxZoneHours || unit < 3600 && n > 59 {
			return 0, "", false
		}
		seconds += n * unit
		s = s[end:]
		if unit == 1 || !strings.HasPrefix(s, ":") {
			break
		}
		s, unit = s[1:], unit/60
	}
	if negative {
		seconds = -seconds
	}
	return seconds, s, true
}

func posixClock(seconds int) string {
	sign := ""
	if seconds < 0 {
		sign, seconds = "-", -seconds
	}
	return sign + strconv.Itoa(seconds/3600) + ":" + strconv.Itoa(seconds/60%60) + ":" + strconv.Itoa(seconds%60)
}

// validZoneRule checks the two days on which daylight-saving time begins and ends: ,M4.1.0/2,M10.5.0 or ,J60,300.
func validZoneRule(s string) bool {
	for range 2 {
		if s == "" || s[0] != ',' && s[0] != ';' {
			return false
		}
		s = s[1:]
		ok := false
		switch {
		case strings.HasPrefix(s, "M"):
			var p [3]int
			s = s[1:]
			for i := range p {
				if i > 0 {
					if !strings.HasPrefix(s, ".") {
						return false
					}
					s = s[1:]
				}
				end := skipDigits(s, 0)
				n, err := strconv.Atoi(s[:end])
				if err != nil {
					return false
				}
				p[i], s = n, s[end:]
			}
			ok = p[0] >= 1 && p[0] <= 12 && p[1] >= 1 && p[1] <= 5 && p[2] <= 6
		default:
			first := 0
			if strings.HasPrefix(s, "J") {
				s, first = s[1:], 1
			}
			end := skipDigits(s, 0)
			n, err := strconv.Atoi(s[:end])
			ok = err == nil && n >= first && n <= 365
			s = s[end:]
		}
		if !ok {
			return false
		}
		if strings.HasPrefix(s, "/") {
			if _, s, ok = posixOffset(s[1:]); !ok {
				return false
			}
		}
	}
	return s == ""
}

// buildZone makes a location with one offset, and the rule of footer if there is one, by way of the compiled form that package time
// reads (RFC 8536).
func buildZone(name, std string, east int, footer string) (*time.Location, bool) {
	if len(std) > 250 {
		return nil, false
	}
	block := func(b []byte) []byte {
		b = append(b, "TZif2"...)
		b = append(b, make([]byte, 15)...)
		for _, count := range [6]uint32{0, 0, 0, 0, 1, uint32(len(std) + 1)} {
			b = binary.BigEndian.AppendUint32(b, count)
		}
		b = binary.BigEndian.AppendUint32(b, uint32(int32(east)))
		b = append(b, 0, 0) // not daylight-saving time; the name at index 0
		b = append(b, std...)
		return append(b, 0)
	}
	data := block(block(nil))
	data = append(data, "\n"+footer+"\n"...)
	loc, err := time.LoadLocationFromTZData(name, data)
	return loc, err == nil
}
