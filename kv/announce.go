package kv

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/percodb/percodb/internal/errkind"
	"github.com/percodb/percodb/tso"
)

// The directory of ranges and the oracle share a data directory. If it was lost, or an older copy was restored, the
// oracle could issue timestamps below those of existing versions, and the directory does not know all shards. Every
// shard therefore stores the list of the cluster's shards, and announces itself before it obtains a timestamp and every
// few seconds afterwards, with that list and the newest timestamp it has seen. An announcement that contradicts the
// directory puts the oracle on hold until every shard that is named in any announcement has announced itself; it then
// continues above the newest of their timestamps.

// Announcement is the state of a shard and of its cluster as the shard knows it.
type Announcement struct {
	ShardInfo
	// Cluster is the number of the cluster that the shard belongs to; 0 if it is unknown.
	Cluster uint64
	// Accepted says that a directory has registered the shard before.
	Accepted bool
	// Newest is the newest timestamp that the shard has met, or a little below.
	Newest tso.Timestamp
	// Peers are the cluster's shards as the directory last named them.
	Peers []string
	// LockBound is the bound in force on the shard, 0 if it has just started. Bounded: the shard observes lock bounds.
	LockBound tso.Timestamp
	Bounded   bool
}

// Membership is the answer to an announcement.
type Membership struct {
	Cluster uint64
	Peers   []string // all shards of the cluster that the directory knows
	// Held is the reason why the oracle does not serve; "" if it serves.
	Held string
	// Registered: the directory has the shard's ranges.
	Registered bool
	// Forgotten: the shard was permanently excluded from the cluster.
	Forgotten bool
	// LockBound is the bound up to which the shard may accept locks from now on, and SafePoint the fence that it has to
	// raise before that (lockbound.go). 0 while the oracle is on hold.
	LockBound, SafePoint tso.Timestamp
}

// ForgetResponse describes a shard that is, or would be, excluded.
type ForgetResponse struct {
	Addr       string
	Ranges     int  // that are lost
	Registered bool // false: only other shards have named it
}

// ForgottenError: the shard was permanently excluded from its cluster.
type ForgottenError struct{ Shard string }

func (e *ForgottenError) Error() string {
	return fmt.Sprintf("store %s was excluded from the cluster by percodb store forget, and its ranges were given to others: start a new store with an empty data directory", e.Shard)
}

// Kind implements errkind.Error.
func (e *ForgottenError) Kind() errkind.Kind { return errkind.Excluded }

// OracleControl holds the oracle whose data directory is that of the directory of ranges; *tso.Gate is one.
type OracleControl interface {
	tso.Oracle
	// WindowEnd is above every timestamp that was handed out.
	WindowEnd() tso.Timestamp
	// Hold stops the oracle for a reason; Serve has it go on above a timestamp.
	Hold(reason string)
	Serve(above tso.Timestamp)
}

// standing is whether a directory is reliable.
type standing int

const (
	standingSound   standing = iota
	standingEmpty            // no shard has announced itself yet: new, or lost
	standingAsking           // just started: it requests announcements from registered shards that are reachable
	standingDoubted          // lost or older: every known shard has to announce itself
)

// clusterView is the state of a directory that judges an announcement.
type clusterView struct {
	standing  standing
	cluster   uint64
	windowEnd tso.Timestamp
	known     map[string]bool
	forgotten map[string]bool
}

// verdict is the conclusion from an announcement about the directory.
type verdict int

const (
	verdictAgrees     verdict = iota
	verdictNewCluster         // the first shard of a cluster
	verdictLost               // the directory was lost
	verdictOlder              // the directory is older than the cluster's state
	verdictForeign            // the shard is of another cluster
)

// judge compares an announcement with the state of a directory.
func (v *clusterView) judge(a *Announcement) verdict {
	unknown := func(id string) bool { return id != a.ID && !v.known[id] && !v.forgotten[id] }
	switch {
	case v.standing == standingEmpty && a.Cluster == 0 && !a.Accepted:
		return verdictNewCluster
	case v.standing == standingEmpty:
		return verdictLost
	case a.Cluster != 0 && a.Cluster != v.cluster:
		return verdictForeign
	case a.Cluster != 0 && (a.Accepted && !v.known[a.ID] || slices.ContainsFunc(a.Peers, unknown)):
		return verdictOlder
	case (a.Cluster != 0 || v.known[a.ID]) && a.Newest.Physical() > v.windowEnd.Physical()+behindMillis:
		return verdictOlder
	}
	return verdictAgrees
}

