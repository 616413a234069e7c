package sim

import (
	"flag"
	"io"
	"os"
	"strings"
	"testing"
	"time"
)

var (
	seedFlag   = flag.Uint64("seed", 0, "the seed that TestSeed replays")
	seedsFlag  = flag.Uint64("seeds", 200, "how many seeds TestSeeds runs, from 0 on")
	eventsFlag = flag.Bool("events", false, "print every event of TestSeed")
)

func TestSeed(t *testing.T) {
	var trace io.Writer
	if *eventsFlag {
		trace = os.Stdout
	}
	r := simulate(t, *seedFlag, nil, trace)
	t.Logf("seed %d: %v: %d events, %v, digest %x", *seedFlag, &r.plan, r.events, r.took, r.digest)
	if r.failed() {
		t.Error(r.report(*seedFlag))
	}
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}

func TestOne(t *testing.T) {
	begin := time.Now()
	for seed := range uint64(*seedsFlag) {
		r := simulate(t, seed, nil, nil)
		if r.failed() {
			t.Error(r.report(seed))
		}
	}
	t.Log(time.Since(begin))
}
