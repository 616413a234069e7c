// Package plural prints numbers of things for people: 1 range, 2 ranges.
package plural

import (
	"strconv"
	"strings"
)

// Count prints n and the noun, which it is given in the singular.
func Count[N ~int | ~int64 | ~uint64](n N, noun string) string {
	text := strconv.FormatInt(int64(n), 10) + " "
	if n == 1 {
		return text + noun
	}
	if stem, ok := strings.CutSuffix(noun, "y"); ok {
		return text + stem + "ies"
	}
	return text + noun + "s"
}
