package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/percodb/percodb/bench/tpce/mix"
)

// Schema identifies the JSON format of a Result.
const Schema = "percodb.tpce/1"

// Result is the result of one run, or of several merged. Rates are per second. Its JSON is one object.
type Result struct {
	Schema string `json:"schema"`
	// Label names the run in tables and pages.
	Label   string    `json:"label,omitempty"`
	Started time.Time `json:"started"`
	Server  Server    `json:"server"`
	Scale   Scale     `json:"scale"`
	// Settings contains every flag of the run by name.
	Settings map[string]string `json:"settings"`
	// Flags are the run's departures from the specification.
	Flags    []string `json:"flags"`
	Interval Interval `json:"interval"`
	// Paced is true if arrivals were an open loop. Otherwise Nominal and Ratio are undefined.
	Paced bool `json:"paced"`
	// Nominal and MeasuredTR are Trade-Results per second, Ratio is MeasuredTR / Nominal.
	Nominal    float64 `json:"nominal"`
	MeasuredTR float64 `json:"measured_tr"`
	Ratio      float64 `json:"ratio"`
	// Valid reports whether the run is valid, Reasons why it is not.
	Valid   bool     `json:"valid"`
	Reasons []string `json:"reasons"`
	// The key of Types is mix.Fact.Flag ("trade-order").
	Types  map[string]*Type `json:"types"`
	MEE    *MEE             `json:"mee,omitempty"`
	CPU    *CPU             `json:"cpu,omitempty"`
	Series []Point          `json:"series"`
	// Checker is the report of `percodb bench tpce check`, if one was made.
	Checker json.RawMessage `json:"checker,omitempty"`
	Journal *Journal        `json:"journal,omitempty"`
	// Merged is the number of results from which this one was merged, 0 if it was not.
	Merged int `json:"merged,omitempty"`
}

// Server is the measured server.
type Server struct {
	Version string   `json:"version"` // version() of the first
	URLs    []string `json:"urls"`    // without passwords
}

// Scale is the size of the database.
type Scale struct {
	Customers         int64 `json:"customers"`
	ActiveCustomers   int64 `json:"active_customers"`
	TradeDays         int64 `json:"trade_days,omitempty"`
	TradesPerCustomer int64 `json:"trades_per_customer,omitempty"`
	MarketDays        int64 `json:"market_days"`
	NewsBytes         int64 `json:"news_bytes"`
	Seed              int64 `json:"seed"`
	GeneratorVersion  int   `json:"generator_version"`
	ForeignKeys       bool  `json:"foreign_keys"`
}

// Interval contains the durations of the run, in seconds.
type Interval struct {
	RampS    float64 `json:"ramp_s"`
	MeasureS float64 `json:"measure_s"`
}

// Type contains the measurements of one kind of transaction in the measured time.
type Type struct {
	// Count is the number of committed transactions, including Trade-Orders that were rolled back as intended.
	Count int64 `json:"count"`
	// Mix is the share of Count in the mix, Target the required share, both in percent.
	Mix    float64 `json:"mix"`
	Target float64 `json:"target"`
	// Rate is Count per second.
	Rate        float64 `json:"rate"`
	Rollbacks   int64   `json:"rollbacks"`
	AlreadyDone int64   `json:"already_done"`
	Unknown     int64   `json:"unknown"`
	Failed      int64   `json:"failed"`
	// Aborts counts attempts that were retried, by SQLSTATE, "connection" for a lost connection.
	Aborts map[string]int64 `json:"aborts"`
	// Retries is the number of transactions with more than one attempt.
	Retries int64 `json:"retries"`
	// Errors counts failed transactions by SQLSTATE or text.
	Errors map[string]int64 `json:"errors"`
	// RoundTrips is the number of times the last attempts waited for the server, in total.
	RoundTrips int64 `json:"round_trips"`
	// LatencyMS begins at the scheduled start, ServiceMS at the actual start. They include Count and AlreadyDone.
	LatencyMS Quantiles `json:"lat_ms"`
	ServiceMS Quantiles `json:"service_ms"`
	// LimitMS is the limit of the ninetieth percentile, 0 for none; Pass reports whether it was kept.
	LimitMS float64 `json:"limit_ms"`
	Pass    bool    `json:"pass"`
	// Histogram and ServiceHistogram are HdrHistograms of microseconds, in their V2 compressed encoding.
	Histogram        string `json:"hist_base64"`
	ServiceHistogram string `json:"service_hist_base64"`
}

