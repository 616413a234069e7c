//go:build !(invariants || race)

// Package invariants determines at compile time whether checks that are too expensive for production are included. They
// are included by the build tags invariants and race; otherwise the compiler removes them.
package invariants

// Enabled reports whether expensive checks are built in.
const Enabled = false
