//go:build !(invariants || race)

// Package invariants says at compile time whether checks that are too dear for production are built
// in. They are under the build tags invariants and race; elsewhere the compiler drops them whole.
package invariants

// Enabled reports whether expensive checks are built in.
const Enabled = false
