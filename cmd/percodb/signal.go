package main

import (
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

// stopAtSecondSignal ends the process immediately on a second signal during shutdown. No committed data is lost: the
// effect is that of kill -9.
func stopAtSecondSignal() {
	again := make(chan os.Signal, 1)
	signal.Notify(again, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-again
		fmt.Fprintln(os.Stderr, "percodb: stopped without draining")
		os.Exit(1)
	}()
}
