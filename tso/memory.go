package tso

import (
	"context"
	"sync"
)

// MemoryWindow is a WindowStore that lasts as long as the process: for tests, and for oracles whose
// timestamps need not outlive it. The zero value is empty. Safe for concurrent use.
type MemoryWindow struct {
	mu    sync.Mutex
	upper Timestamp
}

// Load implements WindowStore.
func (m *MemoryWindow) Load(context.Context) (Timestamp, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.upper, nil
}

// Save implements WindowStore.
func (m *MemoryWindow) Save(_ context.Context, upper Timestamp) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.upper = upper
	return nil
}
