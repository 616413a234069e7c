package settings

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/percodb/percodb/sql/textsearch"
)

// Errors of values, for which PostgreSQL's messages give no reason.
var (
	errNoBool   = errors.New("a Boolean value is required")
	errNoNumber = errors.New("a number is required")
	errTooLarge = errors.New("value exceeds integer range")
	// errNoTextSearch is the error for a text search configuration that does not exist.
	errNoTextSearch = errors.New("there is no such text search configuration")
)

// CheckBool returns "on" or "off" for a Boolean in any of its spellings.
func CheckBool(value string) (string, error) {
	v := strings.ToLower(strings.TrimSpace(value))
	for _, word := range []string{"true", "yes", "on", "1"} {
		if v != "" && v != "o" && strings.HasPrefix(word, v) {
			return "on", nil
		}
	}
	for _, word := range []string{"false", "no", "off", "0"} {
		if v != "" && v != "o" && strings.HasPrefix(word, v) {
			return "off", nil
		}
	}
	return "", errNoBool
}

func checkInt(low, high int64) func(string) (string, error) {
	return func(value string) (string, error) {
		n, err := integers(float64(low), float64(high)).integer(value)
		return strconv.FormatInt(n, 10), err
	}
}

func checkEnum(words ...string) func(string) (string, error) {
	return func(value string) (string, error) {
		v := strings.ToLower(strings.TrimSpace(value))
		for _, w := range words {
			if v == w {
				return w, nil
			}
		}
		return "", fmt.Errorf("available values: %s", strings.Join(words, ", "))
	}
}

// millis are the values of parameters in milliseconds.
var millis = quantity{low: 0, high: math.MaxInt32, whole: true, units: delayUnits, base: 1e3}

// ParseMillis reads "250", "250ms", "2s", "5min" as PostgreSQL reads parameters in milliseconds.
func ParseMillis(value string) (time.Duration, error) {
	n, err := millis.integer(value)
	return time.Duration(n) * time.Millisecond, err
}

// seconds are the values of parameters in seconds.
var seconds = quantity{low: 0, high: math.MaxInt32, whole: true, units: delayUnits, base: 1e6}

// parseSeconds is ParseMillis for a parameter in seconds.
func parseSeconds(value string) (time.Duration, error) {
	n, err := seconds.integer(value)
	return time.Duration(n) * time.Second, err
}

// checkSeconds is checkMillis for a parameter in seconds.
func checkSeconds(value string) (string, error) {
	d, err := parseSeconds(value)
	if err != nil {
		return "", err
	}
	return DurationText(d), nil
}

// checkPositiveMillis is checkMillis without 0.
func checkPositiveMillis(value string) (string, error) {
	if d, err := ParseMillis(value); err == nil && d < time.Millisecond {
		return "", outside(d.Milliseconds(), " ms", 1, math.MaxInt32)
	}
	return checkMillis(value)
}

// checkMillis brings a duration to the largest unit that divides it, as SHOW prints it.
func checkMillis(value string) (string, error) {
	d, err := ParseMillis(value)
	if err != nil {
		return "", err
	}
	return DurationText(d), nil
}

// DurationText prints a duration in the largest unit that divides it.
func DurationText(d time.Duration) string {
	ms := d.Milliseconds()
	switch {
	case ms == 0:
		return "0"
	case ms%86_400_000 == 0:
		return fmt.Sprintf("%dd", ms/86_400_000)
	case ms%3_600_000 == 0:
		return fmt.Sprintf("%dh", ms/3_600_000)
	case ms%60_000 == 0:
		return fmt.Sprintf("%dmin", ms/60_000)
	case ms%1000 == 0:
		return fmt.Sprintf("%ds", ms/1000)
	}
	return fmt.Sprintf("%dms", ms)
}

// checkSynchronousCommit takes a Boolean, or what only a replica can do more.
func checkSynchronousCommit(value string) (string, error) {
	if on, err := CheckBool(value); err == nil {
		return on, nil
	}
	return checkEnum("local", "remote_write", "remote_apply", "on", "off")(value)
}

// checkTextSearch checks the name of a text search configuration. Outside a session those of users are taken as they are.
func checkTextSearch(s *Settings, value string) (string, error) {
	name := strings.TrimPrefix(value, "pg_catalog.")
	if textsearch.ConfigurationNamed(name) != nil && (s.textSearch == nil || name != value) {
		return "pg_catalog." + name, nil
	}
	if s.textSearch == nil {
		return value, nil
	}
	if found, ok := s.textSearch(value); ok {
		return found, nil
	}
	return "", errNoTextSearch
}
