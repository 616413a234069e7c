package mvcc

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/cockroachdb/datadriven"

	"github.com/percodb/percodb/tso"
)

// The commands of transcripts about notifications.

// notifySet parses observers and hop: 1,2/3.
func (s *transcript) notifySet(text string) (n NotifySet) {
	observers, hop, _ := strings.Cut(text, "/")
	if hop != "" {
		n.Hop = uint8(s.number(hop))
	}
	for _, o := range strings.Split(observers, ",") {
		n.Observers = append(n.Observers, s.number(o))
	}
	return n
}

func (s *transcript) number(text string) uint64 {
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		s.t.Fatal(err)
	}
	return n
}

func showCell(latest tso.Timestamp, hop uint8) string {
	text := "@ " + show(latest)
	if hop != 0 {
		text += fmt.Sprintf(" hop %d", hop)
	}
	return text
}

// notify executes the requests about cells. Without an argument observer it is observer 1.
func (s *transcript) notify(ctx context.Context, d *datadriven.TestData) (string, error) {
	observer := uint64(1)
	if d.HasArg("observer") {
		observer = s.number(s.arg(d, "observer"))
	}
	switch d.Cmd {
	case "notifyclear":
		var cells []NotifyUpTo
		for _, key := range s.keys(d) {
			cells = append(cells, NotifyUpTo{Key: key, UpTo: s.at(d, "ts")})
		}
		cleared, err := s.NotifyClear(admitAll{}, observer, cells)
		return fmt.Sprintf("%d cleared", cleared), err
	case "notifyput":
		return "", s.NotifyPut(ctx, admitAll{}, observer, s.keys(d), s.at(d, "ts"), 0)
	case "notifydrop":
		return "", s.NotifyDrop([]byte(s.arg(d, "from")), []byte(s.arg(d, "to")), observer)
	}
	limit := 100
	if d.HasArg("limit") {
		limit = int(s.number(s.arg(d, "limit")))
	}
	page, err := s.NotifyScan(ctx, []byte(s.arg(d, "from")), []byte(s.arg(d, "to")), observer, limit, 1<<20)
	if err != nil {
		return "", err
	}
	var out strings.Builder
	for _, c := range page.Cells {
		fmt.Fprintf(&out, "%s %s\n", c.Key, showCell(c.Latest, c.Hop))
	}
	if page.ResumeKey != nil {
		fmt.Fprintf(&out, "resume at %q\n", page.ResumeKey)
	}
	if out.Len() == 0 {
		return "nothing", nil
	}
	return out.String(), nil
}
