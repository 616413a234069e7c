package settings

import (
	"fmt"
	"strconv"
	"strings"
	"time"
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
	return "", fmt.Errorf("a Boolean value is required")
}

func checkInt(low, high int64) func(string) (string, error) {
	return func(value string) (string, error) {
		n, err := strconv.ParseInt(strings.TrimSpace(value), 10, 64)
		if err != nil {
			return "", fmt.Errorf("an integer is required")
		}
		if n < low || n > high {
			return "", &outOfRange{strconv.FormatInt(n, 10), low, high}
		}
		return strconv.FormatInt(n, 10), nil
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

// timeUnits are PostgreSQL's units of time parameters, longest first where one ends another.
var timeUnits = []struct {
	suffix string
	unit   time.Duration
}{
	{"us", time.Microsecond}, {"ms", time.Millisecond}, {"min", time.Minute},
	{"s", time.Second}, {"h", time.Hour}, {"d", 24 * time.Hour},
}

// ParseMillis reads "250", "250ms", "2s", "5min" as PostgreSQL reads parameters in milliseconds.
func ParseMillis(value string) (time.Duration, error) {
	v := strings.TrimSpace(value)
	unit := time.Millisecond
	for _, u := range timeUnits {
		if strings.HasSuffix(v, u.suffix) {
			v, unit = strings.TrimSpace(strings.TrimSuffix(v, u.suffix)), u.unit
			break
		}
	}
	n, err := strconv.ParseFloat(v, 64)
	if err != nil {
		return 0, fmt.Errorf(`valid units for this parameter are "us", "ms", "s", "min", "h", and "d"`)
	}
	d := time.Duration(n * float64(unit))
	if n < 0 || d > (1<<31-1)*time.Millisecond {
		return 0, &outOfRange{strconv.FormatInt(d.Milliseconds(), 10) + " ms", 0, 1<<31 - 1}
	}
	return d, nil
}

// parseSeconds is ParseMillis for a parameter in seconds.
func parseSeconds(value string) (time.Duration, error) {
	if v := strings.TrimSpace(value); v != "" && strings.Trim(v, "0123456789") == "" {
		value = v + "s"
	}
	d, err := ParseMillis(value)
	return d.Round(time.Second), err
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
		return "", &outOfRange{strconv.FormatInt(d.Milliseconds(), 10) + " ms", 1, 1<<31 - 1}
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
