//go:build race

package wire_test

// raceEnabled: the race detector allocates memory.
const raceEnabled = true
