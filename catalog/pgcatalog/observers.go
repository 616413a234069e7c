package pgcatalog

import (
	"strconv"
	"strings"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/sql/builtin"
	"github.com/percodb/percodb/sql/keyword"
	"github.com/percodb/percodb/sql/types"
	"github.com/percodb/percodb/tso"
)

// The rows of percodb.observers and percodb.observer_errors. Observers are not listed as triggers: clients that copy a schema from
// pg_trigger would take them for what runs within the writer's transaction.

var observerStates = map[catalog.ObserverState]string{
	catalog.ObserverEnabled: "enabled", catalog.ObserverDisabled: "disabled", catalog.ObserverSeeding: "seeding",
}

// observerOptions are an observer's options as WITH takes them.
func observerOptions(o *catalog.ObserverDescriptor) []string {
	return []string{
		"concurrency=" + strconv.Itoa(o.Concurrency), "batch=" + strconv.Itoa(o.Batch), "max_attempts=" + strconv.Itoa(o.MaxAttempts),
		"weak=" + strconv.FormatBool(o.Weak),
	}
}

// observerDefinition is the CREATE OBSERVER statement of an observer.
func observerDefinition(t *catalog.TableDescriptor, o *catalog.ObserverDescriptor) string {
	var b strings.Builder
	b.WriteString("CREATE OBSERVER " + keyword.QuoteIdent(o.Name) + " ON " + keyword.QuoteIdent(t.Schema) + "." + keyword.QuoteIdent(t.Name))
	if len(o.Columns) > 0 {
		names := make([]string, len(o.Columns))
		for i, id := range o.Columns {
			names[i] = columnName(t, id)
		}
		b.WriteString(" (" + strings.Join(names, ", ") + ")")
	}
	if o.When != "" {
		b.WriteString(" WHEN (" + o.When + ")")
	}
	b.WriteString(" WITH (" + strings.ReplaceAll(strings.Join(observerOptions(o), ", "), "=", " = ") + ")")
	if o.Body != "" {
		b.WriteString(" AS " + dollarQuote(o.Body))
	}
	return b.String()
}

// dollarQuote quotes a text with a tag that it does not contain.
func dollarQuote(text string) string {
	tag := "$$"
	for i := 0; strings.Contains(text, tag); i++ {
		tag = "$body" + strconv.Itoa(i) + "$"
	}
	if strings.HasSuffix(text, "$") {
		return builtin.QuoteLiteral(text)
	}
	return tag + text + tag
}

func (s *scan) eachObserver(f func(t *catalog.TableDescriptor, o *catalog.ObserverDescriptor) error) error {
	all, err := s.Relations(s.ctx)
	if err != nil {
		return err
	}
	for _, t := range all {
		for i := range t.Observers {
			if !s.sees(t.Observers[i].OwnerOID()) && !s.sees(t.OwnerOID()) {
				continue
			}
			if err := f(t, &t.Observers[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

func observerRows(s *scan) error {
	var activity map[uint64]catalog.ObserverActivity
	var now tso.Timestamp
	if s.view != nil {
		var err error
		if activity, err = s.view.ObserverActivity(s.ctx); err != nil {
			return err
		}
		oracle, err := s.view.Oracle(s.ctx)
		if err != nil {
			return err
		}
		now = oracle.Now
	}
	return s.eachObserver(func(t *catalog.TableDescriptor, o *catalog.ObserverDescriptor) error {
		columns, names := types.Null, make([]string, 0, len(o.Columns))
		for _, id := range o.Columns {
			names = append(names, t.Columns[t.Ordinal(id)].Name)
		}
		if len(names) > 0 {
			columns = textArray(names)
		}
		seeded := types.Null
		a := activity[o.ID]
		if o.State == catalog.ObserverSeeding {
			seeded = num(a.Seeded)
		}
		age := types.Null
		if a.Oldest != 0 {
			age = millis(max(0, now.Physical()-a.Oldest.Physical()))
		}
		return s.emit(col{"name", text(o.Name)}, col{"schema_name", text(t.Schema)}, col{"table_name", text(t.Name)},
			col{"columns", columns}, col{"condition", optional(o.When)}, col{"state", text(observerStates[o.State])},
			col{"options", textArray(observerOptions(o))}, col{"definition", text(observerDefinition(t, o))}, col{"comment", optional(o.Comment)},
			col{"observer_id", num(int64(o.ID))}, col{"seeded_rows", seeded},
			col{"pending", num(a.Pending)}, col{"pending_exact", boolean(!a.More)}, col{"oldest_pending_at", at(a.Oldest)}, col{"oldest_pending_age", age},
			col{"runs", num(a.Runs)}, col{"runs_per_second", types.Float(a.RunsPerSecond)}, col{"conflicts", num(a.Conflicts)},
			col{"retries", num(a.Retries)}, col{"errors", num(a.Errors)},
			col{"latency_p50_ms", floatIf(a.LatencyP50)}, col{"latency_p99_ms", floatIf(a.LatencyP99)})
	})
}

// floatIf is v, or NULL for 0.
func floatIf(v float64) types.Datum {
	if v == 0 {
		return types.Null
	}
	return types.Float(v)
}

func observerErrorRows(s *scan) error {
	if s.view == nil {
		return nil
	}
	type shown struct {
		schema, observer, table string
		message, key            bool
	}
	observers := map[uint64]shown{}
	err := s.eachObserver(func(t *catalog.TableDescriptor, o *catalog.ObserverDescriptor) error {
		// A message of the body may contain what its owner can read, a key what the reader cannot.
		observers[o.ID] = shown{t.Schema, o.Name, t.Name, s.sees(o.OwnerOID()), s.sees(t.OwnerOID()) || s.access().SeesKey(t, &t.Primary)}
		return nil
	})
	if err != nil {
		return err
	}
	return s.view.ObserverErrors(s.ctx, func(e *catalog.ObserverError) error {
		o, ok := observers[e.Observer]
		if !ok {
			return nil // It is created or dropped at this moment.
		}
		p, err := s.placeOf(e.Key)
		if err != nil {
			return err
		}
		message, key, keyBytes := types.Null, types.Null, types.Null
		if o.message && !p.hidden {
			message = text(e.Message)
		}
		if o.key && !p.hidden {
			key, keyBytes = text(p.key), types.Bytes(p.raw)
		}
		return s.emit(col{"observer", text(o.observer)}, col{"schema_name", text(o.schema)}, col{"table_name", text(o.table)},
			col{"key", key}, col{"sqlstate", text(e.Code)}, col{"error", message},
			col{"attempts", num(e.Attempts)}, col{"at", at(e.At)}, col{"changed_at", at(e.CommitTS)}, col{"commit_ts", numberIf(e.CommitTS)},
			col{"hop", num(int64(e.Hop))}, col{"key_bytes", keyBytes})
	})
}
