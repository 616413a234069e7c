package run

import (
	"fmt"
	"math"
	"net"
	"net/url"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/percodb/percodb/bench/tpce/gen"
	"github.com/percodb/percodb/bench/tpce/mix"
	"github.com/percodb/percodb/bench/tpce/report"
	"github.com/percodb/percodb/bench/tpce/txn"
)

// Rules by which a run is valid. The bounds of the ratio are those of public tools; the time in which
// maintenance must finish is from memory of the specification.
const (
	lowestRatio     = 0.80
	highestRatio    = 1.02
	maintenanceTime = 55 * time.Second
	// queueSeconds of nominal work may wait for the market's connections, and customers as long for theirs:
	// if more wait, the server does not keep up.
	queueSeconds = 5.0
)

// result assembles the measurements, and decides whether they are valid.
func (d *driver) result(started time.Time, m measurement, interrupted bool) *report.Result {
	scale := d.loaded.Settings.Scale
	res := &report.Result{
		Label: d.o.Label, Started: started, Settings: d.o.Settings, Paced: d.o.paced(), Nominal: d.nominal,
		Server: report.Server{Version: d.version, URLs: withoutPasswords(d.o.URLs)},
		Scale: report.Scale{Customers: scale.Customers, ActiveCustomers: d.o.ActiveCustomers, TradeDays: scale.TradeDays,
			TradesPerCustomer: scale.TradesPerCustomer, MarketDays: scale.MarketDays, NewsBytes: scale.NewsBytes, Seed: scale.Seed,
			GeneratorVersion: d.loaded.Settings.Generator, ForeignKeys: d.loaded.Settings.ForeignKeys},
		Interval: report.Interval{RampS: m.ramp.Seconds()},
		MEE:      &report.MEE{Pending: m.pending, Triggers: m.triggered, MF: m.feeds, QueueMax: m.queueMax},
	}
	if !res.Paced {
		res.Nominal = 0
	}
	if len(m.used.Nodes) > 0 {
		res.CPU = &report.CPU{ServerS: m.used.Server(), DriverS: m.used.Driver, SharedMachine: shared(d.o.URLs)}
		for _, n := range m.used.Nodes {
			res.CPU.PerNode = append(res.CPU.PerNode, report.NodeCPU{Name: n.Name, Seconds: n.Seconds})
		}
	}
	if d.journal != nil {
		counts := d.journal.Counts()
		res.Journal = &report.Journal{Acked: counts.Acknowledged, Unknown: counts.Unknown}
	}
	d.rec.Fill(res)
	res.Flags = d.flags(m)
	res.Reasons = d.reasons(res, m, interrupted)
	res.Valid = len(res.Reasons) == 0
	return res
}

// ratioBounds returns the shares of the nominal rate between which a run is valid that is expected to complete so many
// trades. Customers arrive at random: deviations within three standard deviations may be chance.
func ratioBounds(expected float64) (lowest, highest float64) {
	chance := 3 / math.Sqrt(max(expected, 1))
	return min(lowestRatio, 1-chance), max(highestRatio, 1+chance)
}

// reasons returns why the run is invalid.
func (d *driver) reasons(res *report.Result, m measurement, interrupted bool) []string {
	var r []string
	say := func(format string, args ...any) { r = append(r, fmt.Sprintf(format, args...)) }
	if interrupted || !m.whole {
		say("it was interrupted after %.0f s of the measured time", res.Interval.MeasureS)
	}
	lowest, highest := ratioBounds(d.nominal * res.Interval.MeasureS)
	switch {
	case !res.Paced:
		say("customers came without a pace")
	case res.Ratio < lowest:
		say("%.1f %% of the nominal rate is less than %.0f %%: the scale is too big for the server", 100*res.Ratio, 100*lowest)
	case res.Ratio > highest:
		say("%.1f %% of the nominal rate is more than %.0f %%: longer runs come closer", 100*res.Ratio, 100*highest)
	}
	r = append(append(r, res.MixOff()...), res.LimitsBroken()...)
	for k := range mix.Kind(mix.Kinds) {
		if t := res.Of(k); t.Failed+t.Unknown > 0 {
			say("%d transactions of kind %s failed, and %d ended with an outcome unknown", t.Failed, k, t.Unknown)
		}
	}
	if t := res.Of(mix.DataMaintenance); t.LatencyMS.Max > float64(maintenanceTime.Milliseconds()) {
		say("a Data-Maintenance took %.0f s, more than %v", t.LatencyMS.Max/1000, maintenanceTime)
	}
	if !res.Paced {
		return r
	}
	if limit := max(d.nominal*queueSeconds, float64(d.o.MEEConns)); float64(m.queueEnd) > limit && m.queueEnd > m.queueStart {
		say("at the end %d trades and feeds waited for a connection, %d at the beginning", m.queueEnd, m.queueStart)
	}
	if m.behind.Seconds() > queueSeconds {
		say("at the end customers waited %.1f s for a connection", m.behind.Seconds())
	}
	return r
}

