// Package kvtest is the conformance suite of kv.Shard and kv.Router: what every engine under the transaction layer
// must do, request by request and error by error. An implementation calls Run from a test of its own with a Factory.
//
//	func TestConformance(t *testing.T) { kvtest.Run(t, open) }
//
// Every case runs twice: with each request delivered once, and with each acknowledged request that may be repeated
// delivered twice in a row. In both, when the case is over, its acknowledged requests arrive once more, late and in
// another order; whatever was readable before must be as it was. Cases that need a capability which the shard does
// not state are skipped. When all have run, Run fails unless every method of the interfaces was called and every
// error in provoked was seen.
//
// Scenarios of the protocol are transcripts of requests and answers in testdata/proto, which RunTranscripts executes against
// an engine in the same ways.
//
// A duplicate and a late duplicate are the same request: requests carry no sequence numbers. Failures of the medium
// (*kv.UnavailableError, *kv.DiskFullError, *kv.CorruptionError) are not provoked here.
package kvtest

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/percodb/percodb/kv"
	"github.com/percodb/percodb/tso"
)

// Engine is an implementation under test, empty when a case begins. All keys lie on one shard. The engine uses only the
// oracle of the Factory as a source of time.
type Engine struct {
	Router kv.Router
	// Split makes key the first of a range, on the same shard. nil: the engine does not split on request.
	Split func(ctx context.Context, key []byte) error
	// Restart ends the engine and starts it again with what was durable. The Router stays valid. nil: it cannot.
	Restart func(t testing.TB)
	// Careless has the changes that do requests made whatever is in their way, as by an engine that has forgotten to look. nil: it cannot.
	Careless func(do func())
	// Close ends the shard, so that its requests fail.
	Close func()
}

// Factory opens an engine for one case. It registers its own cleanup with t.
type Factory func(t testing.TB, oracle tso.Oracle) *Engine

// Case is one statement of the contract. Needs names the capabilities, separated by blanks, without which it is skipped.
type Case struct {
	Name  string
	Needs string
	run   func(e *env)
}

// Cases lists the suite.
func Cases() []Case {
	return slices.Concat(getCases, scanCases, prewriteCases, onePhaseCases, asyncCases, commitCases, statusCases,
		lockCases, queueCases, refreshCases, collectCases, notifyCases, lifeCases, routerCases, deliveryCases)
}

// deliveries is how often an acknowledged request arrives while a case runs.
var deliveries = []struct {
	name  string
	twice bool
}{{"once", false}, {"twice", true}}

// Run runs the suite against the engine that open opens.
func Run(t *testing.T, open Factory) {
	seen := &coverage{requests: map[string]bool{}, errors: map[reflect.Type]bool{}}
	ran, skipped := 0, 0
	for _, c := range Cases() {
		for _, d := range deliveries {
			t.Run(c.Name+"/"+d.name, func(t *testing.T) {
				ran++
				e := newEnv(t, open, seen)
				defer e.cancel()
				for _, need := range strings.Fields(c.Needs) {
					if !e.has(need) {
						skipped++
						t.Skipf("the shard does not state %s", need)
					}
				}
				e.recorder.twice = d.twice
				c.run(e)
				if !t.Failed() {
					e.replay()
				}
			})
		}
	}
	t.Logf("%d cases, each delivered in %d ways, %d runs skipped", len(Cases()), len(deliveries), skipped)
	if ran == len(Cases())*len(deliveries) && !t.Failed() {
		seen.check(t, skipped == 0)
	}
}

// has reports whether the shard states a capability, or the engine offers what a case needs.
func (e *env) has(need string) bool {
	switch need {
	case "Split":
		return e.engine.Split != nil
	case "Restart":
		return e.engine.Restart != nil
	case "Careless":
		return e.engine.Careless != nil
	case "Network": // unverifiable timestamps from another process are rejected
		return !e.caps.ExactlyOnce
	}
	f := reflect.ValueOf(e.caps).FieldByName(need)
	if !f.IsValid() {
		e.Fatalf("no capability %s", need)
	}
	return f.Bool()
}

// check fails unless all requests and, if no case was skipped, all errors have been seen.
func (c *coverage) check(t *testing.T, all bool) {
	var missing []string
	for _, typ := range []reflect.Type{reflect.TypeFor[kv.Shard](), reflect.TypeFor[kv.Router]()} {
		for i := range typ.NumMethod() {
			if name := typ.Method(i).Name; !c.requests[name] {
				missing = append(missing, typ.String()+"."+name)
			}
		}
	}
	for _, err := range provoked {
		if typ := reflect.TypeOf(err); all && !c.errors[typ] {
			missing = append(missing, fmt.Sprint(typ))
		}
	}
	if len(missing) > 0 {
		t.Errorf("not exercised: %s", strings.Join(missing, ", "))
	}
}
