package storage

import "syscall"

// mapFile maps the first size bytes of an open file, which have been written, into memory, shared: a sync of the file
// includes what is written there. It returns nil if the file cannot be mapped.
func mapFile(fd uintptr, size int) []byte {
	b, err := syscall.Mmap(int(fd), 0, size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	if err != nil {
		return nil
	}
	return b
}

func unmapFile(b []byte) error {
	if b == nil {
		return nil
	}
	return syscall.Munmap(b)
}
