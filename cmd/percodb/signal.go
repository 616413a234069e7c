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

// reloadAtHangup calls reload at every SIGHUP, until end is called.
func reloadAtHangup(reload func()) (end func()) {
	hangups, stop, stopped := make(chan os.Signal, 1), make(chan struct{}), make(chan struct{})
	signal.Notify(hangups, syscall.SIGHUP)
	go func() {
		defer close(stopped)
		for {
			select {
			case <-hangups:
			case <-stop:
				return
			}
			reload()
		}
	}()
	return func() {
		signal.Stop(hangups)
		close(stop)
		<-stopped
	}
}
