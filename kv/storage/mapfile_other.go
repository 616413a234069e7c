//go:build !linux

package storage

// mapFile returns nil: elsewhere a sync of a file may not include what was written to its mapping.
func mapFile(uintptr, int) []byte { return nil }

func unmapFile([]byte) error { return nil }
