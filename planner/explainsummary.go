package planner

import (
	"fmt"
	"strings"
	"time"
)

// ExplainSummary is what EXPLAIN says of a statement as a whole.
type ExplainSummary struct {
	Planning, Execution time.Duration    // 0: not shown
	Requests            *ExplainRequests // nil: not shown
}

// ExplainRequests are the requests to the stores that a statement has sent before its commit.
type ExplainRequests struct {
	Reads      int64 `json:"Read Requests"` // for keys by name
	ReadKeys   int64 `json:"Keys Read"`
	Scans      int64 `json:"Scan Requests"` // for pages of spans
	ScanRows   int64 `json:"Rows Scanned"`
	Locks      int64 `json:"Lock Requests"`
	LockedKeys int64 `json:"Keys Locked"`
}

// Lines prints the summary as text.
func (s *ExplainSummary) Lines() (lines []string) {
	if s.Requests != nil {
		lines = append(lines, s.Requests.line())
	}
	if s.Planning > 0 {
		lines = append(lines, fmt.Sprintf("Planning Time: %.3f ms", s.Planning.Seconds()*1e3))
	}
	if s.Execution > 0 {
		lines = append(lines, fmt.Sprintf("Execution Time: %.3f ms", s.Execution.Seconds()*1e3))
	}
	return lines
}

func (r *ExplainRequests) line() string {
	var parts []string
	for _, p := range []struct {
		kind        string
		requests    int64
		what        string
		keysAndRows int64
	}{
		{"read", r.Reads, "keys", r.ReadKeys}, {"scan", r.Scans, "rows", r.ScanRows}, {"lock", r.Locks, "keys", r.LockedKeys},
	} {
		if p.requests > 0 {
			parts = append(parts, fmt.Sprintf("%s=%d (%s=%d)", p.kind, p.requests, p.what, p.keysAndRows))
		}
	}
	if parts == nil {
		parts = []string{"none"}
	}
	return "Requests: " + strings.Join(parts, " ")
}
