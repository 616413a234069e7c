//go:build cgo

package memory

// cacheOnHeap: the storage engine's cache is a part of the Go heap. With cgo it is allocated outside.
const cacheOnHeap = false