// awaitedShards are the known shards that have not announced themselves.
func awaitedShards(known map[string]bool, told map[string]tso.Timestamp) (awaited []string) {
	for id := range known {
		if _, ok := told[id]; !ok {
			awaited = append(awaited, id)
		}
	}
	slices.Sort(awaited)
	return awaited
}

// maxAhead is how far above the clock the oracle follows announced timestamps.
const maxAhead = 24 * time.Hour

// resumeAbove returns the timestamp above which an oracle continues when all shards have announced themselves; ok is
// false if that is implausibly far above now.
func resumeAbove(told map[string]tso.Timestamp, now tso.Timestamp) (above tso.Timestamp, ok bool) {
	for _, ts := range told {
		above = max(above, ts)
	}
	if above != 0 {
		above = tso.FromPhysical(above.Physical() + aboveMargin.Milliseconds())
	}
	return above, above.Physical() <= now.Physical()+maxAhead.Milliseconds()
}

// holdReason describes what an oracle on hold waits for.
func holdReason(s standing, awaited []string) string {
	switch {
	case s == standingEmpty:
		return "no store has registered yet"
	case s == standingAsking:
		return "waiting for the newest timestamps of the stores"
	case len(awaited) == 0:
		return "a store has met timestamps of more than a day from now: set the clock right, or start the tso process with --timestamps-above"
	}
	return "the directory of the oracle was lost or is older than the stores: waiting for the newest timestamps of " +
		strings.Join(awaited, ", ") + " (percodb store forget ID excludes a store that is gone for good)"
}

// announceTimeout bounds an announcement, and announceOutage the time for which the directory may be out of reach
// while a store opens.
const (
	announceTimeout = 5 * time.Second
	announceOutage  = 30 * time.Second
	heldPause       = 200 * time.Millisecond
	heldLogInterval = 10 * time.Second
)

// awaitOracle announces the store until the oracle serves.
func (s *Store) awaitOracle(ctx context.Context) error {
	seen, err := s.engine.getMetaU64(metaSeen)
	if err != nil {
		return err
	}
	var logged time.Time
	for lastAnswer := time.Now(); ; {
		m, err := s.announce(ctx, tso.Timestamp(seen))
		switch {
		case err == nil && m.Held == "":
			s.granted = lockGrant{bound: m.LockBound, safePoint: m.SafePoint}
			return s.granted.check()
		case err == nil:
			lastAnswer = time.Now()
			if time.Since(logged) > heldLogInterval {
				s.opts.Logger.Warn("the oracle does not serve yet", "reason", m.Held)
				logged = time.Now()
			}
		case errkind.Of(err) != errkind.Unavailable || time.Since(lastAnswer) > announceOutage:
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(heldPause):
		}
	}
}

// whileOpening repeats a request to the oracle or the directory that fails because they are unreachable, up to
// announceOutage: they may be restarted while a store starts.
func whileOpening(ctx context.Context, request func() error) error {
	for since := time.Now(); ; {
		err := request()
		kind := errkind.Of(err)
		if kind != errkind.Unavailable && kind != errkind.OracleUnavailable || time.Since(since) > announceOutage {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(heldPause):
		}
	}
}

// announce sends the store's announcement to the directory, and stores the answer about the cluster.
func (s *Store) announce(ctx context.Context, newest tso.Timestamp) (*Membership, error) {
	ctx, cancel := context.WithTimeout(ctx, announceTimeout)
	defer cancel()
	m, err := s.opts.Directory.Announce(ctx, &Announcement{
		ShardInfo: ShardInfo{ID: s.shardID, Addr: s.opts.Addr}, Cluster: s.cluster, Accepted: s.accepted != 0, Newest: newest, Peers: s.peers,
		LockBound: s.granted.bound, Bounded: true,
	})
	if err != nil {
		return nil, err
	}
	if m.Forgotten {
		return nil, &ForgottenError{Shard: s.shardID}
	}
	if m.Cluster == s.cluster && slices.Equal(m.Peers, s.peers) || m.Held != "" {
		return m, nil // an oracle on hold may not know all shards yet
	}
	b := s.engine.NewBatch(0)
	defer b.Close()
	b.Put(metaKey(metaCluster), appendCluster(nil, m.Cluster, m.Peers))
	if err := s.engine.applySync(b); err != nil {
		return nil, err
	}
	s.cluster, s.peers = m.Cluster, m.Peers
	return m, nil
}

