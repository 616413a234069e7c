package storage

import (
	"math/rand/v2"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// MemFS is a filesystem in memory, for tests.
type MemFS = vfs.MemFS

// NewMemFS returns an empty filesystem in memory.
func NewMemFS() *MemFS { return vfs.NewMem() }

// NewCrashableMemFS returns an empty filesystem in memory that CrashClone accepts.
func NewCrashableMemFS() *MemFS { return vfs.NewCrashableMem() }

// CrashClone returns the state of fs after a power cut at this moment: everything that was synced, and of the rest each
// block with a probability of unsyncedPercent, drawn from rng (unused if 0).
func CrashClone(fs *MemFS, unsyncedPercent int, rng *rand.Rand) *MemFS {
	return fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: unsyncedPercent, RNG: rng})
}
