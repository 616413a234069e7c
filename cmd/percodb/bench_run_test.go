package main

import (
	"strings"
	"testing"

	"github.com/percodb/percodb/bench/tpce/mix"
	"github.com/percodb/percodb/bench/tpce/run"
	"github.com/percodb/percodb/bench/tpce/txn"
)

// TestRunFlags: flags become the options they name, and what makes no sense is refused with the flag's
// name. Method: the command's own flags, parsed.
func TestRunFlags(t *testing.T) {
	parse := func(args ...string) (runFlags, error) {
		var f runFlags
		cmd := tpceRunCommand()
		cmd.ResetFlags()
		f.add(cmd.Flags())
		if err := cmd.ParseFlags(args); err != nil {
			return f, err
		}
		return f, f.complete(cmd.Flags())
	}
	f, err := parse("--pace", "nominal:2.5", "--arrivals", "uniform", "--mw", "loop", "--lookup", "loop", "--mf-txn", "batch", "--pipeline=false",
		"--instance", "1/3", "--broker-writes", "side-table", "--trade-ids", "scatter", "--isolation", "spec", "--mix", "trade-order=3,market-watch=1",
		"--url", "postgres://u:secret@h/d", "--server-pids", "12,@/tmp/x")
	if err != nil {
		t.Fatal(err)
	}
	set := f.Transactions
	if f.Factor != 2.5 || f.Max || !f.Uniform || !set.MarketWatchLoop || !set.LookupLoop || !set.FeedBatch || set.Pipeline || f.Instance != 1 || f.Instances != 3 ||
		set.BrokerWrites != txn.SideTable || f.IDs != run.Scatter || set.Isolation != txn.Spec || f.Weights[mix.TradeOrder] != 3 || f.Weights[mix.MarketWatch] != 1 ||
		len(f.Usage.PIDs) != 2 {
		t.Errorf("%+v", f)
	}
	if f.Settings["pace"] != "nominal:2.5" || f.Settings["mee-conns"] != "16" || f.Settings["isolation"] != "spec" || len(f.Settings) < 35 {
		t.Errorf("%v", f.Settings)
	}
	for name, value := range f.Settings {
		if strings.Contains(value, "secret") {
			t.Errorf("--%s shows a password", name)
		}
	}
	if f, err := parse(); err != nil || f.Max || f.Factor != 1 || !f.Transactions.Pipeline || f.Weights != [mix.Kinds]int{} || f.Instances != 1 {
		t.Errorf("%+v, %v", f, err)
	}
	if f, err := parse("--pace", "max", "--mix", "TR-only"); err != nil || !f.Max || f.Weights[mix.TradeOrder] == 0 {
		t.Errorf("%+v, %v", f, err)
	}
	for _, bad := range []string{"--pace=fast", "--pace=max:2", "--pace=nominal:x", "--pace=nominal:-1", "--mw=x", "--lookup=x", "--mf-txn=x", "--arrivals=x",
		"--instance=1", "--instance=1/x", "--instance=0/0", "--instance=0/2x", "--mix=none", "--mix=trade-order", "--mix=trade-order=-1", "--mix=trade-order=0", "--mix=x=1"} {
		if _, err := parse(bad); err == nil || !strings.Contains(err.Error(), strings.Split(bad, "=")[0]) {
			t.Errorf("%s: %v", bad, err)
		}
	}
}
