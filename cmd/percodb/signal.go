package main

import (
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

// stopAtSecondSignal ends the process at once on another signal while it drains. Nothing committed
// is lost by that: it is what kill -9 does.
func stopAtSecondSignal() {
	again := make(chan os.Signal, 1)
	signal.Notify(again, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-again
		fmt.Fprintln(os.Stderr, "percodb: stopped without draining")
		os.Exit(1)
	}()
}