// loadCluster reads the stored state of the cluster.
func (s *Store) loadCluster() error {
	value, found, err := s.engine.Get(nil, metaKey(metaCluster))
	if err != nil || !found {
		return err
	}
	s.cluster, s.peers, err = decodeCluster(value)
	return err
}

// announceInterval is the time between announcements of a store that runs.
const announceInterval = 2 * time.Second

// announceLoop announces the store while it runs, registers it with a directory that does not know it, and otherwise
// checks whether the store has been replaced.
func (s *Store) announceLoop() {
	tick := time.NewTicker(announceInterval)
	defer tick.Stop()
	failing := false
	for {
		select {
		case <-s.stopped.Done():
			return
		case <-tick.C:
		case <-s.renew:
		}
		m, err := s.announce(s.stopped, s.mvcc.NewestTS())
		if err == nil && m.Held == "" {
			err = s.takeGrant(s.stopped, lockGrant{bound: m.LockBound, safePoint: m.SafePoint})
		}
		if err == nil && m.Held == "" && !m.Registered {
			err = s.register(s.stopped)
		} else if err == nil && m.Held == "" {
			err = s.opts.Directory.ReportRanges(s.stopped, s.shardID, s.incarnation, nil)
		}
		switch {
		case err == nil || s.stopped.Err() != nil:
		case errkind.Of(err) == errkind.Excluded && s.opts.OnFatal != nil:
			s.opts.OnFatal(err)
			return
		case !failing:
			s.opts.Logger.Warn("the store could not announce itself", "err", err)
		}
		failing = err != nil
	}
}

// knownLocked are the shards of the cluster: those that are registered, and those that others have named.
func (d *LocalDirectory) knownLocked() map[string]bool {
	known := maps.Clone(d.mu.named)
	for id := range d.mu.shards {
		known[id] = true
	}
	return known
}

// Announce implements Directory.
func (d *LocalDirectory) Announce(_ context.Context, a *Announcement) (*Membership, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.mu.forgotten[a.ID] {
		return &Membership{Forgotten: true}, nil
	}
	if d.opts.Oracle != nil {
		if err := d.takeLocked(a); err != nil {
			return nil, err
		}
	}
	_, registered := d.mu.shards[a.ID]
	m := &Membership{Cluster: d.mu.cluster, Peers: slices.Sorted(maps.Keys(d.knownLocked())), Registered: registered}
	if d.mu.standing != standingSound {
		m.Held = holdReason(d.mu.standing, awaitedShards(d.knownLocked(), d.mu.told))
		return m, nil
	}
	grant, err := d.grantLocked(a)
	m.LockBound, m.SafePoint = grant.bound, grant.safePoint
	return m, err
}

// takeLocked judges an announcement and acts on the verdict.
func (d *LocalDirectory) takeLocked(a *Announcement) error {
	known := d.knownLocked()
	view := &clusterView{standing: d.mu.standing, cluster: d.mu.cluster, windowEnd: d.opts.Oracle.WindowEnd(), known: known, forgotten: d.mu.forgotten}
	switch verdict := view.judge(a); verdict {
	case verdictForeign:
		return fmt.Errorf("kv: store %s is of another cluster than this directory, or the directory was lost and begun anew by another store: restore it", a.ID)
	case verdictNewCluster:
		d.mu.standing = standingSound
		d.opts.Oracle.Serve(0)
	case verdictLost, verdictOlder:
		if err := d.doubtLocked(a, verdict == verdictLost); err != nil {
			return err
		}
	}
	_, before := d.mu.told[a.ID]
	if stranger := a.Cluster == 0 && !known[a.ID]; !stranger || d.mu.standing == standingDoubted {
		d.mu.told[a.ID] = a.Newest
		if d.mu.standing == standingSound && !before {
			// The directory may be older by too little to be detected. Only a store's first announcement counts: later
			// ones may contain timestamps claimed by clients, a little above those issued.
			d.opts.Oracle.Serve(a.Newest)
		}
	}
	return d.settleLocked()
}

