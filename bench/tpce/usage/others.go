package usage

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// cgroup is a control group.
type cgroup struct {
	dir string
	counter
}

func (c *cgroup) name() string { return c.dir }

// seconds implements source.
func (c *cgroup) seconds(context.Context) (float64, error) {
	b, err := os.ReadFile(filepath.Join(c.dir, "cpu.stat"))
	if err != nil {
		return c.sum, err
	}
	for line := range strings.Lines(string(b)) {
		if text, ok := strings.CutPrefix(line, "usage_usec "); ok {
			us, err := strconv.ParseUint(strings.TrimSpace(text), 10, 64)
			if err != nil {
				return c.sum, fmt.Errorf("cpu.stat: %w", err)
			}
			return c.add(float64(us) / 1e6), nil
		}
	}
	return c.sum, fmt.Errorf("%s/cpu.stat has no usage_usec", c.dir)
}

// endpoint is a server with a metrics endpoint.
type endpoint struct {
	url    string
	client *http.Client
	counter
}

func (e *endpoint) name() string { return e.url }

const cpuMetric = "process_cpu_seconds_total"

// seconds implements source.
func (e *endpoint) seconds(ctx context.Context) (float64, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, e.url, nil)
	if err != nil {
		return e.sum, err
	}
	req.Header.Set("Accept", "text/plain")
	res, err := e.client.Do(req)
	if err != nil {
		return e.sum, err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return e.sum, fmt.Errorf("the server says %s", res.Status)
	}
	lines := bufio.NewScanner(res.Body)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) < 2 || fields[0] != cpuMetric {
			continue
		}
		v, err := strconv.ParseFloat(fields[1], 64)
		if err != nil {
			return e.sum, fmt.Errorf("%s: %w", cpuMetric, err)
		}
		return e.add(v), nil
	}
	if err := lines.Err(); err != nil {
		return e.sum, err
	}
	return e.sum, fmt.Errorf("the server has no %s", cpuMetric)
}

// counter accumulates a count that restarts at 0 when the server restarts.
type counter struct {
	sum, last float64
}

func (c *counter) add(v float64) float64 {
	if v >= c.last {
		c.sum += v - c.last
	} else {
		c.sum += v
	}
	c.last = v
	return c.sum
}