// What the specification requires, as far as flags record it.
const (
	specCustomers = 5000
	specRamp      = 15 * time.Minute
	specMeasured  = 2 * time.Hour
	// busyDriver is the maximum share of its processors that a driver may use: beyond, its own queues count too.
	busyDriver = 0.7
)

// flags returns the departures from the specification.
func (d *driver) flags(m measurement) []string {
	var f []string
	flag := func(on bool, format string, args ...any) {
		if on {
			f = append(f, fmt.Sprintf(format, args...))
		}
	}
	scale, set := d.loaded.Settings.Scale, d.o.Transactions
	spec, err := gen.Profile("spec")
	flag(err == nil && (scale.TradeDays < spec.TradeDays || scale.TradesPerCustomer > 0), "trade-days=%d", scale.TradeDays)
	flag(scale.TradesPerCustomer > 0, "trades-per-customer=%d", scale.TradesPerCustomer)
	flag(err == nil && scale.MarketDays < spec.MarketDays, "market-days=%d", scale.MarketDays)
	flag(err == nil && scale.NewsBytes < spec.NewsBytes, "news-bytes=%d", scale.NewsBytes)
	flag(scale.Customers < specCustomers, "customers=%d", scale.Customers)
	flag(!d.loaded.Settings.ForeignKeys, "foreign-keys=off")
	flag(set.Isolation != txn.Spec && set.Isolation != txn.Serializable, "isolation=%s", set.Isolation)
	flag(set.BrokerWrites != txn.Inline, "broker-writes=%s", set.BrokerWrites)
	flag(d.o.PricePeriod != defaultPricePeriod, "price-period=%v", d.o.PricePeriod)
	flag(d.o.MaintainEvery != defaultMaintainEvery, "maintain-every=%v", d.o.MaintainEvery)
	flag(d.o.Weights != [mix.Kinds]int{}, "mix=custom")
	flag(d.o.Max, "pace=max")
	flag(!d.o.Max && d.o.Factor != 1, "pace=nominal:%v", d.o.Factor)
	flag(d.o.Uniform, "arrivals=uniform")
	flag(m.ramp < specRamp-time.Second, "ramp=%v", d.o.Ramp)
	flag(d.o.Duration < specMeasured, "duration=%v", d.o.Duration)
	flag(d.o.SkipCleanup, "cleanup=off")
	if share := m.used.Driver / max(m.seconds, 1e-9) / float64(runtime.NumCPU()); share > busyDriver {
		flag(true, "driver-cpu=%.0f%%", 100*share)
		d.o.Notice(fmt.Sprintf("the driver used %.0f %% of its processors: what it measured is its own times too", 100*share))
	}
	return f
}

// withoutPasswords returns the URLs without passwords.
func withoutPasswords(urls []string) []string {
	var shown []string
	for _, text := range urls {
		c, err := pgx.ParseConfig(text)
		if err != nil {
			shown = append(shown, "(not a URL)")
			continue
		}
		u := url.URL{Scheme: "postgres", User: url.User(c.User), Host: net.JoinHostPort(c.Host, strconv.Itoa(int(c.Port))), Path: "/" + c.Database}
		shown = append(shown, u.String())
	}
	return shown
}

// shared reports whether a server runs on the driver's machine, judging by its address.
func shared(urls []string) bool {
	for _, text := range urls {
		c, err := pgx.ParseConfig(text)
		if err != nil {
			continue
		}
		ip := net.ParseIP(c.Host)
		if strings.HasPrefix(c.Host, "/") || c.Host == "localhost" || ip != nil && ip.IsLoopback() {
			return true
		}
	}
	return false
}