// doubtLocked holds the oracle and adds the shards that the announcement names to the known ones, durably.
func (d *LocalDirectory) doubtLocked(a *Announcement, lost bool) error {
	d.opts.Oracle.Hold("a store contradicts the directory")
	b := d.opts.Engine.NewBatch(0)
	defer b.Close()
	b.Put(metaKey(metaDirDoubt), []byte{1})
	cluster := d.mu.cluster
	if lost = lost && a.Cluster != 0; lost { // otherwise the shard does not know the others
		b.Put(metaKey(metaDirLost), []byte{1})
		cluster = a.Cluster
		putCluster(b, cluster)
	}
	var named []string
	for _, id := range append(slices.Clone(a.Peers), a.ID) {
		if _, registered := d.mu.shards[id]; !registered && !d.mu.forgotten[id] && !d.mu.named[id] {
			named = append(named, id)
			b.Put(metaKey(metaDirNamed+id), []byte{1})
		}
	}
	if err := d.opts.Engine.applySync(b); err != nil {
		return err
	}
	for _, id := range named {
		d.mu.named[id] = true
	}
	if d.mu.standing != standingDoubted {
		d.mu.told = map[string]tso.Timestamp{}
		d.opts.Logger.Error("the directory of the oracle was lost or is older than a store: the oracle waits for all stores", "store", a.ID)
	}
	d.mu.standing, d.mu.cluster, d.mu.lost = standingDoubted, cluster, d.mu.lost || lost
	return nil
}

// settleLocked ends the doubt when every known shard has announced itself.
func (d *LocalDirectory) settleLocked() error {
	if d.mu.standing != standingDoubted {
		return nil
	}
	awaited := awaitedShards(d.knownLocked(), d.mu.told)
	above, ok := resumeAbove(d.mu.told, max(tso.FromPhysical(time.Now().UnixMilli()), d.opts.Oracle.WindowEnd()))
	if len(awaited) > 0 || !ok {
		d.opts.Oracle.Hold(holdReason(d.mu.standing, awaited))
		return nil
	}
	b := d.opts.Engine.NewBatch(0)
	defer b.Close()
	b.Delete(metaKey(metaDirDoubt))
	if err := d.opts.Engine.applySync(b); err != nil {
		return err
	}
	d.mu.standing = standingSound
	d.opts.Oracle.Serve(above)
	d.opts.Logger.Warn("all stores have told their newest timestamps: the oracle serves", "stores", len(d.mu.told))
	return nil
}

// askTimeout bounds how long a starting directory waits for its shards' announcements.
const askTimeout = time.Second

// askShards holds the oracle of a starting directory until the reachable shards have announced their newest timestamps.
func (d *LocalDirectory) askShards() {
	d.mu.RLock()
	infos := slices.Collect(maps.Values(d.mu.shards))
	d.mu.RUnlock()
	ctx, cancel := context.WithTimeout(d.stopped, askTimeout)
	defer cancel()
	answers := make(chan Announcement, len(infos))
	for _, info := range infos {
		go func() {
			a := Announcement{ShardInfo: info}
			if owner, err := d.opts.Dial(ctx, info); err == nil {
				if status, err := owner.Status(ctx); err == nil && status.Shard == info.ID {
					a.Newest = status.Newest
				}
			}
			answers <- a
		}()
	}
	for range infos {
		a := <-answers
		if a.Newest == 0 {
			continue
		}
		if _, err := d.Announce(ctx, &a); err != nil {
			d.opts.Logger.Warn("what a store has told was not taken", "store", a.ID, "err", err)
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.mu.standing == standingAsking {
		d.mu.standing = standingSound
		var newest tso.Timestamp
		for _, told := range d.mu.told {
			newest = max(newest, told)
		}
		d.opts.Oracle.Serve(newest)
	}
}

// warnHeld logs regularly what the oracle waits for.
func (d *LocalDirectory) warnHeld(last time.Time) time.Time {
	d.mu.RLock()
	defer d.mu.RUnlock()
	if d.mu.standing != standingDoubted || time.Since(last) < heldLogInterval {
		return last
	}
	d.opts.Logger.Warn("the oracle does not serve", "reason", holdReason(d.mu.standing, awaitedShards(d.knownLocked(), d.mu.told)))
	return time.Now()
}
