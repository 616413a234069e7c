package session

import (
	"context"
	"strconv"
	"sync"
	"sync/atomic"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/percodb/percodb/catalog"
	"github.com/percodb/percodb/executor"
	"github.com/percodb/percodb/planner"
	"github.com/percodb/percodb/planner/expr"
	"github.com/percodb/percodb/session/settings"
	"github.com/percodb/percodb/sql"
	"github.com/percodb/percodb/sql/builtin"
	"github.com/percodb/percodb/sql/types"
)

const (
	// planCacheSize bounds the plans a server keeps, planCacheText the bytes of their keys. A plan takes about eight times
	// the bytes of its text.
	planCacheSize = 4096
	planCacheText = 8 << 20
	// sessionPlans and sessionPlanText bound those that a session holds on to without asking the server's cache.
	sessionPlans    = 256
	sessionPlanText = 1 << 20
)

// PlanCache holds the plans of a server by normalised text, declared parameter types and search path.
// Safe for concurrent use.
type PlanCache struct {
	plans *lru.Cache[string, *planner.Plan]
	mu    sync.Mutex   // held by add
	text  atomic.Int64 // bytes of the keys
}

// NewPlanCache makes an empty cache.
func NewPlanCache() *PlanCache {
	c := &PlanCache{}
	var err error
	c.plans, err = lru.NewWithEvict(planCacheSize, func(key string, _ *planner.Plan) { c.text.Add(-int64(len(key))) })
	if err != nil {
		panic(err) // Only for a size that is not positive.
	}
	return c
}

// add keeps a plan, and forgets those that have not been used for longest beyond the bounds.
func (c *PlanCache) add(key string, plan *planner.Plan) {
	if len(key) > planCacheText/8 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.plans.Contains(key) {
		c.text.Add(int64(len(key)))
	}
	c.plans.Add(key, plan)
	for c.text.Load() > planCacheText {
		c.plans.RemoveOldest()
	}
}

// keep adds a plan, if policies are in it also as that of its role.
func (c *PlanCache) keep(key string, plan *planner.Plan) {
	c.add(key, plan)
	if plan.Role != 0 {
		c.add(roleKey(key, plan.Role), plan)
	}
}

// cachedPlan is a plan as one session knows it.
type cachedPlan struct {
	*planner.Plan
	// version is the schema version under which the plan was last found to hold.
	version uint64
	// temporary is the version of the session's temporary relations for which it was made (catalog.Temporary).
	temporary uint64
	// The plan was last authorized for permittedRole under the schema version permittedVersion.
	permittedRole    uint32
	permittedVersion uint64
	// idle keeps the operators of the last execution for the next one; nil while they are in use.
	idle *executor.Runner
}

// holds reports whether the plan may be used by t's role under r: nothing changed, or nothing that it reads.
func (c *cachedPlan) holds(ctx context.Context, t *transaction, r catalog.Resolver) (bool, error) {
	if c.temporary != t.temporary().Version() { // A name may mean another relation by now.
		return false, nil
	}
	if !c.samePath(r) || !c.suits(t.acting) { // Another role may not be able to use all of it.
		return false, nil
	}
	ok, err := c.unchanged(ctx, r, func(now, used *catalog.TableDescriptor) bool {
		return now.Version == used.Version && now.Name == used.Name && now.Schema == used.Schema
	})
	if !ok || err != nil {
		return false, err
	}
	c.version = r.Version()
	return c.policiesHold(ctx, t, r)
}

// stands reports whether the plan is right under r, though it may not be the best: new statistics do not
// matter to a statement that has begun.
func (c *cachedPlan) stands(ctx context.Context, r catalog.Resolver) (bool, error) {
	return c.unchanged(ctx, r, (*catalog.TableDescriptor).SameButStatistics)
}

// unchanged reports whether all that the plan reads is the same under r.
func (c *cachedPlan) unchanged(ctx context.Context, r catalog.Resolver, same func(now, used *catalog.TableDescriptor) bool) (bool, error) {
	if c.version == r.Version() {
		return true, nil
	}
	if c.ObjectsVersion != r.Grants().ObjectsVersion { // It may not list a function whose privileges have been changed since.
		return false, nil
	}
	if c.RoutinesVersion != r.Routines().Version() || c.TextSearchVersion != r.TextSearch().Version() {
		return false, nil
	}
	if !c.Collations.Same(r.Collations()) || !c.Operations.Same(r.Operations()) {
		return false, nil
	}
	if c.Role != 0 && c.Roles != r.Roles() {
		return false, nil
	}
	for _, used := range c.Types {
		if now := r.Types().ByOID(used.OID); now == nil || now.Version != used.Version {
			return false, nil
		}
	}
	for _, used := range c.Extensions {
		if now := r.Extensions().Named(used.Name); now == nil || now.ID != used.ID || now.Schema != used.Schema {
			return false, nil
		}
	}
	for _, used := range c.Relations {
		now, err := r.RelationByID(ctx, used.ID)
		if err != nil {
			return false, err
		}
		if now == nil || !same(now, used) {
			return false, nil
		}
	}
	for _, name := range c.Names {
		now, err := r.Relation(ctx, "", name.Name)
		if err != nil || now == nil || now.ID != name.ID { // A schema that is searched before has one by now.
			return false, err
		}
	}
	return true, nil
}

