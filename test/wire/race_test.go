//go:build race

package wire_test

// raceEnabled: the race detector allocates, too.
const raceEnabled = true
