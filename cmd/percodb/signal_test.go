package main

import (
	"os"
	"syscall"
	"testing"
	"time"
)

// Goal: each SIGHUP loads files again, and ends nothing.
func TestHangupReloads(t *testing.T) {
	called := make(chan struct{}, 1)
	end := reloadAtHangup(func() { called <- struct{}{} })
	defer end()
	for range 3 {
		if err := syscall.Kill(os.Getpid(), syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
		select {
		case <-called:
		case <-time.After(time.Minute):
			t.Fatal("nothing was loaded")
		}
	}
}
