package server

import (
	"context"
	"encoding/json"
	"net/http"
	"sync"
)

// CheckReport receives the results of a check. Its functions are called by one goroutine at a time.
type CheckReport struct {
	Finding  func(text string)                // something is wrong
	Note     func(text string)                // what was checked or omitted
	Progress func(what string, records int64) // now and then
	// Expect reports a part of the data that exists, Verified one that was verified: a check of several processes is
	// complete if the second lists everything that the first lists.
	Expect, Verified func(part string)
}

// CheckEvent is a line of the answer to POST /check, in JSON: one of its fields is set. The last line has
// Done; if it is missing the check was cut short.
type CheckEvent struct {
	Finding  string `json:"finding,omitempty"`
	Note     string `json:"note,omitempty"`
	What     string `json:"what,omitempty"` // Records of this kind have been checked
	Records  int64  `json:"records,omitempty"`
	Expect   string `json:"expect,omitempty"`
	Verified string `json:"verified,omitempty"`
	Done     bool   `json:"done,omitempty"`
	Error    string `json:"error,omitempty"` // set with Done: the error that ended the check early
}

// serveCheck runs a check and streams its results. One check runs at a time, because it reads all data.
func serveCheck(check func(context.Context, CheckReport) error) http.HandlerFunc {
	running := make(chan struct{}, 1)
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost {
			w.Header().Set("Allow", http.MethodPost)
			http.Error(w, "a check is asked for by POST", http.StatusMethodNotAllowed)
			return
		}
		select {
		case running <- struct{}{}:
		default:
			http.Error(w, "another check is running", http.StatusConflict)
			return
		}
		finish := sync.OnceFunc(func() { <-running })
		defer finish()
		w.Header().Set("Content-Type", "application/x-ndjson")
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		lines, flush := json.NewEncoder(w), http.NewResponseController(w)
		say := func(e CheckEvent) {
			if lines.Encode(e) != nil || flush.Flush() != nil {
				cancel() // the client has disconnected
			}
		}
		err := check(ctx, CheckReport{
			Finding:  func(text string) { say(CheckEvent{Finding: text}) },
			Note:     func(text string) { say(CheckEvent{Note: text}) },
			Progress: func(what string, records int64) { say(CheckEvent{What: what, Records: records}) },
			Expect:   func(part string) { say(CheckEvent{Expect: part}) },
			Verified: func(part string) { say(CheckEvent{Verified: part}) },
		})
		last := CheckEvent{Done: true}
		if err != nil {
			last.Error = err.Error()
		}
		finish() // before the client learns that it may begin the next one
		say(last)
	}
}
