package types

import (
	"encoding/binary"
	"strconv"

	"github.com/percodb/percodb/sql/pgerror"
)

// OIDTimetz is the type of times of day with an offset.
const OIDTimetz OID = 1266

// TTimetz is the type without modifier.
var TTimetz = Type{OID: OIDTimetz, Mod: -1}

func init() {
	register(&Methods{
		Info:    Info{OIDTimetz, "timetz", "time with time zone", 1270, 0, 12, CategoryDateTime, false, KindBytes},
		Aliases: []string{"time with time zone"}, MinMax: true, SessionInput: true,
		Parse: parseTimetz, Receive: receiveTimetz,
		Append: func(dst []byte, d Datum, _ *Format) []byte {
			t := d.Timetz()
			return AppendZoneOffset(appendTimeOfDay(dst, t.Micros), -int(t.West))
		},
		Send: func(dst []byte, d Datum) []byte {
			t := d.Timetz()
			return binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint64(dst, uint64(t.Micros)), uint32(t.West))
		},
		ModIn: func(mods []int) (int32, error) {
			if len(mods) == 1 && mods[0] < 0 {
				return 0, pgerror.New(pgerror.InvalidParameterValue, "TIME(%d) WITH TIME ZONE precision must not be negative", mods[0])
			}
			return timeMod(TTime, mods)
		},
		ModOut: func(mod int32) string { return "time(" + strconv.Itoa(int(mod)) + ") with time zone" },
		Limit:  func(d Datum, mod int32, _ bool) (Datum, error) { return d.Timetz().round(mod), nil },
	})
}

// Timetz is a time of day and its offset, in seconds west of UTC as PostgreSQL counts them.
type Timetz struct {
	Micros int64
	West   int32
}

// NewTimetz returns a datum. Its bytes are the time in UTC, not brought into one day, and the offset: times order by these.
func NewTimetz(t Timetz) Datum {
	b := make([]byte, 0, 12)
	b = binary.BigEndian.AppendUint64(b, uint64(t.UTC())^1<<63)
	return Bytes(binary.BigEndian.AppendUint32(b, uint32(t.West)^1<<31))
}

// Timetz returns the value of a datum.
func (d Datum) Timetz() Timetz {
	b := d.Bytes()
	t := Timetz{West: int32(binary.BigEndian.Uint32(b[8:]) ^ 1<<31)}
	t.Micros = int64(binary.BigEndian.Uint64(b)^1<<63) - int64(t.West)*MicrosPerSecond
	return t
}

// UTC returns the time of day in UTC, which may be before or after the day.
func (t Timetz) UTC() int64 { return t.Micros + int64(t.West)*MicrosPerSecond }

// ISO returns the text in ISO 8601, whose offset has minutes always.
func (t Timetz) ISO() string {
	b := AppendZoneOffset(appendTimeOfDay(nil, t.Micros), -int(t.West))
	if t.West%3600 == 0 {
		b = append(b, ":00"...)
	}
	return string(b)
}

// At returns the same moment with another offset.
func (t Timetz) At(west int32) Timetz {
	return Timetz{Micros: floorMod(t.UTC()-int64(west)*MicrosPerSecond, MicrosPerDay), West: west}
}

func (t Timetz) round(mod int32) Datum {
	t.Micros = RoundMicros(t.Micros, mod)
	return NewTimetz(t)
}

// TimetzOf returns a time of the session's zone: with the offset that the time has today.
func TimetzOf(micros int64, f *Format) Timetz {
	now := LocalTimestamp(f.Now, f.Loc())
	return Timetz{Micros: micros, West: -int32(localOffset(now-floorMod(now, MicrosPerDay)+micros, f.Loc()))}
}

func parseTimetz(s string, mod int32, f *Format) (Datum, error) {
	d, p := decodeTimeText(s, true, f)
	if p != timeOK {
		return Null, d.fail(p, "time with time zone", s)
	}
	t := Timetz{Micros: d.c.Clock()}
	local, inRange := int64(0), false
	if d.seen&fieldsDate == fieldsDate {
		local, inRange = d.c.local()
	}
	switch {
	case d.zone.Location != nil && inRange:
		t.West = int32((d.zone.UTC(local) - local) / MicrosPerSecond)
	case d.hasZone || d.seen&fieldZoneDST != 0:
		t.West = -int32(d.offset)
	case inRange:
		t.West = -int32(localOffset(local, f.Loc()))
	default:
		t = TimetzOf(t.Micros, f)
	}
	return t.round(mod), nil
}

func receiveTimetz(b []byte, mod int32, _ *Format) (Datum, error) {
	if err := requireSize(b, 12); err != nil {
		return Null, err
	}
	t := Timetz{Micros: int64(binary.BigEndian.Uint64(b)), West: int32(binary.BigEndian.Uint32(b[8:]))}
	if t.Micros < 0 || t.Micros > MicrosPerDay {
		return Null, pgerror.New(pgerror.DatetimeFieldOverflow, "time out of range")
	}
	const limit = 16 * 3600
	if t.West <= -limit || t.West >= limit {
		return Null, pgerror.New(pgerror.InvalidTimeZoneDisplacement, "time zone displacement out of range")
	}
	return t.round(mod), nil
}