// Quantiles are the quantiles of a histogram, in milliseconds.
type Quantiles struct {
	Mean float64 `json:"mean"`
	P50  float64 `json:"p50"`
	P90  float64 `json:"p90"`
	P99  float64 `json:"p99"`
	P999 float64 `json:"p999"`
	Max  float64 `json:"max"`
}

// MEE contains the measurements of the market exchange in the measured time.
type MEE struct {
	Pending  int64 `json:"pending"` // limit orders that wait at the end
	Triggers int64 `json:"triggers"`
	MF       int64 `json:"mf"`
	QueueMax int64 `json:"queue_max"`
}

// CPU is the processor time in the measured time, in seconds.
type CPU struct {
	ServerS float64 `json:"server_s"`
	DriverS float64 `json:"driver_s"`
	// CoresServer and CoresDriver are the processor time divided by the measured time.
	CoresServer float64 `json:"cores_server"`
	CoresDriver float64 `json:"cores_driver"`
	// PerTRS and PerTxS are the server's seconds per Trade-Result and per transaction of the mix,
	// TRPerCore is Trade-Results per second and used core of the server.
	PerTRS    float64   `json:"per_tr_s"`
	PerTxS    float64   `json:"per_tx_s"`
	TRPerCore float64   `json:"tr_per_core"`
	PerNode   []NodeCPU `json:"per_node,omitempty"`
	// SharedMachine is true if driver and server ran on one machine.
	SharedMachine bool `json:"shared_machine"`
}

// NodeCPU is the processor time of one server process, or group of them.
type NodeCPU struct {
	Name    string  `json:"name"`
	Seconds float64 `json:"s"`
}

// Journal contains the counts of the journal, of the whole run.
type Journal struct {
	Acked   int64 `json:"acked"`
	Unknown int64 `json:"unknown"`
}

// Point is one interval of the series. T is its end in seconds since the measuring began, negative
// before. Rates are per second.
type Point struct {
	T       float64 `json:"t"`
	TR      float64 `json:"tr"`
	Tx      float64 `json:"tx"` // transactions of the mix
	TRLatMS Latency `json:"tr_lat_ms"`
	// P90 is in milliseconds by mix.Fact.Code, for kinds that finished in the interval.
	P90      map[string]float64 `json:"p90"`
	Aborts   float64            `json:"aborts"`
	AbortsTR float64            `json:"aborts_tr"`
	// Errors and Unknown are counts.
	Errors  int64 `json:"errors"`
	Unknown int64 `json:"unknown"`
	Gauges
}

// Latency contains quantiles in milliseconds.
type Latency struct {
	P50 float64 `json:"p50"`
	P90 float64 `json:"p90"`
	P99 float64 `json:"p99"`
}

// Gauges are the run's own measurements at the end of an interval.
type Gauges struct {
	// Measuring is false in the ramp.
	Measuring bool `json:"measuring"`
	// Pending is the number of waiting limit orders, MEEQueue that of the exchange's jobs that wait for a connection.
	Pending  int64 `json:"pending"`
	MEEQueue int64 `json:"mee_q"`
	// Late is the share, 0 to 1, of the interval's arrivals for which no worker was free.
	Late float64 `json:"late"`
	// CoresServer and CoresDriver are the average numbers of used cores in the interval.
	CoresServer float64 `json:"cores_srv"`
	CoresDriver float64 `json:"cores_drv"`
}

// Of returns the kind's part of the result, an empty one if there is none.
func (r *Result) Of(k mix.Kind) *Type {
	if t := r.Types[mix.Of(k).Flag]; t != nil {
		return t
	}
	return &Type{}
}

// Transactions returns the number of measured transactions of the mix.
func (r *Result) Transactions() (n int64) {
	for k := range mix.Kind(mix.InMix) {
		n += r.Of(k).Count
	}
	return n
}

