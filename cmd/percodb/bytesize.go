package main

import (
	"fmt"
	"strconv"
	"strings"
)

// byteSize is a flag for a number of bytes with a unit, as in PostgreSQL's settings: 512MB, 2GB. Units
// are powers of 1024.
type byteSize int64

var byteUnits = []struct {
	suffix string
	bytes  int64
}{{"TB", 1 << 40}, {"GB", 1 << 30}, {"MB", 1 << 20}, {"kB", 1 << 10}}

// Set implements pflag.Value.
func (b *byteSize) Set(text string) error {
	for _, u := range byteUnits {
		number, ok := strings.CutSuffix(strings.ToLower(text), strings.ToLower(u.suffix))
		if !ok {
			continue
		}
		n, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
		if err != nil || !(n >= 0 && n*float64(u.bytes) < 1<<62) {
			break
		}
		*b = byteSize(n * float64(u.bytes))
		return nil
	}
	return fmt.Errorf("%q is no size: use a number with kB, MB, GB or TB, such as 2GB", text)
}

// String implements pflag.Value.
func (b *byteSize) String() string {
	for _, u := range byteUnits {
		if n := int64(*b); n >= u.bytes && n%u.bytes == 0 {
			return strconv.FormatInt(n/u.bytes, 10) + u.suffix
		}
	}
	return strconv.FormatInt(int64(*b)>>20, 10) + "MB"
}

// Type implements pflag.Value.
func (b *byteSize) Type() string { return "SIZE" }