// suits reports whether the plan applies the policies of the current role, if it applies any.
func (c *cachedPlan) suits(p *principal) bool {
	return c.Role == 0 || c.Role == p.current && !(c.Guarded && p.settings.RowSecurityOff)
}

// policiesOf reports whether the policies in the plan are those of a schema: of that under which the plan is used, or of that in force for
// it (transaction.inForce).
func (c *cachedPlan) policiesOf(ctx context.Context, now catalog.Resolver) (bool, error) {
	if version := now.Version(); c.PresentVersion == version || c.PresentVersion == 0 && c.version == version {
		return true, nil
	}
	for _, used := range c.Relations {
		t, err := now.RelationByID(ctx, used.ID)
		if err != nil || used.RowSecurity || t != nil && t.RowSecurity {
			return false, err
		}
	}
	return true, nil
}

// policiesHold is policiesOf for a plan that is about to be used under r. It asks what this process knows of the schema in force; authorize
// asks the store.
func (c *cachedPlan) policiesHold(ctx context.Context, t *transaction, r catalog.Resolver) (bool, error) {
	if t.ownSchema() {
		if latest := t.catalog.Latest(); latest != nil && !t.changed {
			r = latest
		} else {
			var err error
			if r, err = t.inForce(ctx); err != nil {
				return false, err
			}
		}
	}
	return c.policiesOf(ctx, r)
}

// plans finds the plans of a session's statements, and makes those that do not exist. It keeps its share of the server's
// plans, which it reads without a lock.
type plans struct {
	shared   *PlanCache
	metrics  *Metrics
	tx       *transaction
	travel   *timeTravel
	meter    *sql.Meter
	settings *settings.Settings
	env      *builtin.Env

	byKey map[string]*cachedPlan
	text  int    // bytes of the keys
	key   []byte // the buffer of keyOf
	// guess and valueKey are those of forValues: what values are estimated with, and the buffer of the key.
	guess    expr.Context
	valueKey []byte
	// database is the OID of the database, which keys name; "" for the first one, which they do not.
	database string
	// path is the search path that keys name; nil for the default one, which they do not.
	path []string
}

func newPlans(database uint32) plans {
	m := plans{byKey: map[string]*cachedPlan{}}
	if database != catalog.FirstDatabase {
		m.database = strconv.FormatUint(uint64(database), 10)
	}
	return m
}

// add keeps a plan. When there are too many it starts anew: a session that cycles through more texts than that gains
// little from them.
func (m *plans) add(key string, c *cachedPlan) {
	if len(key) > sessionPlanText {
		return
	}
	if len(m.byKey) >= sessionPlans || m.text+len(key) > sessionPlanText {
		m.clear()
	}
	if m.byKey[key] == nil {
		m.text += len(key)
	}
	m.byKey[key] = c
}

// keep adds a plan, if policies are in it also as that of its role.
func (m *plans) keep(key string, c *cachedPlan) {
	m.add(key, c)
	if c.Role != 0 {
		m.add(roleKey(key, c.Role), c)
	}
}

// own returns the session's plan for a key.
func (m *plans) own(key []byte) *cachedPlan {
	c := m.byKey[string(key)]
	if c != nil && !c.suits(m.tx.acting) {
		c = m.byKey[roleKey(string(key), m.tx.acting.current)]
	}
	return c
}

// find returns the plan of the server's cache for a key.
func (m *plans) find(key string) (*planner.Plan, bool) {
	plan, ok := m.shared.plans.Get(key)
	if ok && plan.Role != 0 && plan.Role != m.tx.acting.current {
		plan, ok = m.shared.plans.Get(roleKey(key, m.tx.acting.current))
	}
	return plan, ok
}

// roleKey extends a key by the role whose policies are in the plan.
func roleKey(key string, role uint32) string {
	return key + "\x03" + strconv.FormatUint(uint64(role), 10)
}

func (m *plans) clear() {
	clear(m.byKey)
	m.text = 0
}

// keyOf extends a statement's key by what else its plan depends on. The result is valid until the next call.
func (m *plans) keyOf(key []byte, declared []types.Type) []byte {
	if len(declared) == 0 && m.path == nil && m.database == "" {
		return key
	}
	m.key = append(m.key[:0], key...)
	for _, t := range declared {
		m.key = append(m.key, 0)
		m.key = strconv.AppendInt(m.key, int64(t.OID), 10)
	}
	if m.database != "" {
		m.key = append(append(m.key, 3), m.database...)
	}
	if m.path != nil {
		m.key = append(m.key, 2) // An empty path is not the default one.
	}
	for _, schema := range m.path {
		m.key = append(append(m.key, 1), schema...)
	}
	return m.key
}
