package builtin

import (
	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

func (in *timeInput) errRange() error {
	return pgerror.New(pgerror.DatetimeFieldOverflow, "date/time field value out of range: \"%s\"", in.text)
}

// civil combines the fields: a day, 0001-01-01 BC if none was given, and a time.
func (in *timeInput) civil() (types.Civil, error) {
	c := types.Civil{Month: 1, Day: 1}
	if err := in.clock(&c); err != nil {
		return c, err
	}
	hasYear := in.setYear(&c)
	if in.julian != 0 {
		c.Year, c.Month, c.Day = types.CivilFromDays(int64(in.julian) - 2451545)
		hasYear = true
	}
	if in.week != 0 {
		in.setWeek(&c)
	}
	if in.weekOfMonth != 0 {
		in.day = (in.weekOfMonth-1)*7 + 1
	}
	if in.day != 0 {
		c.Day = in.day
	}
	if in.month != 0 {
		c.Month = in.month
	}
	if in.dayOfYear != 0 && (c.Month <= 1 || c.Day <= 1) {
		if err := in.setDayOfYear(&c, hasYear); err != nil {
			return c, err
		}
	}
	if c.Month < 1 || c.Month > 12 || c.Day < 1 || c.Day > types.DaysInMonth(c.Year, c.Month) {
		return c, in.errRange()
	}
	return c, nil
}

func (in *timeInput) clock(c *types.Civil) error {
	if in.seconds != 0 {
		in.hour, in.minute, in.second = in.seconds/3600, in.seconds/60%60, in.seconds%60
	}
	if in.half {
		if in.hour < 1 || in.hour > 12 {
			return errDateInput("hour \"%d\" is invalid for the 12-hour clock", in.hour).
				WithHint("Use the 24-hour clock, or give an hour between 1 and 12.")
		}
		if in.hour %= 12; in.pm {
			in.hour += 12
		}
	}
	c.Hour, c.Minute, c.Second = in.hour, in.minute, in.second
	micros := in.millis*1000 + in.micros
	c.Micros = micros
	if in.hour < 0 || in.hour >= 24 || in.minute < 0 || in.minute >= 60 || in.second < 0 || in.second >= 60 || micros < 0 || micros >= 1_000_000 {
		return in.errRange()
	}
	return nil
}

// setYear sets the year from year and century.
func (in *timeInput) setYear(c *types.Civil) bool {
	switch {
	case in.year != 0 && in.century != 0 && in.yearDigits <= 2:
		century := in.century
		if in.bc {
			century = -century
		}
		c.Year = in.year % 100
		if c.Year != 0 {
			if century >= 0 {
				c.Year += (century - 1) * 100
			} else {
				c.Year = (century+1)*100 - c.Year + 1
			}
		} else {
			c.Year = century * 100
			if century < 0 {
				c.Year++
			}
		}
	case in.year != 0:
		c.Year = in.year
		if in.bc {
			c.Year = -c.Year
		}
		if c.Year < 0 {
			c.Year++
		}
	case in.century != 0:
		century := in.century
		if in.bc {
			century = -century
		}
		if century >= 0 {
			c.Year = (century-1)*100 + 1
		} else {
			c.Year = century*100 + 1
		}
	default:
		return false
	}
	return true
}

// isoMonday is the Monday of an ISO year's first week.
func isoMonday(year int) int64 {
	day := types.DaysFromCivil(year, 1, 4)
	return day - floorMod(day+5, 7)
}

func (in *timeInput) setWeek(c *types.Civil) {
	if !in.iso {
		in.dayOfYear = (in.week-1)*7 + 1
		return
	}
	day := isoMonday(c.Year) + int64(in.week-1)*7
	if in.weekday > 1 {
		day += int64(in.weekday - 2)
	} else if in.weekday == 1 {
		day += 6 // Sunday ends the week
	}
	c.Year, c.Month, c.Day = types.CivilFromDays(day)
}

func (in *timeInput) setDayOfYear(c *types.Civil, hasYear bool) error {
	if !hasYear && !in.bc {
		return errDateInput("cannot calculate day of year without year information")
	}
	if in.iso {
		c.Year, c.Month, c.Day = types.CivilFromDays(isoMonday(c.Year) + int64(in.dayOfYear) - 1)
		return nil
	}
	_, month, day := types.CivilFromDays(types.DaysFromCivil(c.Year, 1, 1) + int64(in.dayOfYear) - 1)
	length := 365
	if types.IsLeap(c.Year) {
		length = 366
	}
	if in.dayOfYear < 1 || in.dayOfYear > length {
		return in.errRange()
	}
	if c.Month <= 1 {
		c.Month = month
	}
	if c.Day <= 1 {
		c.Day = day
	}
	return nil
}

func toDate(_ *Env, a []types.Datum) (types.Datum, error) {
	in, err := readTimeInput(a[0].Text(), a[1].Text())
	if err != nil {
		return types.Null, err
	}
	c, err := in.civil()
	if err != nil {
		return types.Null, err
	}
	days := types.DaysFromCivil(c.Year, c.Month, c.Day)
	if !types.ValidDate(days) {
		return types.Null, pgerror.New(pgerror.DatetimeFieldOverflow, "date out of range: \"%s\"", in.text)
	}
	return types.Int(days), nil
}

func toTimestamp(env *Env, a []types.Datum) (types.Datum, error) {
	in, err := readTimeInput(a[0].Text(), a[1].Text())
	if err != nil {
		return types.Null, err
	}
	c, err := in.civil()
	if err != nil {
		return types.Null, err
	}
	ts, ok := c.Timestamp()
	if !ok {
		return types.Null, errTimestampRange()
	}
	if in.zoneSign == 0 {
		return in.rounded(localToTimestamptz(env, ts))
	}
	if in.zoneHour < 0 || in.zoneHour > 15 || in.zoneMinute < 0 || in.zoneMinute >= 60 {
		return types.Null, pgerror.New("22009", "time zone displacement out of range: \"%s\"", in.text)
	}
	ts -= int64(in.zoneSign*(in.zoneHour*3600+in.zoneMinute*60)) * types.MicrosPerSecond
	if !types.ValidTimestamp(ts) {
		return types.Null, errTimestampRange()
	}
	return in.rounded(ts, nil)
}

// rounded rounds a timestamp to the precision that the template gives.
func (in *timeInput) rounded(ts int64, err error) (types.Datum, error) {
	if err != nil || in.precision == 0 {
		return types.Int(ts), err
	}
	return types.Int(types.RoundTimestamp(ts, int32(in.precision))), nil
}
