package settings

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/percodb/percodb/sql/pgerror"
	"github.com/percodb/percodb/sql/types"
)

// checkTimeZone accepts what SET TIME ZONE does and returns what SHOW prints.
func checkTimeZone(value string) (string, error) {
	switch strings.ToLower(strings.TrimSpace(value)) {
	case "local", "default":
		return "UTC", nil
	}
	loc, err := loadZone(value)
	if err != nil {
		return "", err
	}
	return loc.String(), nil
}

func applyTimeZone(s *Settings, value string) error {
	loc, err := loadZone(value)
	if err == nil {
		s.Format.Location = loc
	}
	return err
}

// loadZone reads a zone's name, a POSIX specification, a number of hours east of UTC, or INTERVAL '…' with an offset.
func loadZone(value string) (*time.Location, error) {
	refuse := func(detail string) (*time.Location, error) {
		err := pgerror.New(pgerror.InvalidParameterValue, "invalid value for parameter \"TimeZone\": \"%s\"", value)
		if detail != "" {
			err = err.WithDetail("%s", detail)
		}
		return nil, err
	}
	spec := value
	if text, ok := intervalText(value); ok {
		d, err := types.ParseText(types.TInterval, text, &types.Format{})
		if err != nil {
			return nil, err
		}
		iv := d.Interval()
		switch {
		case iv.Months != 0:
			return refuse("Cannot specify months in time zone interval.")
		case iv.Days != 0:
			return refuse("Cannot specify days in time zone interval.")
		}
		if spec, err = offsetZone(iv.Micros / types.MicrosPerSecond); err != nil {
			return refuse(err.Error())
		}
	} else if hours, err := strconv.ParseFloat(strings.TrimSpace(value), 64); err == nil {
		if math.IsNaN(hours) || math.Abs(hours) > 1e6 {
			return refuse(errOffsetRange.Error())
		}
		if spec, err = offsetZone(int64(hours * 3600)); err != nil {
			return refuse(err.Error())
		}
	}
	loc, ok := types.LoadLocation(spec)
	if !ok {
		return refuse("")
	}
	// PostgreSQL takes offsets with seconds from numbers, but not from specifications.
	if _, offset := time.Unix(946684800, 0).In(loc).Zone(); spec == value && offset%60 != 0 {
		return nil, pgerror.New(pgerror.InvalidParameterValue, "time zone \"%s\" appears to use leap seconds", value).
			WithDetail("PostgreSQL does not support leap seconds.")
	}
	return loc, nil
}

// intervalText returns the text of INTERVAL '…'.
func intervalText(value string) (string, bool) {
	const word = "interval"
	if len(value) < len(word) || !strings.EqualFold(value[:len(word)], word) {
		return "", false
	}
	text, ok := strings.CutPrefix(strings.TrimLeft(value[len(word):], " \t\n"), "'")
	if !ok {
		return "", false
	}
	return strings.CutSuffix(text, "'")
}

var errOffsetRange = errors.New("UTC timezone offset is out of range.") //lint:ignore ST1005 the detail of a client's error

// offsetZone is the POSIX specification, whose sign points west, of so many seconds east: <-05>+05.
func offsetZone(east int64) (string, error) {
	sign, opposite := "+", "-"
	if east < 0 {
		sign, opposite, east = "-", "+", -east
	}
	if east > 167*3600 {
		return "", errOffsetRange
	}
	clock := fmt.Sprintf("%02d", east/3600)
	if east%3600 != 0 {
		clock += fmt.Sprintf(":%02d", east/60%60)
	}
	if east%60 != 0 {
		clock += fmt.Sprintf(":%02d", east%60)
	}
	return "<" + sign + clock + ">" + opposite + clock, nil
}