// derive computes the fields that depend on counts, histograms and seconds.
func (r *Result) derive() error {
	seconds, all := r.Interval.MeasureS, r.Transactions()
	for k := range mix.Kind(mix.Kinds) {
		t, fact := r.Types[mix.Of(k).Flag], mix.Of(k)
		if t == nil {
			continue
		}
		latency, err := decode(t.Histogram)
		if err != nil {
			return err
		}
		service, err := decode(t.ServiceHistogram)
		if err != nil {
			return err
		}
		t.LatencyMS, t.ServiceMS = quantiles(latency), quantiles(service)
		t.Rate = quotient(float64(t.Count), seconds)
		t.Target, t.Mix = float64(fact.Share)/100, 0
		if int(k) < mix.InMix {
			t.Mix = quotient(100*float64(t.Count), float64(all))
		}
		t.LimitMS = float64(fact.Limit.Milliseconds())
		t.Pass = WithinLimit(k, time.Duration(latency.ValueAtQuantile(90))*time.Microsecond)
	}
	results := float64(r.Of(mix.TradeResult).Count)
	r.MeasuredTR = quotient(results, seconds)
	r.Ratio = 0
	if r.Paced {
		r.Ratio = quotient(r.MeasuredTR, r.Nominal)
	}
	if c := r.CPU; c != nil {
		c.CoresServer, c.CoresDriver = quotient(c.ServerS, seconds), quotient(c.DriverS, seconds)
		c.PerTRS, c.PerTxS = quotient(c.ServerS, results), quotient(c.ServerS, float64(all))
		c.TRPerCore = quotient(results, c.ServerS)
	}
	return nil
}

// quotient returns a/b, or 0 if b is 0.
func quotient(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}

func quantiles(h *hdrhistogram.Histogram) Quantiles {
	return Quantiles{
		Mean: h.Mean() / 1000, P50: millis(h.ValueAtQuantile(50)), P90: millis(h.ValueAtQuantile(90)),
		P99: millis(h.ValueAtQuantile(99)), P999: millis(h.ValueAtQuantile(99.9)), Max: millis(h.Max()),
	}
}

// Write writes the result as JSON.
func (r *Result) Write(w io.Writer) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", " ")
	return encoder.Encode(r)
}

// WriteFile writes the result to a file as JSON.
func (r *Result) WriteFile(path string) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(r.Write(f), f.Close())
}

// WriteHistogramFile writes the response times to a file for tools that read HdrHistograms: a log of
// version 1.3 with a line for each kind, in microseconds. The tag is the kind's name; service times have
// the suffix "-service".
func (r *Result) WriteHistogramFile(path string) error {
	var b bytes.Buffer
	log := hdrhistogram.NewHistogramLogWriter(&b)
	begun := r.measuredFrom()
	ended := begun.Add(time.Duration(r.Interval.MeasureS * float64(time.Second)))
	log.SetBaseTime(begun.UnixMilli())
	err := errors.Join(log.OutputLogFormatVersion(), log.OutputStartTime(begun.UnixMilli()), log.OutputLegend())
	for k := range mix.Kind(mix.Kinds) {
		name, t := mix.Of(k).Flag, r.Of(k)
		for _, line := range []struct{ tag, text string }{{name, t.Histogram}, {name + "-service", t.ServiceHistogram}} {
			h, decoded := decode(line.text)
			if decoded != nil || h.TotalCount() == 0 {
				err = errors.Join(err, decoded)
				continue
			}
			h.SetTag(line.tag)
			h.SetStartTimeMs(begun.UnixMilli())
			h.SetEndTimeMs(ended.UnixMilli())
			err = errors.Join(err, log.OutputIntervalHistogram(h))
		}
	}
	if err != nil {
		return err
	}
	return os.WriteFile(path, b.Bytes(), 0o644)
}

// ReadFile reads a result that WriteFile wrote.
func ReadFile(path string) (*Result, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	r := new(Result)
	if err := json.NewDecoder(f).Decode(r); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if r.Schema != Schema {
		return nil, fmt.Errorf("%s: this is no result of the TPC-E-like workload: its schema is %q, not %q", path, r.Schema, Schema)
	}
	for name, t := range r.Types {
		if t == nil {
			return nil, fmt.Errorf("%s: type %s is null", path, name)
		}
		for _, text := range []string{t.Histogram, t.ServiceHistogram} {
			if _, err := decode(text); err != nil {
				return nil, fmt.Errorf("%s: histogram of %s: %w", path, name, err)
			}
		}
	}
	return r, nil
}

// decode reads a histogram, an empty one from an empty text.
func decode(text string) (*hdrhistogram.Histogram, error) {
	if text == "" {
		return newHistogram(), nil
	}
	return hdrhistogram.Decode([]byte(text))
}

func encode(h *hdrhistogram.Histogram) string {
	text, err := h.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
	if err != nil {
		panic("report: a histogram in memory: " + err.Error()) // not reached: writes to a buffer do not fail
	}
	return string(text)
}
